"""Where the figures of a run are kept: a CSV file, TensorBoard's event files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from sharddsl.findings import UsageError

COLUMNS = ("step", "loss", "grad_norm", "lr", "tokens", "tokens/s", "step_time", "mfu")


class Sink(Protocol):
    """Keeps the figures of one step."""

    def __call__(self, figures: Mapping[str, float], /) -> None: ...


@contextmanager
def sinks(csv_file: str | None, tensorboard: str | None) -> Iterator[list[Sink]]:
    """Those that were asked for, open until the end of the block. Each step is written at once, so that a run that is
    stopped keeps what it measured. Raises `UsageError` for what cannot be written, before anything is."""
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
        raise UsageError(f"--csv {path}: it is there already; give another name, or remove it") from None
    except OSError as error:
        raise UsageError(f"--csv {path}: it cannot be written ({error.strerror})") from None
    with file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()

        def keep(figures: Mapping[str, float]) -> None:
            writer.writerow(dict(figures))
            file.flush()

        yield keep


@contextmanager
def _tensorboard(folder: Path) -> Iterator[Sink]:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UsageError("--tensorboard needs the package tensorboardX: pip install 'sharddsl[tensorboard]'") from None
    try:
        writer: Any = SummaryWriter(str(folder))
    except OSError as error:
        raise UsageError(f"--tensorboard {folder}: it cannot be written ({error.strerror})") from None

    def keep(figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            if name != "step":
                writer.add_scalar(f"train/{name}", value, int(figures["step"]))
        writer.flush()

    try:
        yield keep
    finally:
        writer.close()
