"""A run's steps as they are done: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TextIO

from sharddsl.layout.words import bytes_text

_FORMATS = {
    "step": "d", "loss": ".5f", "grad_norm": ".4g", "lr": ".3g", "tokens": ".0f", "tokens/s": ".0f", "mfu": ".1%",
}  # fmt: skip


class Steps(Protocol):
    """Where a run's steps are shown."""

    def show(self, figures: Mapping[str, float]) -> None:
        """One step is done."""

    def close(self) -> None:
        """No more come."""


def steps_for(out: TextIO, steps: int, every: int) -> Steps:
    """The one that suits where they are written."""
    return Bar(steps) if out.isatty() else Lines(out, steps, every)


def line_of(figures: Mapping[str, float]) -> str:
    """`step=1 loss=6.23456 grad_norm=3.708 …`."""
    return " ".join(f"{name}={_text(name, value)}" for name, value in figures.items())


def _text(name: str, value: float) -> str:
    match name:
        case "step_time":
            return f"{value:.4f}s"
        case "memory":
            return f"{value / 2**20:.1f}MiB"
    return format(value, _FORMATS[name])


class Lines:
    """A line every so many steps, and of the first and the last."""

    def __init__(self, out: TextIO, steps: int, every: int) -> None:
        self._out, self._steps, self._every = out, steps, every

    def show(self, figures: Mapping[str, float]) -> None:
        step = int(figures["step"])
        if step in (1, self._steps) or step % self._every == 0:
            print(line_of(figures), file=self._out, flush=True)

    def close(self) -> None:
        pass


class Bar:
    """A bar that stays when the run is done."""

    def __init__(self, steps: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = MofNCompleteColumn(), BarColumn(bar_width=20), TimeRemainingColumn(), TextColumn("{task.description}")
        self._bars = Progress(*columns, console=Console(highlight=False))
        self._task = self._bars.add_task("", total=steps)
        self._bars.start()

    def show(self, figures: Mapping[str, float]) -> None:
        shown = f"loss {figures['loss']:.4f}, {figures['tokens/s']:,.0f} tokens/s"
        if "mfu" in figures:
            shown += f", {figures['mfu']:.1%} MFU"
        shown += f", {bytes_text(int(figures['memory']))} per device"
        self._bars.update(self._task, completed=int(figures["step"]), description=shown)

    def close(self) -> None:
        self._bars.stop()
