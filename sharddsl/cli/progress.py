"""What is going on, on stderr: a bar or a spinner on a terminal, plain lines elsewhere, nothing under `--quiet`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

_SLOW = 1.0
"""Seconds. What takes less is not worth a line in a log."""
_EVERY = 5.0
"""Seconds between two lines about the same piece of work."""


class Progress(Protocol):
    """Where a command tells what it does. `amount` fits what downloads and readers of weights call back with."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def step(self, what: str) -> AbstractContextManager[None]:
        """Work of unknown length: `with progress.step("compiling"):`."""

    def amount(self, what: str, done: int, total: int) -> None:
        """`done` of `total` bytes; a `total` of 0 is not known."""


def progress(quiet: bool) -> Progress:
    """The one that suits stderr."""
    if quiet:
        return Silent()
    return Terminal() if sys.stderr.isatty() else Lines()


class Silent:
    """Says nothing."""

    def say(self, line: str) -> None:
        pass

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        yield

    def amount(self, what: str, done: int, total: int) -> None:
        pass


class Lines:
    """Lines for a log: what began, and how far it is every few seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic() - _EVERY
        self._finished = ""

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        self.say(f"{what} …")
        start = time.monotonic()
        yield
        if (taken := time.monotonic() - start) >= _SLOW:
            self.say(f"{what}: done in {taken:.1f} s")

    def amount(self, what: str, done: int, total: int) -> None:
        now, ended = time.monotonic(), 0 < total <= done
        if (ended and what != self._finished) or (not ended and now - self._last >= _EVERY):
            self._last = now
            self._finished = what if ended else ""
            self.say(f"{what}: {_megabytes(done, total)}")


class Terminal:
    """Bars and spinners that vanish when their work is done."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._bar: _Bar | None = None

    def say(self, line: str) -> None:
        self._close()
        self._console.print(line, markup=False, soft_wrap=True)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        self._close()
        with self._console.status(what):
            yield

    def amount(self, what: str, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = _Bar(self._console)
        self._bar.update(what, done, total)
        if total and done >= total:
            self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Bar:
    """One bar of rich's, from the first call of an amount to its last."""

    def __init__(self, console: object) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        assert isinstance(console, Console)
        # What changes its length stands last, or the bar would jump sideways.
        columns = BarColumn(), TimeElapsedColumn(), DownloadColumn(), TextColumn("{task.description}", markup=False)
        self._bars = Bars(*columns, console=console, transient=True)
        self._task = self._bars.add_task("", total=None)
        self._bars.start()

    def update(self, what: str, done: int, total: int) -> None:
        self._bars.update(self._task, description=what, completed=done, total=total or None)

    def close(self) -> None:
        self._bars.stop()


def _megabytes(done: int, total: int) -> str:
    of = f" of {total / 1e6:.1f}" if total else ""
    return f"{done / 1e6:.1f}{of} MB"
