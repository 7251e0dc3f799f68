"""Ctrl-C during work that must end cleanly.

Python raises `KeyboardInterrupt` wherever it happens to be. Within a callback of JAX it is printed and dropped, or it
comes out as another error. So that one is never lost it is noted too, and looked at where it is safe to stop.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Whether there was one."""

    def __init__(self) -> None:
        self._seen = self._held = False

    def check(self) -> None:
        """Raises `KeyboardInterrupt` if there was one, whatever became of it."""
        if self._seen:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within this block the first one waits for `check`; a second one is raised at once."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def note(self, number: int, frame: Any) -> None:
        """The signal's handler."""
        first, self._seen = not self._seen, True
        if not (first and self._held):
            raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Notes those that come within the block. An error that one was turned into is one again."""
    noted = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # a shell's background job
        yield noted
        return
    signal.signal(signal.SIGINT, noted.note)
    try:
        yield noted
    except Exception:
        noted.check()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
