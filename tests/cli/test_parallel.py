"""`sharddsl lint --jobs`: several processes say what one says, and end with the one that they work for."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sharddsl.cli import parallel
from sharddsl.cli.main import main

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]
BASE = "let data = (dp, fsdp)\nmesh: [dp=2, fsdp=4]\n*: {embed: fsdp}\nact: {batch: data}\ncache: {batch: data}\n"
CHECK = "check llama_tiny batch 8 seq 64\n"
TEXTS = {
    "clean.shard": BASE + CHECK,
    "fragment.shard": BASE,
    "extended.shard": 'extends "clean.shard"\nmlp.w_in: [mp, fsdp]\n' + CHECK,
    "broken.shard": BASE + "attn.wq [fsdp]\n" + CHECK,
    "uneven.shard": BASE.replace("fsdp=4", "fsdp=3") + CHECK,
    "silenced.shard": BASE + "mlp.w_out: [mp]  # shd: ignore[SHD101] later\n" + CHECK,
    "bytes.shard": "\ufffe",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        for copy in ("a", "b", "c"):
            (tmp_path / copy).mkdir(exist_ok=True)
            (tmp_path / copy / name).write_text(text, encoding="utf-16" if name == "bytes.shard" else "utf-8")
    return tmp_path


def run(words: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """In an interpreter of its own, which has one thread: its processes are copies of it."""
    return end_of([sys.executable, "-m", "sharddsl", "lint", *words], folder)


def end_of(command: Sequence[str], folder: Path) -> tuple[int, str, str]:
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("form", ["full", "json"])
def test_several_processes_say_what_one_says(form: str, folder: Path, capsys: Capture) -> None:
    code = main(["lint", "--format", form, "--jobs=1"])
    one = capsys.readouterr()
    assert code == 1
    assert all(f"{copy}/{name}" in one.out for copy in "abc" for name in TEXTS)
    assert run(["--format", form, "--jobs=3"], folder) == (1, one.out, one.err)


def test_new_processes_where_a_copy_would_not_be_whole(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_may_fork", lambda: False)
    told = []
    for jobs in ("1", "2"):
        assert main(["lint", "a", "b", "--format=concise", "--jobs", jobs]) == 1
        told.append(capsys.readouterr())
    assert told[0] == told[1]


def test_a_copy_is_made_of_a_process_with_one_thread_alone() -> None:
    program = """\
import threading
from sharddsl.cli.parallel import _may_fork
print(_may_fork())
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(_may_fork())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(sys.platform == "linux"), "False"]


def test_the_first_spec_that_cannot_be_linted_is_named(folder: Path, capsys: Capture) -> None:
    words = ["a", "missing.shard", "b", "also_missing.shard"]
    assert main(["lint", *words, "--jobs=1"]) == 2
    one = capsys.readouterr()
    assert (one.out, one.err.strip()) == ("", "sharddsl: cannot read the spec missing.shard: there is no such file")
    assert run([*words, "--jobs=2"], folder) == (2, "", one.err)


def test_stdin_among_files(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "mesh: [mp=2]\nmlp.w_in: [tp]\n" + CHECK
    for jobs in ("1", "2"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["lint", "a/clean.shard", "-", "b/clean.shard", "--format=concise", "--jobs", jobs]) == 1
        assert "<stdin>:2:12: error SHD101 unknown-axis" in capsys.readouterr().out


def test_a_baseline_counts_what_all_of_them_found(folder: Path, capsys: Capture) -> None:
    assert main(["lint", "--baseline=known.json", "--write-baseline", "--jobs=1"]) == 0
    (folder / "b" / "extended.shard").write_text('extends "clean.shard"\nmlp.w_in: [tp, fsdp]\n' + CHECK)
    (folder / "c" / "broken.shard").write_text(BASE + CHECK)
    capsys.readouterr()
    assert main(["lint", "--baseline=known.json", "--format=concise", "--jobs=1"]) == 1
    one = capsys.readouterr()
    assert "b/extended.shard:2:12: error SHD101 unknown-axis" in one.out
    assert "baseline: 2 of what it knows was not found again" in one.err
    assert run(["--baseline=known.json", "--format=concise", "--jobs=2"], folder) == (1, one.out, one.err)


@pytest.mark.parametrize(
    ("count", "size", "several"), [(63, 100, False), (64, 100, True), (1, 2**20, True), (10, 2**15, True)]
)
def test_when_several_processes_pay(count: int, size: int, several: bool, tmp_path: Path) -> None:
    refs = [tmp_path / f"{number}.shard" for number in range(count)]
    for ref in refs:
        ref.write_bytes(b"#" * size)
    assert parallel._jobs(refs) == (parallel._cores() if several else 1)


ENDLESS = """\
import signal, sys
from sharddsl.cli import parallel
from sharddsl.cli.main import entry
lint, calls = parallel.lint, []
def endless(*args):
    calls.append(args)
    if len(calls) > 1:  # the first is linted before there are others
        print("ready", flush=True)
        signal.pause()
    return lint(*args)
parallel.lint = endless
sys.argv = ["sharddsl", "lint", "--jobs=2", "a", "b", "c"]
entry()
"""


@contextmanager
def endless(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """With two processes at work. Their output, which they share, ends when the last of them does."""
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert [child.stdout.readline()[:5] for _ in range(2)] == ["ready"] * 2
        yield child


def test_ctrl_c_ends_all_without_a_word(folder: Path) -> None:
    with endless(folder) as child:
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
        assert child.communicate(timeout=30)[0] == ""
        assert child.returncode == 130


def test_processes_end_with_the_one_that_they_work_for(folder: Path) -> None:
    with endless(folder) as child:
        child.kill()
        assert child.communicate(timeout=30)[0] == ""


def test_a_process_that_is_ended_from_outside(folder: Path) -> None:
    program = ENDLESS.replace("signal.pause()", "signal.raise_signal(signal.SIGKILL)")
    remedy = "sharddsl: lint: one of its processes was ended, perhaps for want of memory; try --jobs 1\n"
    code, _, said = end_of([sys.executable, "-c", program], folder)
    assert (code, said) == (2, remedy)
