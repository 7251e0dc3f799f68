"""The learning rate, what decays, and AdamW against its formulas."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sharddsl.llama.forward import abstract_params
from sharddsl.models import PRESETS, inventory
from sharddsl.models.config import Run
from sharddsl.partition.paths import named_leaves
from sharddsl.train import optimizer
from sharddsl.train.config import Training

TINY = PRESETS["llama_tiny"]

SCHEDULES: list[tuple[dict[str, Any], list[float]]] = [
    ({"schedule": "constant", "warmup": 0}, [1, 1, 1, 1]),
    ({"schedule": "constant", "warmup": 4}, [0.25, 0.5, 0.75, 1]),
    ({"schedule": "linear", "warmup": 2}, [0.5, 1, 0.6, 0.2]),
    ({"schedule": "linear", "warmup": 0}, [0.8, 0.6, 0.4, 0.2]),
    ({"schedule": "cosine", "warmup": 2}, [0.5, 1, 0.6, 0.2]),
    # 0.2 + 0.8 · (1 + cos(π·k/4)) / 2
    ({"schedule": "cosine", "warmup": 0}, [0.8828427, 0.6, 0.3171573, 0.2]),
    ({}, [1, 0.8, 0.4, 0.2]),  # a tenth of the steps is one
]


@pytest.mark.parametrize(("fields", "shares"), SCHEDULES)
def test_learning_rate(fields: dict[str, Any], shares: list[float]) -> None:
    run = Training.model_validate({"steps": 4, "lr": 0.01, "lr_end": 0.2, **fields})
    found = [float(optimizer.learning_rate(run, step)) for step in (1, 2, 3, 4)]
    assert found == pytest.approx([0.01 * share for share in shares], rel=1e-6)


@pytest.mark.parametrize("scan", [True, False])
def test_what_is_one_vector_per_layer_does_not_decay(scan: bool) -> None:
    mask = optimizer.decayed(abstract_params(TINY, Run(scan=scan)))
    layer = mask["layers"] if scan else mask["layers"][2]
    assert layer["attn_norm"] == layer["mlp_norm"] == mask["norm"] == {"scale": False}
    assert set(layer["attn"].values()) == set(layer["mlp"].values()) == {True}
    assert mask["embed"] == mask["lm_head"] == {"w": True}


def test_adamw() -> None:
    """Two steps by the formulas of arXiv 1711.05101 (algorithm 2), in numpy and float64, clipped to a norm of 1."""
    rng = np.random.default_rng(0)
    w, scale = rng.normal(size=(3, 2)), rng.normal(size=2)
    run = Training(lr=0.1, schedule="constant", warmup=0, weight_decay=0.5, clip=1.0, b1=0.8, b2=0.9, eps=1e-3)
    params = {"embed": {"w": jnp.asarray(w, jnp.float32)}, "norm": {"scale": jnp.asarray(scale, jnp.float32)}}
    state = optimizer.init(run, params)
    m, v = np.zeros(8), np.zeros(8)
    flat, decay = np.concatenate([w.ravel(), scale]), np.repeat([0.5, 0.0], [6, 2])
    for step in (1, 2):
        grad = rng.normal(size=8)
        norm = np.sqrt((grad**2).sum())
        assert norm > 1
        grads = {"embed": {"w": jnp.asarray(grad[:6].reshape(3, 2))}, "norm": {"scale": jnp.asarray(grad[6:])}}
        done = optimizer.update(run, grads, state, params)
        params, state = done.weights, done.state

        clipped = grad / norm
        m, v = 0.8 * m + 0.2 * clipped, 0.9 * v + 0.1 * clipped**2
        flat = flat - 0.1 * (m / (1 - 0.8**step) / (np.sqrt(v / (1 - 0.9**step)) + 1e-3) + decay * flat)
        found = np.concatenate([np.ravel(params["embed"]["w"]), params["norm"]["scale"]])
        assert found == pytest.approx(flat, rel=1e-5)
        assert float(done.grad_norm) == pytest.approx(norm, rel=1e-6)
        assert int(state["count"]) == step


def test_a_small_gradient_is_not_clipped_and_a_gradient_of_nothing_is_no_division_by_zero() -> None:
    params = {"norm": {"scale": jnp.ones(2)}}
    for clip in (0.0, 1.0):
        run = Training(lr=0.1, schedule="constant", warmup=0, clip=clip, weight_decay=0.0)
        done = optimizer.update(run, {"norm": {"scale": jnp.zeros(2)}}, optimizer.init(run, params), params)
        assert np.array_equal(done.weights["norm"]["scale"], [1, 1])
        small = optimizer.update(run, {"norm": {"scale": jnp.asarray([0.3, 0.4])}}, optimizer.init(run, params), params)
        assert np.asarray(small.state["mu"]["norm"]["scale"]) == pytest.approx([0.03, 0.04])


# ---------------------------------------------------------------------------------------------------------- Adafactor

FACTORED = Training(optimizer="adafactor", lr=0.1, schedule="constant", warmup=0, clip=0.0, weight_decay=0.0)


def test_a_large_matrix_has_factors_and_all_else_has_the_whole() -> None:
    state = optimizer.init(FACTORED, {"lm_head": {"w": jnp.ones((130, 200))}, "embed": {"w": jnp.ones((127, 200))}})
    assert {leaf: jax.tree.map(jnp.shape, state[leaf]) for leaf in ("v_row", "v_col", "v")} == {
        "v_row": {"lm_head": {"w": (130,)}},
        "v_col": {"lm_head": {"w": (200,)}},
        "v": {"embed": {"w": (127, 200)}},
    }


def test_adafactor() -> None:
    """Two steps by the formulas of arXiv 1804.04235 (algorithm 4), in numpy and float64, without momentum."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(130, 200))
    params = {"lm_head": {"w": jnp.asarray(w, jnp.float32)}}
    state = optimizer.init(FACTORED, params)
    rows, columns = np.zeros(130), np.zeros(200)
    for step in (1, 2):
        grad = rng.normal(size=(130, 200)) * np.arange(1, 201)
        done = optimizer.update(FACTORED, {"lm_head": {"w": jnp.asarray(grad, jnp.float32)}}, state, params)
        params, state = done.weights, done.state

        decay = 1 - step**-0.8
        rows = decay * rows + (1 - decay) * (grad**2 + 1e-30).mean(1)
        columns = decay * columns + (1 - decay) * (grad**2 + 1e-30).mean(0)
        direction = grad / np.sqrt(np.outer(rows, columns) / rows.mean())
        direction /= max(1.0, np.sqrt((direction**2).mean()))
        w = w - 0.1 * np.sqrt((w**2).mean()) * direction
        assert np.asarray(params["lm_head"]["w"]) == pytest.approx(w, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("precision", ["f32", "bf16_master"])
@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("name", ["llama_tiny", "smollm2_135m", "llama3_8b"])
def test_the_inventory_has_the_state_that_the_optimizer_makes(name: str, scan: bool, precision: Any) -> None:
    config = PRESETS[name].model_copy(update={"layers": 2})
    for kind in ("adamw", "adafactor"):
        run = Training.model_validate({"optimizer": kind, "scan": scan, "precision": precision})
        state = jax.eval_shape(partial(optimizer.init, run), abstract_params(config, run))
        made = {f"opt.{path}": (leaf.shape, str(leaf.dtype)) for path, leaf in named_leaves(state)[0]}
        assert {t.name: (t.shape, t.dtype) for t in inventory(config, run).of("opt")} == made


def test_stacked_layers_are_updated_as_unrolled_ones_are() -> None:
    rng = np.random.default_rng(0)
    w, grad = (jnp.asarray(rng.normal(size=(3, 130, 140)), jnp.float32) for _ in range(2))
    stacked = {"layers": {"mlp": {"w_in": w}}}
    unrolled = {"layers": {n: {"mlp": {"w_in": w[n]}} for n in range(3)}}
    after = optimizer.update(
        FACTORED, {"layers": {"mlp": {"w_in": grad}}}, optimizer.init(FACTORED, stacked), stacked
    ).weights
    grads = {"layers": {n: {"mlp": {"w_in": grad[n]}} for n in range(3)}}
    each = optimizer.update(FACTORED, grads, optimizer.init(FACTORED, unrolled), unrolled).weights
    for n in range(3):
        assert np.allclose(after["layers"]["mlp"]["w_in"][n], each["layers"][n]["mlp"]["w_in"], rtol=1e-6)
