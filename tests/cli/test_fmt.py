"""`sharddsl fmt`: what it writes, prints and answers with."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest

from sharddsl.cli.main import main

Capture = pytest.CaptureFixture[str]
BAD, GOOD, BROKEN = "w:[a]\nww: [a]\n", "w:  [a]\nww: [a]\n", "w: [\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_are_written(folder: Path, capsys: Capture) -> None:
    (folder / "a.shard").write_text(BAD)
    (folder / "a.shard").chmod(0o600)
    (folder / "b.shard").write_text(GOOD)
    assert main(["fmt"]) == 0
    assert (folder / "a.shard").read_text() == GOOD
    assert stat.S_IMODE((folder / "a.shard").stat().st_mode) == 0o600
    assert sorted(os.listdir(folder)) == ["a.shard", "b.shard"]
    told = capsys.readouterr()
    assert told.out == "a.shard: formatted\n"
    assert told.err == "2 files: 1 changed\n"


def test_a_file_that_is_in_the_style_is_not_touched(folder: Path) -> None:
    file = folder / "a.shard"
    file.write_text(GOOD)
    os.utime(file, (1, 1))
    assert main(["fmt", "a.shard"]) == 0
    assert file.stat().st_mtime == 1


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_a_check_writes_nothing(option: str, folder: Path, capsys: Capture) -> None:
    (folder / "a.shard").write_text(BAD)
    assert main(["fmt", option]) == 1
    assert (folder / "a.shard").read_text() == BAD
    out = capsys.readouterr().out
    diff = "--- a.shard\n+++ a.shard\n@@ -1,2 +1,2 @@\n-w:[a]\n+w:  [a]\n ww: [a]\n"
    assert out == {"--check": "a.shard: would change\n", "--diff": diff}[option]
    (folder / "a.shard").write_text(GOOD)
    assert main(["fmt", option]) == 0


def test_ends_of_lines_and_a_mark_are_changed(folder: Path) -> None:
    (folder / "a.shard").write_bytes(b"\xef\xbb\xbfw: [a]\r\n")
    assert main(["fmt", "--check"]) == 1
    assert main(["fmt"]) == 0
    assert (folder / "a.shard").read_bytes() == b"w: [a]\n"


def test_one_broken_file_does_not_keep_the_others_from_it(folder: Path, capsys: Capture) -> None:
    (folder / "a.shard").write_text(BROKEN)
    (folder / "b.shard").write_text(BAD)
    (folder / "c.shard").write_bytes(b"\xff")
    assert main(["fmt"]) == 1
    assert (folder / "a.shard").read_text() == BROKEN
    assert (folder / "b.shard").read_text() == GOOD
    assert (folder / "c.shard").read_bytes() == b"\xff"
    err = capsys.readouterr().err
    assert "a.shard:1:4: error SHD001" in err
    assert "c.shard: error SHD001 syntax-error: not UTF-8 text" in err


def test_stdin_goes_to_stdout(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for content, code, out in ((BAD, 0, GOOD), (GOOD, 0, GOOD), (BROKEN, 1, "")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert main(["fmt", "-", "--stdin-filename", "edited.shard"]) == code
        told = capsys.readouterr()
        assert told.out == out
        assert ("edited.shard:1:4: error SHD001" in told.err) == (code == 1)


def test_a_link_is_followed(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "a.shard").write_text(BAD)
    (folder / "a.shard").symlink_to("real/a.shard")
    assert main(["fmt", "a.shard"]) == 0
    assert (folder / "a.shard").is_symlink()
    assert (folder / "real" / "a.shard").read_text() == GOOD


def test_a_file_that_cannot_be_written_stays(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("a.shard", "b.shard"):
        (folder / name).write_text(BAD)
    monkeypatch.setattr("os.replace", refuse)
    assert main(["fmt"]) == 2
    assert sorted(os.listdir(folder)) == ["a.shard", "b.shard"]
    assert (folder / "b.shard").read_text() == BAD
    assert "a.shard cannot be written (No space left on device); it is as it was" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("no.shard", "cannot read no.shard: there is no such file"),
        ("llama/fsdp", "fmt takes files, and no names of specs"),
        (".", "there is no *.shard file in ."),
    ],
)
def test_what_is_not_there(word: str, says: str, folder: Path, capsys: Capture) -> None:
    assert main(["fmt", word]) == 2
    assert says in capsys.readouterr().err
