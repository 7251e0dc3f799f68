"""One loss curve, whatever the layout: every shipped spec on every mesh of eight devices that its axes can make.

All start from the same weights, see the same four batches and compute in float32. Layouts differ in the order in which
sums are taken: over the rows of the batch, the contracted dims of split weights, the parts of a split vocabulary. A sum
of n terms is off by some √n·2⁻²⁴ of the sum of their sizes; the longest here has 512 (of ffn, and of the vocabulary),
so 1.4e-6 at most, and less in a mean over 96 targets. Adam divides by the gradient's own size, which passes a relative
difference on undiminished. Over three updates we allow some four times that, 5e-6 (measured: 3e-7), where what a wrong
row or a forgotten reduction would do is beyond 1e-3. The norm of the gradients is no mean over many tokens, and its
path bends sharply: it gets 1e-4 (measured: 1e-5).
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod
from typing import Any

import jax
import numpy as np
import pytest

from sharddsl import spec
from sharddsl.train.program import State
from tests.train.small import program, train

Curve = tuple[list[float], list[float]]
STEPS = 4


def cases() -> list[tuple[str, dict[str, int]]]:
    found = []
    for name in spec.list_specs():
        mesh = spec.load(name).checked().mesh
        assert mesh is not None
        for sizes in product((1, 2, 4, 8), repeat=len(mesh.axes)):
            if prod(sizes) == 8:
                found.append((name, dict(zip(mesh.names, sizes, strict=True))))
    return found


CASES = cases()


def test_there_are_ten_specs_and_forty_meshes() -> None:
    assert len({name for name, _ in CASES}) == 10
    assert len(CASES) == 40


@cache
def beginning() -> State:
    """The state of one device before the first step, on the host."""
    state: State = jax.device_get(program("llama/dp", {"dp": 1}).init())
    return state


def curve(name: str, mesh: dict[str, int], lr: float = 3e-3) -> Curve:
    of = program(name, mesh, lr=lr, warmup=1)
    shardings = {
        "params": of.partition.shardings(beginning()["params"]),
        "opt": of.partition.shardings(beginning()["opt"], "opt"),
    }
    _, found = train(of, STEPS, jax.device_put(beginning(), shardings))
    return [float(m.loss) for m in found], [float(m.grad_norm) for m in found]


@cache
def alone() -> Curve:
    return curve("llama/dp", {"dp": 1})


def test_the_reference_moves() -> None:
    """Each of the three updates changes the next loss by far more than the tolerance."""
    losses, norms = alone()
    still, _ = curve("llama/dp", {"dp": 1}, lr=1e-30)
    assert np.all(np.abs(np.subtract(losses[1:], still[1:])) > 1e-2)
    assert np.all(np.isfinite([*losses, *norms]))


def as_parameter(name: str, mesh: dict[str, int]) -> Any:
    """A mesh with an axis of size 1 beside others is one of many."""
    marks = [pytest.mark.exhaustive] if 1 in mesh.values() else []
    return pytest.param(name, mesh, id=f"{name}-{'x'.join(map(str, mesh.values()))}", marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mesh"), [as_parameter(*case) for case in CASES])
def test_one_loss_curve(name: str, mesh: dict[str, int]) -> None:
    losses, norms = curve(name, mesh)
    assert losses == pytest.approx(alone()[0], rel=5e-6)
    assert norms == pytest.approx(alone()[1], rel=1e-4)
