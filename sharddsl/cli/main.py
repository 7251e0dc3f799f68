"""The `sharddsl` program: finds the command and runs it. Nothing heavy is imported before the command is known.

Exit codes: 0 clean, 1 findings, 2 usage or internal error, 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sharddsl.cli.failure import report
from sharddsl.findings import UsageError

COMMANDS = {
    "show": "print where every tensor of a model lies: its axes, local shape, bytes and rule",
    "lint": "find what is wrong with specs, without compiling them",
    "fmt": "write specs in the one style",
    "diff": "tell which tensors change layout between two versions of a spec",
    "rule": "print what a finding means, with examples, and how to mend it",
    "train": "train a model that is placed by a spec",
    "bench": "compare specs by training with each: compile time, step time, memory",
    "generate": "generate text with a model that is placed by a spec",
    "schema": "print the JSON schema of a validated spec",
}

_LONG_RUNNING = frozenset({"generate", "train", "bench"})

_USAGE = f"""\
usage: sharddsl COMMAND [OPTIONS] [OVERRIDES]

commands:
{chr(10).join(f"  {name:<10} {what}" for name, what in COMMANDS.items())}

  sharddsl COMMAND --help    a command's options
  sharddsl --version         this program's version

completion (bash): eval "$(sharddsl -sc install=bash)"
"""


def entry() -> NoReturn:
    """The console script."""
    gc.disable()  # a cold start allocates much and frees nothing; commands that run longer turn it on again
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else every installed package is asked for some
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a character must not end the program
            stream.reconfigure(errors="backslashreplace")
    code = main(sys.argv[1:])
    if code == 130:
        from sharddsl.cli.interrupts import leave

        leave()
    gc.freeze()  # else the interpreter walks every object once more before it ends
    sys.exit(code)


def _open_closed_streams() -> None:
    """Give each stream that the caller closed (`sharddsl … >&-`) the null device: what is written there goes nowhere,
    and no file that is opened later takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def main(argv: Sequence[str]) -> int:
    """Run one command line; its exit code. Whatever goes wrong is reported on stderr, in a line or as findings."""
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit must not fail again
        return 141
    except Exception as error:
        return report(error)


def _dispatch(argv: Sequence[str]) -> int:
    match argv:
        case [command, *rest] if command in COMMANDS:
            return _run(command, rest)
        case ["-sc" | "--shell-completion", *rest]:
            from sharddsl.cli import completion

            return completion.main(rest)
        case ["--version"]:
            print(f"sharddsl {_version()}")
            return 0
        case [] | ["-h" | "--help", *_]:
            print(_USAGE, end="")
            return 0 if argv else 2
        case [other, *_]:
            raise _unknown_command(other)
    raise AssertionError(argv)


def _run(command: str, rest: Sequence[str]) -> int:
    """The command's module is named like the command, and imported only now."""
    from importlib import import_module

    if command in _LONG_RUNNING:
        gc.enable()
    code: int = import_module(f"sharddsl.cli.{command}").main(rest)
    return code


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("sharddsl")
    except PackageNotFoundError:
        return "(not installed)"


def _unknown_command(word: str) -> UsageError:
    from difflib import get_close_matches

    close = get_close_matches(word, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean `{close[0]}`?" if close else f"commands: {', '.join(COMMANDS)}"
    return UsageError(f"there is no command `{word}`; {hint}")
