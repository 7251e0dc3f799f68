"""Where the figures of a run are kept: a CSV file, TensorBoard's event files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from sharddsl.findings import UsageError

COLUMNS = ("step", "loss", "grad_norm", "lr", "tokens", "tokens/s", "step_time", "memory", "mfu")


class Sink(Protocol):
    """Keeps the figures of one step."""

    def __call__(self, figures: Mapping[str, float], /) -> None: ...


def check(csv_file: str | None, tensorboard: str | None) -> None:
    """Raises `UsageError` for what `sinks` could not write. Nothing is written: a run is told before it waits for jax
    or for weights."""
    if csv_file is not None:
        check_new_file("--csv", Path(csv_file).expanduser())
    if tensorboard is not None:
        check_folder("--tensorboard", Path(tensorboard).expanduser())
        _writer()


def check_new_file(option: str, path: Path) -> None:
    """Raises `UsageError`, in the option's name, for a file that is there already or cannot be made."""
    if path.exists():
        raise _is_there(option, path)
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)):
        raise unwritable(option, path, f"{path.parent} is no folder that can be written")


def check_folder(option: str, folder: Path) -> None:
    """Raises `UsageError`, in the option's name, for a folder that can neither be made nor written into."""
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        raise unwritable(option, folder, f"{nearest} is no folder that can be written")


@contextmanager
def sinks(csv_file: str | None, tensorboard: str | None) -> Iterator[list[Sink]]:
    """Those that were asked for, open until the end of the block. Each step is written at once, so that a run that is
    stopped keeps what it measured; a CSV file without any step is not left behind. Raises `UsageError` for what cannot
    be written, before anything is."""
    with ExitStack() as stack:
        found: list[Sink] = []
        if csv_file is not None:
            found.append(stack.enter_context(_csv(Path(csv_file).expanduser())))
        if tensorboard is not None:
            found.append(stack.enter_context(_tensorboard(Path(tensorboard).expanduser())))
        yield found


@contextmanager
def _csv(path: Path) -> Iterator[Sink]:
    try:
        file = path.open("x", newline="", encoding="utf-8")
    except FileExistsError:
        raise _is_there("--csv", path) from None
    except OSError as error:
        raise unwritable("--csv", path, error.strerror) from None
    rows = 0

    def keep(figures: Mapping[str, float]) -> None:
        nonlocal rows
        try:
            writer.writerow(dict(figures))
            file.flush()
        except OSError as error:  # a disk that is full, as a rule
            raise unwritable("--csv", path, error.strerror) from None
        rows += 1

    try:
        with file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            yield keep
    finally:
        if not rows:  # else the next try would find a file that is there already
            path.unlink(missing_ok=True)


@contextmanager
def _tensorboard(folder: Path) -> Iterator[Sink]:
    make = _writer()
    try:
        writer: Any = make(str(folder))
    except OSError as error:
        raise unwritable("--tensorboard", folder, error.strerror) from None

    def keep(figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            if name != "step":
                writer.add_scalar(f"train/{name}", value, int(figures["step"]))
        writer.flush()

    try:
        yield keep
    finally:
        writer.close()


def _writer() -> Any:
    """What writes TensorBoard's event files."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UsageError("--tensorboard needs the package tensorboardX: pip install 'sharddsl[tensorboard]'") from None
    return SummaryWriter


def _is_there(option: str, path: Path) -> UsageError:
    return UsageError(f"{option} {path}: it is there already; give another name, or remove it")


def unwritable(option: str, path: Path, why: str | None) -> UsageError:
    """What an option's file or folder cannot be written for."""
    return UsageError(f"{option} {path}: it cannot be written ({why})")
