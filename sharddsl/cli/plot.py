"""A picture of runs beside each other: speed to the left, memory to the right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sharddsl.cli.comparison import Measured
from sharddsl.findings import UsageError
from sharddsl.train.records import check_new_file, unwritable

_OPTION = "--plot"
_SPEED, _STATE, _REST = "#4c72b0", "#55a868", "#c7e3cd"


def check(target: str) -> None:
    """Raise `UsageError` for a picture that could not be made. Nothing is written."""
    path = Path(target).expanduser()
    kinds = _figure().canvas.get_supported_filetypes()
    if _kind(path) not in kinds:
        raise UsageError(f"{_OPTION} {path}: the end of the name says the kind: {', '.join(sorted(kinds))}")
    check_new_file(_OPTION, path)


def save(runs: Sequence[Measured], title: str, target: str) -> None:
    """Draw the runs into a new file, whose suffix says its kind. Raises `UsageError` where it cannot be written."""
    path = Path(target).expanduser()
    figure = _drawn(runs, title)
    try:
        with path.open("xb") as file:
            figure.savefig(file, format=_kind(path))
    except OSError as error:
        raise unwritable(_OPTION, path, error.strerror) from None


def _kind(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()


def _drawn(runs: Sequence[Measured], title: str) -> Any:
    figure = _figure(figsize=(10, 1.6 + 0.5 * len(runs)), dpi=150, layout="constrained")
    figure.suptitle(title, fontsize=11)
    speed, memory = figure.subplots(1, 2, sharey=True)
    names = [f"{run.label}\n{run.mesh}" for run in runs]
    rows = range(len(runs))

    rates = [run.tokens_per_second for run in runs]
    ends = [tuple(run.gauge.tokens_per_step / seconds for seconds in run.middle_half) for run in runs]
    spread = [[rate - slow for rate, (_, slow) in zip(rates, ends, strict=True)],
              [fast - rate for rate, (fast, _) in zip(rates, ends, strict=True)]]  # fmt: skip
    bars = speed.barh(rows, rates, xerr=spread, color=_SPEED, error_kw={"capsize": 3, "elinewidth": 1})
    speed.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=4)
    speed.set_xlabel("tokens/s: the median step, and the middle half of them")
    speed.set_yticks(rows, names)
    speed.invert_yaxis()
    speed.margins(x=0.2)

    state = [run.state_bytes / 2**20 for run in runs]
    whole = [run.memory_bytes / 2**20 for run in runs]
    rest = [all_of - held for all_of, held in zip(whole, state, strict=True)]
    memory.barh(rows, state, color=_STATE, label="params and optimizer state")
    bars = memory.barh(rows, rest, left=state, color=_REST, label="the rest of a step")
    memory.bar_label(bars, [f"{all_of:,.1f}" for all_of in whole], padding=4)
    memory.set_xlabel("MiB per device")
    memory.margins(x=0.2)
    figure.legend(*memory.get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False)
    for axes in (speed, memory):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _figure(**how: Any) -> Any:
    """matplotlib's, without its global state of figures and windows."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(f"{_OPTION} needs the package matplotlib: pip install 'sharddsl[plot]'") from None
    return Figure(**how)
