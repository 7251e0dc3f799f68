"""Ctrl-C in a program whose work is done by native code.

Python raises `KeyboardInterrupt` in the main thread, wherever that is. While jax is imported, or while it traces or
compiles, that may be in a callback of C++, where it is dropped, comes out as another error, or ends the process by
SIGABRT or SIGSEGV (jaxlib 0.10.2, and so does the end of the interpreter after it); and as long as a compile lasts it
is not raised at all. So here a thread waits for the signal. Where there are steps that should be whole it makes a note,
which is looked at between them; everywhere else it says the last words and ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread, Timer
from typing import NoReturn

CODE = 130
"""The exit code of a process that was interrupted, as shells have it: 128 and the signal's number."""
_PATIENCE = 5.0
"""Seconds that the last words may take: a reader of the output may have stopped reading."""
_SHOW_CURSOR = "\x1b[?25h"


class Interrupts:
    """Whether there was one."""

    def __init__(self, last_words: Callable[[], None]) -> None:
        self._last_words = last_words
        self._seen = self._held = False

    def check(self) -> None:
        """Raises `KeyboardInterrupt` if there was one."""
        if self._seen:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within this block the first one waits for `check`. A second one does not wait."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def watch(self, signals: int) -> None:
        """Act on the numbers of the signals that come out of this pipe, until it is closed."""
        with os.fdopen(signals, "rb", buffering=0) as pipe:
            while number := pipe.read(1):
                if number[0] != signal.SIGINT:
                    continue
                first, self._seen = not self._seen, True
                if not (first and self._held):
                    leave(self._last_words)


@contextmanager
def interrupts(last_words: Callable[[], None] = lambda: None) -> Iterator[Interrupts]:
    """Watches for those that come within the block, which the main thread must enter. `last_words` is called by another
    thread."""
    noted = Interrupts(last_words)
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # a shell's background job
        yield noted
        return
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    fd_before = signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _nothing)
    Thread(target=noted.watch, args=[readable], daemon=True).start()
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(fd_before)
        os.close(writable)


def leave(last_words: Callable[[], None] = lambda: None) -> NoReturn:
    """End the process as one that was interrupted, without the interpreter's own end."""
    timer = Timer(_PATIENCE, os._exit, [CODE])
    timer.daemon = True
    timer.start()
    with suppress(Exception):
        for stream in (sys.stdout, sys.stderr):
            if stream.isatty():  # a bar or a spinner hides it
                print(_SHOW_CURSOR, file=stream)
    with suppress(Exception):
        last_words()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(CODE)


def _nothing(number: int, frame: object) -> None:
    """Python's part of the handler. That it has one makes it write the signal's number into the pipe."""
