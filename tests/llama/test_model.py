"""The model's logits against a plain numpy LLaMA, and against itself however it is run."""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from sharddsl.llama.forward import Params, forward
from sharddsl.llama.rope import inverse_frequencies
from sharddsl.models.config import LlamaConfig, RopeScaling, Run
from tests.llama import reference
from tests.llama.small import F32, TIED, UNROLLED, UNTIED, free, random_params, some_tokens, unstacked


def logits(config: LlamaConfig, run: Run, params: Params, tokens: Array, **where: Array) -> Array:
    found: Array = jax.jit(lambda p, t, w: forward(config, run, p, t, constrain=free, **w))(params, tokens, where)
    return found


@pytest.mark.parametrize("config", [UNTIED, TIED], ids=lambda config: config.name)
def test_logits_are_the_reference_models(config: LlamaConfig) -> None:
    params, tokens = random_params(config), some_tokens(config, batch=2, seq=12)
    found = logits(config, F32, params, tokens)
    rows = [reference.logits(config, unstacked(params, config.layers), row.tolist()) for row in tokens]
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, np.stack(rows), rtol=1e-4, atol=1e-4)


@lru_cache
def loss_and_gradient(scan: bool, remat: str) -> tuple[Array, Params]:
    params, tokens = random_params(UNTIED), some_tokens(UNTIED, batch=2, seq=8)
    run = Run.model_validate({"precision": "f32", "scan": scan, "remat": remat})

    def loss(params: Params) -> Array:
        given = params if scan else unstacked(params, UNTIED.layers)
        chances = jax.nn.log_softmax(forward(UNTIED, run, given, tokens, constrain=free))
        return -jnp.take_along_axis(chances, tokens[:, :, None], axis=-1).mean()

    found: tuple[Array, Params] = jax.jit(jax.value_and_grad(loss))(params)
    return found


@pytest.mark.parametrize(("scan", "remat"), [(True, "full"), (True, "dots"), (False, "none"), (False, "full")])
def test_loss_and_gradients_do_not_depend_on_how_layers_run(scan: bool, remat: str) -> None:
    value, gradient = loss_and_gradient(scan, remat)
    expected, expected_gradient = loss_and_gradient(True, "none")
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for found, wanted in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected_gradient), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-6)


def test_remat_computes_again_in_the_backward_pass() -> None:
    """`full` keeps nothing of a layer, `dots` its products with weights."""
    params, tokens = random_params(UNTIED), some_tokens(UNTIED, batch=2, seq=8)

    def products(remat: str) -> int:
        run = Run.model_validate({"precision": "f32", "remat": remat})
        loss = jax.grad(lambda p: forward(UNTIED, run, p, tokens, constrain=free).sum())
        return str(jax.make_jaxpr(loss)(params)).count("dot_general")

    # A layer has 9 products: 4 of attention's weights, 3 of the MLP's, 2 inside attention.
    assert products("full") == products("none") + 9 - 1  # the last one's result is not needed again
    assert products("dots") == products("none") + 2


def test_packed_segments_do_not_see_each_other() -> None:
    params = random_params(UNTIED)
    first, second = some_tokens(UNTIED, 1, 5), some_tokens(UNTIED, 1, 7, seed=2)
    packed = jnp.concatenate([first, second], axis=1)
    segments = jnp.asarray([[1] * 5 + [2] * 7])
    found = logits(UNTIED, F32, params, packed, segments=segments)
    np.testing.assert_allclose(found[:, :5], logits(UNTIED, F32, params, first), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[:, 5:], logits(UNTIED, F32, params, second), rtol=1e-5, atol=1e-5)


def test_positions_may_be_given() -> None:
    params, tokens = random_params(UNTIED), some_tokens(UNTIED, 1, 6)
    shifted = logits(UNTIED, F32, params, tokens, positions=jnp.arange(6)[None] + 9)
    # Rotary attention depends on distances only.
    np.testing.assert_allclose(shifted, logits(UNTIED, F32, params, tokens), rtol=1e-4, atol=1e-4)
    stretched = logits(UNTIED, F32, params, tokens, positions=jnp.arange(6)[None] * 2)
    assert float(jnp.abs(stretched - shifted).max()) > 0.01


def test_a_token_outside_the_vocabulary_shows() -> None:
    found = logits(UNTIED, F32, random_params(UNTIED), jnp.asarray([[1, 64], [1, 63]]))
    assert np.isnan(found[0, 1]).all()
    assert not np.isnan(found[1]).any()


@pytest.mark.parametrize(
    ("precision", "params", "compute"),
    [
        ("f32", "float32", "float32"),
        ("bf16_compute", "float32", "bfloat16"),
        ("bf16_master", "bfloat16", "bfloat16"),
    ],
)
def test_precision(precision: str, params: str, compute: str) -> None:
    run = Run.model_validate({"precision": precision})
    weights, tokens = random_params(UNTIED, run), some_tokens(UNTIED, 1, 8)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(weights)} == {params}
    seen: dict[str, str] = {}

    def note(x: Array, name: str) -> Array:
        seen[name] = str(x.dtype)
        return x

    found = forward(UNTIED, run, weights, tokens, constrain=note)
    assert seen.pop("act.logits") == "float32"
    assert set(seen.values()) == {compute}
    exact = reference.logits(UNTIED, unstacked(weights, UNTIED.layers), tokens[0].tolist())
    tolerance = 1e-4 if compute == "float32" else 0.25  # bfloat16 has 8 bits: 3 layers of products err by about that
    np.testing.assert_allclose(found[0], exact, atol=tolerance)


def test_float32_asks_for_exact_products() -> None:
    """A GPU or TPU multiplies float32 in fewer bits unless it is told not to."""

    def program(run: Run) -> str:
        params, tokens = random_params(UNTIED, run), some_tokens(UNTIED, 1, 4)
        return jax.jit(lambda p, t: forward(UNTIED, run, p, t, constrain=free)).lower(params, tokens).as_text()

    products = [line for line in program(F32).splitlines() if "dot_general" in line]
    assert products
    assert all("precision = [HIGHEST, HIGHEST]" in line for line in products)
    assert "HIGHEST" not in program(Run(precision="bf16_compute"))


def test_llama_3_1_frequencies() -> None:
    """Llama 3.1's published constants: theta 500,000, head_dim 128, a factor of 8 over 8,192 tokens."""
    config = LlamaConfig(
        name="llama3_1_8b", vocab=8, embed=8, layers=1, heads=1, kv_heads=1, head_dim=128, ffn=8,
        rope_theta=500_000.0, rope_scaling=RopeScaling(factor=8.0),
    )  # fmt: skip
    found = inverse_frequencies(config)
    plain = inverse_frequencies(config.model_copy(update={"rope_scaling": None}))
    assert found == pytest.approx([reference.frequency(config, pair) for pair in range(64)], rel=1e-12)
    # Waves shorter than 2,048 tokens are kept, those longer than 8,192 are stretched eight times.
    assert (found / plain)[[0, 28]] == pytest.approx([1.0, 1.0])
    assert (found / plain)[[36, 63]] == pytest.approx([0.125, 0.125])


def test_scanned_and_unrolled_have_the_same_weights_by_another_name() -> None:
    params, tokens = random_params(TIED), some_tokens(TIED, 1, 6)
    unrolled = logits(TIED, UNROLLED, unstacked(params, TIED.layers), tokens)
    np.testing.assert_allclose(logits(TIED, F32, params, tokens), unrolled, rtol=1e-5, atol=1e-5)
