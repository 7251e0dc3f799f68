"""Step after step, and what each one measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import jax
import numpy as np

from sharddsl.findings import UsageError
from sharddsl.train.data.batch import Batch
from sharddsl.train.program import Metrics, Program, State, Step

_MOST_LAYERS = 12
"""How many layers' statistics an error lists."""


@dataclass(frozen=True, slots=True)
class Record:
    """One step. `loss` and `grad_norm` as in `Metrics`; `tokens` are the targets that counted; `seconds` is the time
    since the step before was done."""

    step: int
    loss: float
    grad_norm: float
    lr: float
    tokens: int
    seconds: float


class Loop:
    """Runs a compiled step over batches. After each step `state` is the one after it."""

    def __init__(self, program: Program, step: Step, state: State) -> None:
        self._program, self._step, self.state = program, step, state

    def run(self, batches: Iterator[Batch], steps: int) -> Iterator[Record]:
        """A record of each step, in order. A step's figures are read when the next one is under way, so that the device
        never waits for the host. Raises `UsageError` at a loss that is no number."""
        before = time.perf_counter()
        under_way: tuple[int, Metrics] | None = None
        for number in range(1, steps + 1):
            self.state, metrics = self._step(self.state, self._program.place(next(batches)))
            if under_way is not None:
                record, before = _read(*under_way, before)
                yield record
            under_way = number, metrics
        if under_way is not None:
            yield _read(*under_way, before)[0]


def _read(number: int, metrics: Metrics, before: float) -> tuple[Record, float]:
    """The record of a step that began at `before`, and the time at which it was done."""
    loss, tokens, norm, lr = map(float, jax.device_get(metrics[:4]))
    now = time.perf_counter()
    if not (isfinite(loss) and isfinite(norm)):
        raise _not_finite(number, loss, norm, metrics.layers)
    return Record(number, loss, norm, lr, int(tokens), now - before), now


def _not_finite(number: int, loss: float, norm: float, layers: dict[str, Any] | None) -> UsageError:
    what = f"the loss is {loss}" if not isfinite(loss) else f"the norm of the gradients is {norm}"
    text = f"step {number}: {what}: training stops here"
    if layers is None:
        return UsageError(
            f"{text}\n  remedy: --layer-stats shows which layers it comes from; a lower run.lr, a longer run.warmup or "
            "a smaller run.clip may keep it away"
        )
    return UsageError("\n".join([text, *described(layers)]))


def described(layers: dict[str, Any]) -> Iterator[str]:
    """The statistics of each param, one line per layer: those that are not finite first, all others after."""
    rows = []
    for name, found in jax.device_get(layers).items():
        values = [np.atleast_1d(found[key]) for key in ("param", "grad", "finite")]
        stacked = np.ndim(found["finite"]) == 1
        for layer, (param, grad, finite) in enumerate(zip(*values, strict=True)):
            at = name.replace("layers.", f"layers[{layer}].", 1) if stacked else name
            rows.append((bool(finite), at, float(param), float(grad)))
    rows.sort(key=lambda row: row[0])
    bad = sum(not row[0] for row in rows)
    yield f"  {bad} of {len(rows)} params have values that are not finite (root mean squares):"
    for finite, name, param, grad in rows[:_MOST_LAYERS]:
        yield f"    {name:<28} param {param:<12.4g} gradient {grad:<12.4g}{'' if finite else ' not finite'}"
    if len(rows) > _MOST_LAYERS:
        yield f"    … and {len(rows) - _MOST_LAYERS} more"
