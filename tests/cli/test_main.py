"""The program: commands, options, exit codes, and what it says when it is called wrongly."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from sharddsl.cli import failure
from sharddsl.cli.main import COMMANDS, main
from sharddsl.findings import Finding, ShardError, UsageError

ROOT = Path(__file__).parents[2]
SHOW = ("show", "model=llama_tiny", "spec=llama/fsdp_tp", "spec.mesh.fsdp=4", "spec.mesh.mp=2")

Capture = pytest.CaptureFixture[str]


def test_version(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", {"sharddsl": "1.2.3"}.__getitem__)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "sharddsl 1.2.3\n"


def test_version_of_a_checkout(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", none)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "sharddsl (not installed)\n"


def test_help_names_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {command} " in out for command in COMMANDS)


def test_no_command_is_a_usage_error(capsys: Capture) -> None:
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: sharddsl COMMAND")


@pytest.mark.parametrize("command", ["show", "generate"])
def test_help_of_a_command_lists_options_and_choices(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert "--rule" in out
    assert "--multirun" in out
    assert "llama3_1_405b" in out
    assert "llama/fsdp_tp" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["sohw"], "there is no command `sohw`; did you mean `show`?"),
        (["xyzzy"], "there is no command `xyzzy`; commands: show, lint,"),
        (["show", "--formt", "json"], "show: there is no option `--formt`; did you mean `--format`?"),
        (["show", *SHOW[1:], "--", "--format", "json"], "show: there is no option `--format`"),
        (["show", *SHOW[1:], "--", "--config-dir=/"], "show: there is no option `--config-dir=/`"),
        (["show", *SHOW[1:], "--package", "model"], "show: --package says how --cfg prints, and --cfg is not given"),
        (["show", *SHOW[1:], "--resolve"], "show: --resolve says how --cfg prints, and --cfg is not given"),
        (["show", "--format", "yaml"], "show: argument --format: invalid choice: 'yaml'"),
        (["show", "--devices", "9999999999"], "show: argument --devices: '9999999999' is not a number of devices"),
        (["show", "--devices", "0"], "show: argument --devices: '0' is not a number of devices"),
        (["show", "--rule"], "show: argument --rule: expected one argument"),
        (["generate", "--max-tokens", "many"], "generate: argument --max-tokens: 'many' is not a number of tokens"),
        (["generate", "--temperature", "nan"], "generate: argument --temperature: 'nan' is not a temperature"),
        (["generate", "--top-k", "5", "--prompt", "x"], "generate: --top-k and --top-p choose among likely tokens"),
        (["generate", "--prompt", "-", "--prompt", "-"], "generate: stdin can be one prompt only"),
        (["generate", "--prompt", "  "], "generate: an empty prompt"),
        (["schema", "extra"], "schema takes no argument `extra`"),
        (["-sc"], "shell completion takes `install=SHELL` or `uninstall=SHELL`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_called_wrongly(argv: list[str], message: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"sharddsl: {message}")
    assert "Traceback" not in err


def test_findings_exit_with_1(capsys: Capture) -> None:
    assert failure.report(ShardError([Finding("SHD103", "error", "no")])) == 1
    assert capsys.readouterr().err == "error SHD103 mesh-is-not-the-devices: no\n"


def test_an_internal_error_is_one_line_that_says_how_to_see_more(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHARDDSL_TRACEBACK", raising=False)
    assert failure.report(KeyError("x")) == 2
    assert capsys.readouterr().err == "sharddsl: internal error: KeyError: 'x' (SHARDDSL_TRACEBACK=1 shows where)\n"


def test_a_device_that_is_full(capsys: Capture) -> None:
    error = type("JaxRuntimeError", (RuntimeError,), {})
    text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 99 bytes.\nBufferAssignment: …"
    assert failure.report(error(text)) == 2
    first, *more = capsys.readouterr().err.splitlines()
    assert first == "sharddsl: a device has not enough memory: Out of memory while trying to allocate 99 bytes."
    assert more[0].startswith("  remedy: a layout that splits more")


def test_a_traceback_is_there_for_the_asking(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDDSL_TRACEBACK", "1")
    assert failure.report(UsageError("what")) == 2
    assert capsys.readouterr().err == "sharddsl.findings.UsageError: what\nsharddsl: what\n"


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupt(argv: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("sharddsl.cli.schema.main", interrupt)
    assert main(["schema"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "sharddsl", "schema"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.close()
    with program.stderr:
        assert program.stderr.read() == b""
    assert program.wait() == 141


def test_a_terminal_without_the_characters_gets_escapes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sharddsl", "show", "model=llama_tiny", "spec=./ü→.shard"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"\\xfc\\u2192.shard" in done.stderr


@pytest.mark.parametrize(("redirected", "code"), [(">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 2)])
def test_streams_that_are_closed_or_full(redirected: str, code: int) -> None:
    line = f'exec "$0" -m sharddsl schema {redirected}'
    done = subprocess.run(["/bin/sh", "-c", line, sys.executable], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == code
    assert done.stderr == (b"" if code == 0 else b"sharddsl: No space left on device\n")


def test_what_an_error_quotes_does_nothing_to_a_terminal(capsys: Capture) -> None:
    assert main(["show", "model=llama_tiny", "spec='./\x1b[31m\u202e.shard'"]) == 2
    assert capsys.readouterr().err.startswith("sharddsl: cannot read the spec \ufffd[31m\ufffd.shard:")


def test_a_file_that_cannot_be_used_is_no_internal_error(capsys: Capture) -> None:
    assert failure.report(PermissionError(13, "Permission denied", "/a/b")) == 2
    assert capsys.readouterr().err == "sharddsl: /a/b: Permission denied\n"


@pytest.mark.parametrize("given", [("--info",), ("-i",), ("--info", "all"), ("--info=all",)])
def test_info_is_about_everything_if_nothing_is_said(
    given: tuple[str, ...], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hydra leaves the root logger at DEBUG, with a handler of its own; a sweep in the same process then fails.
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    assert main(["show", *given, "model=llama_tiny", "spec=llama/fsdp"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Hydra ")
    assert "Defaults Tree" in out


@pytest.mark.parametrize("argv", ["show --info model=llama_tiny spec=llama/fsdp", "-sc install=bash"])
def test_a_reader_of_what_hydra_prints_may_go_away(argv: str) -> None:
    line = f"set -o pipefail; {sys.executable} -m sharddsl {argv} | exec 0<&-"
    done = subprocess.run(["/bin/bash", "-c", line], cwd=ROOT, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


@pytest.mark.parametrize("argv", [["--help"], ["show", "--help"], ["generate", "--help"]])
def test_help_fits_a_page(argv: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with contextlib.suppress(SystemExit):
        main(argv)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_a_long_line_about_wrong_usage_is_broken_at_spaces(capsys: Capture) -> None:
    assert main(["show", "spec=llama/fsdp"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 100
    assert (
        lines[0] == "sharddsl: no model given; write model=NAME, or weights=PATH, for the model that the weights state"
    )
    assert lines[1].startswith("  NAME is one of: llama2_13b, ")
    assert all(line.startswith(("    llama", "    smollm")) for line in lines[2:])
