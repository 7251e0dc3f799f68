"""Tab completion: Hydra's own, told which command it completes.

`eval "$(sharddsl -sc install=bash)"` prints Hydra's script, which then asks `sharddsl -sc query=bash` with the line so
far in COMP_LINE. Hydra knows no commands, so the command is taken out of the line first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from sharddsl.config.jobs import Job, Request
from sharddsl.findings import UsageError

_DEFAULT_RUN = {"show": "train", "generate": "generate"}
"""The commands that take overrides, with the run config that each has by default."""


def main(argv: Sequence[str]) -> int:
    from sharddsl.cli.main import COMMANDS
    from sharddsl.config import app

    match argv:
        case ["query=bash" | "query=fish" | "query=zsh"]:
            program, _, line = os.environ.get("COMP_LINE", "").lstrip().partition(" ")
            command, space, rest = line.lstrip().partition(" ")
            if not space:
                print(" ".join(name for name in COMMANDS if name.startswith(command)))
                return 0
            if command not in _DEFAULT_RUN:
                return 0
            os.environ["COMP_LINE"] = f"{program} {rest}"
        case [str(action)] if action.startswith(("install=", "uninstall=")):
            command = "show"
        case _:
            raise UsageError("shell completion takes `install=SHELL` or `uninstall=SHELL`: bash, fish or zsh")
    flags = ("--shell-completion",)
    return app.run(Request(command, _DEFAULT_RUN[command], tuple(argv), flags), _nothing)


def _nothing(job: Job) -> int:
    raise AssertionError(job)  # Hydra completes without running a job
