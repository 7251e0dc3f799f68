"""What a user sees of a failure: findings, a line, and a traceback only where one was asked for."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from sharddsl.findings import ShardError, UsageError, printable

if TYPE_CHECKING:
    from sharddsl.config.jobs import Job, Task


_WIDEST = 100
"""Columns of a line about wrong usage."""


_ROOM = "remedy: a layout that splits more, a smaller run.batch or run.seq, run.accum=2 or run.remat=full take less"


def report(error: Exception) -> int:
    """Say on stderr what went wrong; the exit code. `SHARDDSL_TRACEBACK=1` adds the traceback."""
    if os.environ.get("SHARDDSL_TRACEBACK") == "1":
        import traceback

        traceback.print_exception(error)
    if isinstance(error, ShardError):
        print(error, file=sys.stderr)
        return 1
    if isinstance(error, UsageError):
        print(_folded(printable(f"sharddsl: {error}")), file=sys.stderr)
        return 2
    if isinstance(error, OSError):
        what = f"{error.filename}: " if error.filename else ""
        print(printable(f"sharddsl: {what}{error.strerror or error}"), file=sys.stderr)
        return 2
    name = type(error).__name__
    if name in ("JaxRuntimeError", "XlaRuntimeError") and "RESOURCE_EXHAUSTED" in str(error):
        what = str(error).partition("RESOURCE_EXHAUSTED:")[2].strip().split("\n")[0]
        print(_folded(printable(f"sharddsl: a device has not enough memory: {what}\n  {_ROOM}")), file=sys.stderr)
        return 2
    print(printable(f"sharddsl: internal error: {name}: {error} (SHARDDSL_TRACEBACK=1 shows where)"), file=sys.stderr)
    return 2


def _folded(text: str) -> str:
    """The text with its long lines broken at spaces, each continued two columns to the right of where it began."""
    from textwrap import wrap

    lines = []
    for line in text.split("\n"):
        margin = " " * (len(line) - len(line.lstrip(" ")) + 2)
        fits = len(line) <= _WIDEST
        lines += (
            [line]
            if fits
            else wrap(line, _WIDEST, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
        )
    return "\n".join(lines)


def guarded(task: Task) -> Task:
    """The task with its failures reported, so that one job's failure does not end a multirun."""

    def run(job: Job) -> int:
        try:
            return task(job)
        except BrokenPipeError:
            raise
        except Exception as error:
            announce(job)
            return report(error)

    return run


def announce(job: Job) -> None:
    """Name a job of a multirun on stderr, before what is said about it there."""
    if job.overrides is not None:
        print(f"{' '.join(job.overrides)}:", file=sys.stderr)
