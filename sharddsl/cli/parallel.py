"""Many specs linted by several processes: what comes out, and in which order, is what one would say."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sharddsl.cli.linting import Linted, Wanted, content_of, lint, with_baseline
from sharddsl.findings import UsageError

MOST_JOBS = 256
_MANY_FILES = 64
_MANY_BYTES = 2**18
"""From so many files, or bytes in two or more, on a second process saves more than its start takes: about as long as
20 small files (`benchmarks/lint.py`)."""
_LARGEST_CHUNK = 16
"""Specs that a process takes at once: enough that what goes between processes is little, and few enough that none is
left with the last of them for long."""

_Item = tuple[str | Path, bytes | None]


def lint_all(refs: Sequence[str | Path], wanted: Wanted, jobs: int | None = None) -> list[Linted]:
    """The report on each spec, without its cases. `jobs` is how many processes do it; if None, one for each core where
    that pays. Raises what the first spec that cannot be linted raises."""
    items: list[_Item] = [(ref, content_of(ref)) for ref in refs]
    jobs = min(len(refs) - 1, _jobs(refs) if jobs is None else jobs)
    wanted, baseline = replace(wanted, baseline=None), wanted.baseline
    if jobs < 2:
        each = [_one(item, wanted) for item in items]
    else:
        # what the first one makes this process load and build, the others, which are copies of it, have
        first = _one(items[0], wanted)
        each = [first, *_by_others(items[1:], wanted, jobs)]
    return each if baseline is None else [with_baseline(linted, baseline) for linted in each]


def _one(item: _Item, wanted: Wanted) -> Linted:
    ref, content = item
    return replace(lint(ref, wanted, content), cases=())


def _jobs(refs: Sequence[str | Path]) -> int:
    """How many processes pay for these."""
    many = len(refs) >= _MANY_FILES or sum(_size(ref) for ref in refs) >= _MANY_BYTES
    return _cores() if many else 1


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _size(ref: str | Path) -> int:
    try:
        return os.stat(ref).st_size if isinstance(ref, Path) else 0
    except OSError:  # who reads it says why
        return 0


# -------------------------------------------------------------------------------------------------------- the processes


def _by_others(items: Sequence[_Item], wanted: Wanted, jobs: int) -> Iterator[Linted]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    size = max(1, min(_LARGEST_CHUNK, len(items) // (4 * jobs)))
    chunks = [items[start : start + size] for start in range(0, len(items), size)]
    context = multiprocessing.get_context("fork" if _may_fork() else "spawn")
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(wanted,))
    try:
        with _interrupts_withheld():
            found = [pool.submit(_several, chunk) for chunk in chunks]
        for several in found:
            yield from several.result()
    except BrokenProcessPool:
        raise UsageError("lint: one of its processes was ended, perhaps for want of memory; try --jobs 1") from None
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown()  # nothing is cancelled: a pool that lost its processes fails over what is (Python 3.11)


def _may_fork() -> bool:
    """Whether a copy of this process is whole: a thread is not copied, and whoever waits for what it holds waits for
    ever. Where the threads cannot be counted new processes are started instead."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


@contextmanager
def _interrupts_withheld() -> Iterator[None]:
    """Processes that are started within never see Ctrl-C, which the terminal sends to all: the first one ends them."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_wanted: Wanted
"""In a process that lints for another: what that one wants. A pool gives its processes no other place for it."""


def _begin(wanted: Wanted) -> None:
    """In a new process: it ends with the one that it works for, however that ends."""
    import gc
    import multiprocessing
    from threading import Thread

    global _wanted  # noqa: PLW0603
    _wanted = wanted
    gc.disable()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _several(items: Sequence[_Item]) -> list[Linted]:
    return [_one(item, _wanted) for item in items]
