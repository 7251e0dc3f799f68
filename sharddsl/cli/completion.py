"""Tab completion: of commands and their options here, of overrides by Hydra.

`eval "$(sharddsl -sc install=bash)"` prints Hydra's script, which then asks `sharddsl -sc query=bash` with the line so
far in COMP_LINE. Hydra knows neither commands nor their options, so what it gets is a line of overrides alone.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence

from sharddsl.cli.arguments import Parser
from sharddsl.config.jobs import Job, Request
from sharddsl.findings import UsageError

_DEFAULT_RUN = {"show": "train", "generate": "generate", "train": "train", "bench": "train"}
"""The commands that take overrides, with the run config that each has by default."""

_OF_FILES = frozenset({"lint", "fmt", "diff"})
_OF_CODES = frozenset({"rule"})
_TAKE_CODES = frozenset({"--select", "--ignore", "--explain"})


def main(argv: Sequence[str]) -> int:
    match argv:
        case ["query=bash" | "query=fish" | "query=zsh"]:
            return _query(argv, os.environ.get("COMP_LINE", ""))
        case [str(action)] if action.startswith(("install=", "uninstall=")):
            return _ask_hydra(argv, "show")
    raise UsageError("shell completion takes `install=SHELL` or `uninstall=SHELL`: bash, fish or zsh")


def _query(argv: Sequence[str], line: str) -> int:
    """Print the words that may stand where the line ends. A line that cannot be read gets none."""
    from sharddsl.cli.main import COMMANDS

    program, _, line = line.lstrip().partition(" ")
    command, space, rest = line.lstrip().partition(" ")
    if not space:
        return _offer(COMMANDS, command)
    if command not in _DEFAULT_RUN and command not in _OF_FILES | _OF_CODES:
        return 0
    before, _, begun = rest.rpartition(" ")
    parser = _parser(command)
    if begun.startswith("-"):
        return _offer(parser.long_options, begun)
    if command in _OF_CODES or before.rpartition(" ")[2] in _TAKE_CODES:
        from sharddsl.findings import NAMES

        return _offer([*NAMES, *NAMES.values()], begun)
    if command in _OF_FILES:
        return 0  # the shell offers files
    try:
        overrides = parser.parse(shlex.split(before)).overrides
    except (ValueError, UsageError):  # within quotes, or within the value of an option
        return 0
    # Hydra takes a line apart at its spaces, whatever is quoted.
    os.environ["COMP_LINE"] = " ".join([program, *(word for word in overrides if " " not in word), begun])
    return _ask_hydra(argv, command)


def _offer(words: Iterable[str], begun: str) -> int:
    print(" ".join(word for word in words if word.startswith(begun)))
    return 0


def _parser(command: str) -> Parser:
    from sharddsl.cli import bench, diff, fmt, generate, lint, rule, show, train

    makers = {
        "diff": diff.make_parser,
        "fmt": fmt.make_parser,
        "lint": lint.make_parser,
        "rule": rule.make_parser,
        "show": show.make_parser,
        "generate": generate.make_parser,
        "train": train.make_parser,
        "bench": bench.make_parser,
    }
    return makers[command]()


def _ask_hydra(argv: Sequence[str], command: str) -> int:
    from sharddsl.config import app

    return app.run(Request(command, _DEFAULT_RUN[command], tuple(argv), ("--shell-completion",)), _nothing)


def _nothing(job: Job) -> int:
    raise AssertionError(job)  # Hydra completes without running a job
