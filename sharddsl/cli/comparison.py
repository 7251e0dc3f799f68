"""Runs of training beside each other: what each cost, as a table and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sharddsl.config.schema import Config
from sharddsl.layout.model import MeshSizes
from sharddsl.layout.words import bytes_text

if TYPE_CHECKING:
    from sharddsl.train.loop import Record
    from sharddsl.train.metrics import Gauge

_KEY = """\
step: the median, and what half of the steps took; tokens/s: of all devices together
memory: all that a step takes on a device, params and optimizer state (state) among it"""

VERSION = 1
"""Of the data. It changes when a reader of the former would misread it."""


@dataclass(frozen=True)
class Measured:
    """One run. `label` tells it from the others; `config` has its batch and sequence length. `trace_seconds` is tracing
    and lowering, `compile_seconds` what XLA takes from there. `state_bytes` are of params and optimizer state, on the
    device that holds most. `steps` are all that were done, the first included."""

    label: str
    config: Config
    mesh: MeshSizes
    trace_seconds: float
    compile_seconds: float
    state_bytes: int
    gauge: Gauge
    steps: Sequence[Record]

    @property
    def seconds(self) -> list[float]:
        """Of each step but the first, which waits for what is loaded once; of that one where it is the only one."""
        return [step.seconds for step in self.steps[1:] or self.steps]

    @property
    def typical(self) -> float:
        """The median seconds of a step."""
        return median(self.seconds)

    @property
    def middle_half(self) -> tuple[float, float]:
        """The quartiles of a step's seconds: half of the steps took between the one and the other."""
        if len(self.seconds) < 2:
            return self.typical, self.typical
        low, _, high = quantiles(self.seconds, n=4, method="inclusive")
        return low, high

    @property
    def tokens_per_second(self) -> float:
        """Of all devices together."""
        return self.gauge.tokens_per_step / self.typical

    @property
    def memory_bytes(self) -> int:
        """All that a step takes on a device, by the compiler's plan: what a backend measures is the most that any run
        of the process took."""
        return self.gauge.planned_bytes


def to_text(runs: Sequence[Measured], width: int) -> str:
    """A table of so many columns, the first run's speed as the measure of the others', and whether all learnt the
    same."""
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("", overflow="fold")
    for heading in ("compile\ntrace", "step\nmiddle half", "tokens/s\nrelative", "memory\nstate", "loss"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in runs:
        if run is not runs[0]:
            table.add_row()
        low, high = run.middle_half
        table.add_row(
            "\n".join((*run.label.split(" "), str(run.mesh))),
            f"{run.compile_seconds:.1f} s\n{run.trace_seconds:.1f} s",
            f"{_seconds(run.typical)}\n{_seconds(low)} – {_seconds(high)}",
            f"{run.tokens_per_second:,.0f}\n{runs[0].typical / run.typical:.2f}×",
            f"{bytes_text(run.memory_bytes)}\n{bytes_text(run.state_bytes)}",
            f"{run.steps[-1].loss:.4f}",
        )
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as printed:
        console.print(table)
    lines = [line.rstrip() for line in printed.get().splitlines()]
    lines += ["", _KEY]
    if (said := _agreement(runs)) is not None:
        lines.append(said)
    return "\n".join(lines)


def _seconds(value: float) -> str:
    """Three digits that count, or more: `12.34 s`, `0.123 s`, `0.0123 s`."""
    return f"{value:.{2 if value >= 10 else 3 if value >= 0.1 else 4}f} s"


def _agreement(runs: Sequence[Measured]) -> str | None:
    """How far apart the last losses are; None for runs that are not meant to have the same."""
    if len(runs) < 2 or any(_task(run) != _task(runs[0]) for run in runs):
        return None
    losses = [run.steps[-1].loss for run in runs]
    apart = max(losses) - min(losses)
    return f"the losses of step {len(runs[0].steps)} are {f'within {apart:.1g} of each other' if apart else 'equal'}"


def _task(run: Measured) -> tuple[Any, ...]:
    """What decides the losses: all but how the work is shared out and what is computed again."""
    config = run.config
    learnt = config.run.model_copy(update={"remat": "none", "scan": True, "accum": 1})
    return config.model, learnt, config.data, config.weights, len(run.steps)


def to_json(runs: Sequence[Measured], about: Mapping[str, Any]) -> dict[str, Any]:
    """The runs as data, seconds and bytes; `about` is what they have in common."""
    return {"version": VERSION, **about, "runs": [_as_data(run) for run in runs]}


def _as_data(run: Measured) -> dict[str, Any]:
    low, high = run.middle_half
    return {
        "label": run.label,
        "model": run.config.model.model_dump(mode="json"),
        "run": run.config.run.model_dump(mode="json"),
        "mesh": dict(run.mesh.sizes),
        "trace_seconds": run.trace_seconds,
        "compile_seconds": run.compile_seconds,
        "step_seconds": {"median": run.typical, "quartiles": [low, high], "all": [step.seconds for step in run.steps]},
        "tokens_per_second": run.tokens_per_second,
        "mfu": run.gauge.utilisation(run.typical),
        "state_bytes_per_device": run.state_bytes,
        "memory_bytes_per_device": run.memory_bytes,
        "losses": [step.loss for step in run.steps],
    }
