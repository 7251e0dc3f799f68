"""The program against the train step in plain JAX that benchmarks compare it with."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.plain_llama import LAYOUTS, Plain, shapes
from tests.train.small import TINY, begun, program, some_batch

MESHES = {"llama/fsdp_tp": {"fsdp": 2, "mp": 2}, "llama/fsdp": {"fsdp": 4}}


@pytest.mark.parametrize("name", MESHES)
def test_its_layouts_are_those_of_the_shipped_specs(name: str) -> None:
    state, by_hand = program(name, MESHES[name]).abstract_state(), LAYOUTS[name]
    assert jax.tree.map(lambda x: x.shape, state["params"]) == shapes(TINY)
    assert specs(state["params"]) == by_hand.params
    assert specs(state["opt"]["mu"]) == specs(state["opt"]["nu"]) == by_hand.params | by_hand.moments


def specs(tree: Any) -> Any:
    return jax.tree.map(lambda x: x.sharding.spec, tree)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_both_learn_the_same() -> None:
    ours = program("llama/fsdp_tp", MESHES["llama/fsdp_tp"], lr=0.02, warmup=1, steps=3, clip=0.1)
    state, step, batch = begun(ours), ours.compile(), some_batch()._replace(targets=some_batch().tokens)
    params, mesh = jax.device_get(state["params"]), ours.partition.mesh
    plain = Plain(ours.config, ours.run, LAYOUTS["llama/fsdp_tp"], mesh, params=params, batch=batch)
    mine, compiled = plain.state, plain.lower().compile()
    for _ in range(3):
        state, metrics = step(state, ours.place(batch))
        mine, expected = compiled(mine, plain.batch)
        np.testing.assert_allclose([metrics.loss, metrics.grad_norm], expected, rtol=1e-5)
    for found, weights in zip(jax.tree.leaves(state["params"]), jax.tree.leaves(mine[0]), strict=True):
        np.testing.assert_allclose(found, weights, atol=1e-5)
    assert metrics.loss < 6.2  # from ln 512 = 6.24
