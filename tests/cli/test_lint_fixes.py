"""`sharddsl lint`: fixes, settings, what is silenced, and what goes where."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest

from sharddsl.cli.main import main

Capture = pytest.CaptureFixture[str]
REST = "act:   {batch: fsdp}\ncache: {batch: fsdp}\ncheck llama_tiny batch 8 seq 64\n"
BAD = "let unused = fsdp\nmesh: [fsdp=4]\nmlp.w_in: [fsdp, None]  # first\n\n*:     {embed: fsdp}\n" + REST
SAFE = "mesh: [fsdp=4]\n\n*:     {embed: fsdp}\n" + REST
GUESS = "mesh: [fsdp=4]\n\n*:     {embed: fsdpp}\n" + REST


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_what_changes_no_layout_is_mended(folder: Path, capsys: Capture) -> None:
    file = folder / "my.shard"
    file.write_text(BAD)
    file.chmod(0o640)
    assert main(["lint", "my.shard", "--fix", "--format=concise", "--fail-on=info"]) == 0
    assert file.read_text() == SAFE
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(folder) == ["my.shard"]
    told = capsys.readouterr()
    assert told.out == "1 file, 1 case: clean; layouts only, not compiled\n"
    assert told.err.splitlines() == [
        "my.shard:1:1: mended SHD005 unused-name: `let unused` is used by nothing",
        "my.shard:3:1: mended SHD203 rule-never-wins: `mlp.w_in` never wins: every tensor that it matches is placed by "
        "`*` (line 5)",
    ]


def test_what_decides_something_is_mended_only_if_that_is_asked_for(folder: Path, capsys: Capture) -> None:
    file = folder / "my.shard"
    file.write_text(GUESS)
    assert main(["lint", "my.shard", "--fix", "--format=concise"]) == 1
    assert file.read_text() == GUESS
    assert capsys.readouterr().err == "fixes: 1 with --fix --unsafe-fixes; --diff shows them\n"
    assert main(["lint", "my.shard", "--fix", "--unsafe-fixes", "--fail-on=info"]) == 0
    assert file.read_text() == SAFE


def test_a_diff_changes_nothing(folder: Path, capsys: Capture) -> None:
    file = folder / "my.shard"
    file.write_text(BAD)
    assert main(["lint", "my.shard", "--diff"]) == 1
    assert file.read_text() == BAD
    assert capsys.readouterr().out.splitlines() == [
        *("--- my.shard", "+++ my.shard", "@@ -1,6 +1,4 @@", "-let unused = fsdp", " mesh: [fsdp=4]"),
        *("-mlp.w_in: [fsdp, None]  # first", " ", " *:     {embed: fsdp}", " act:   {batch: fsdp}"),
    ]
    assert main(["lint", "my.shard", "--diff", "--exit-zero"]) == 0
    file.write_text(SAFE)
    capsys.readouterr()
    assert main(["lint", "my.shard", "--diff"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", [BAD.replace("\n", "\r\n"), "\ufeff" + BAD])
def test_ends_of_lines_and_a_mark_stay(text: str, folder: Path) -> None:
    file = folder / "my.shard"
    file.write_bytes(text.encode())
    assert main(["lint", "my.shard", "--fix"]) == 0
    expected = SAFE.replace("\n", "\r\n") if "\r" in text else "\ufeff" + SAFE
    assert file.read_bytes() == expected.encode()


def test_stdin_comes_out_mended_on_stdout(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").touch()
    (folder / "base.shard").write_text("mesh: [fsdp=4]\n*: {embed: fsdp}\n")
    (folder / "sub").mkdir()
    text = 'extends "../base.shard"\nlet unused = fsdp\n' + REST
    stdin(monkeypatch, text.encode())
    assert main(["lint", "-", "--fix", "--stdin-filename", "sub/edited.shard", "--fail-on=info"]) == 0
    told = capsys.readouterr()
    assert told.out == 'extends "../base.shard"\n' + REST
    assert "sub/edited.shard:2:1: mended SHD005" in told.err
    assert "sub/edited.shard: clean" in told.err
    assert not (folder / "sub" / "edited.shard").exists()


def test_stdin_that_is_no_text(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"\xff\xfe")
    assert main(["lint", "-", "--stdin-filename", "edited.shard", "--format=concise"]) == 1
    assert capsys.readouterr().out.startswith("edited.shard: error SHD001 syntax-error: not UTF-8 text")
    stdin(monkeypatch, b"\xff\xfe")
    assert main(["lint", "-"]) == 2
    assert "stdin is not UTF-8 text" in capsys.readouterr().err


def test_a_read_only_file_stays_as_it_is(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "my.shard"
    file.write_text(BAD)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.replace", refuse)
    assert main(["lint", "my.shard", "--fix"]) == 2
    assert file.read_text() == BAD
    assert os.listdir(folder) == ["my.shard"]
    assert "my.shard cannot be written (Read-only file system)" in capsys.readouterr().err


def test_a_link_is_followed(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "my.shard").write_text(BAD)
    (folder / "link.shard").symlink_to("real/my.shard")
    assert main(["lint", "link.shard", "--fix"]) == 0
    assert (folder / "link.shard").is_symlink()
    assert (folder / "real" / "my.shard").read_text() == SAFE


def test_a_base_is_mended_where_it_is_linted_itself(folder: Path) -> None:
    (folder / "base.shard").write_text(GUESS)
    (folder / "my.shard").write_text('extends "base.shard"\n' + REST)
    assert main(["lint", "my.shard", "--fix", "--unsafe-fixes"]) == 1
    assert (folder / "base.shard").read_text() == GUESS
    assert main(["lint", "base.shard", "my.shard", "--fix", "--unsafe-fixes"]) == 0
    assert (folder / "base.shard").read_text() == SAFE


def test_the_settings_of_the_project(folder: Path, capsys: Capture) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.sharddsl.lint]\nfail-on = "warning"\nignore = ["SHD203"]\nmodel = "llama_tiny"\nmesh = {fsdp = 2}\n'
    )
    (folder / "my.shard").write_text(BAD.replace("check llama_tiny batch 8 seq 64\n", ""))
    assert main(["lint", "--format=concise"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "my.shard:1:1: warning SHD005 unused-name: `let unused` is used by nothing",
        "1 file, 1 case: 1 warning (1 silenced); layouts only, not compiled",
    ]
    assert main(["lint", "--ignore", "unused-name", "--format=concise"]) == 0
    assert main(["lint", "--select", "SHD2", "--format=concise"]) == 0  # which the settings ignore
    assert main(["lint", "--fail-on", "error", "--severity", "unused-name=error", "--format=concise"]) == 1
    (folder / "other.toml").write_text("[tool.sharddsl.lint]\n")
    capsys.readouterr()
    assert main(["lint", "--config", "other.toml", "--format=concise"]) == 0
    assert "1 file, 0 cases" in capsys.readouterr().out


def test_the_model_of_the_settings_is_for_specs_without_checks(folder: Path, capsys: Capture) -> None:
    (folder / "pyproject.toml").write_text('[tool.sharddsl.lint]\nmodel = "llama3_8b"\nmesh = {fsdp = 2}\nbatch = 8\n')
    (folder / "a.shard").write_text(SAFE)
    (folder / "b.shard").write_text(SAFE.replace("check llama_tiny batch 8 seq 64\n", ""))
    assert main(["lint"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "checked:" in line] == [
        "  checked: llama_tiny, train, on [fsdp=4]: 4 devices batch 8 seq 64",
        "  checked: llama3_8b, train, on [fsdp=2]: 2 devices batch 8",
    ]


def test_a_baseline(folder: Path, capsys: Capture) -> None:
    (folder / "my.shard").write_text(BAD)
    words = ["lint", "my.shard", "--format=concise", "--fail-on=info", "--baseline", "known.json"]
    assert main(words) == 2
    assert "there is no such file; --write-baseline makes it" in capsys.readouterr().err
    assert main([*words, "--write-baseline"]) == 0
    assert capsys.readouterr().err == "known.json: 2 findings known from now on\n"
    assert main(words) == 0
    assert capsys.readouterr().out == "1 file, 1 case: clean (2 silenced); layouts only, not compiled\n"
    (folder / "my.shard").write_text(SAFE)
    assert main(words) == 0
    assert capsys.readouterr().err == (
        "baseline: 2 of what it knows was not found again; --write-baseline leaves it out\n"
    )


def test_a_text_with_errors_is_judged_as_far_as_it_can_be_read(folder: Path, capsys: Capture) -> None:
    (folder / "my.shard").write_text(
        "mesh: [fsdp=4, mp=3]\n*: {embed: fsdp}\nattn.wq: [fsdp, mp\nmlp.{w_in, w_gate}: [fsdp, mp]\n"
        "mlp.w_out: [None, fsdpp]\nact: {batch: fsdp}\ncheck llama_tiny batch 8 seq 64\n"
    )
    assert main(["lint", "my.shard"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("my.shard:")] == [
        ["my.shard:3:10:", "error", "SHD001"],
        ["my.shard:4:28:", "error", "SHD302"],
        ["my.shard:5:19:", "error", "SHD101"],
        ["my.shard:", "3", "errors"],
    ]
    assert lines[-1] == (
        "  not checked: rules that are missing or never win, and axes that are not used: the text has errors"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--write-baseline"], "say which file: --baseline FILE"),
        (["--write-baseline", "--baseline=b", "--fix"], "first --fix, then a baseline"),
        (["--unsafe-fixes"], "goes with --fix or --diff"),
        (["--select", "SHD9"], "no finding has the code or name `SHD9`"),
        (["--severity", "SHD304"], "'SHD304' is not CODE=error, CODE=warning or CODE=info"),
        (["--config", "none.toml"], "there is no such file, or no [tool.sharddsl.lint] in it"),
        (["--output-file", "no/such/folder"], "it cannot be written (No such file or directory)"),
    ],
)
def test_wrong_words(words: list[str], says: str, folder: Path, capsys: Capture) -> None:
    (folder / "my.shard").write_text(SAFE)
    assert main(["lint", "my.shard", *words]) == 2
    assert says in capsys.readouterr().err.replace("\n  ", " ")
