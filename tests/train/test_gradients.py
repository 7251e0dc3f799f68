"""The gradient of every param against a reference in float64 on one device."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from sharddsl.models import LlamaConfig
from sharddsl.train.data.batch import Batch
from tests.llama.small import TIED, UNTIED, random_params, unstacked
from tests.train import reference
from tests.train.small import program, some_batch

BATCH = some_batch(rows=2, seq=8, vocab=UNTIED.vocab)


def in_float64(config: LlamaConfig) -> tuple[float, Any]:
    """The loss and its gradients, `layers` a list."""
    stacked = unstacked(random_params(config), config.layers)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda x: np.asarray(x, np.float64), stacked)
        wide["layers"] = [wide["layers"][layer] for layer in range(config.layers)]
        value, grads = jax.value_and_grad(lambda p: reference.loss(config, p, BATCH))(wide)
        assert value.dtype == np.float64
        return float(value), jax.device_get(grads)


@pytest.fixture(scope="module", params=[UNTIED, TIED], ids=["untied", "tied"])
def case(request: pytest.FixtureRequest) -> tuple[LlamaConfig, float, Any]:
    return request.param, *in_float64(request.param)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scan", "accum"),
    [(True, 1), (False, 1), (True, 2)],
    ids=["scanned", "unrolled", "accumulated"],
)
def test_every_gradient(case: tuple[LlamaConfig, float, Any], scan: bool, accum: int) -> None:
    """Within 2e-5 of the size of a param's gradient (float32 has 6e-8; the longest sums of the loss go through three
    layers of exponentials and roots)."""
    config, value, expected = case
    of = program("llama/dp", {"dp": 1}, config, batch=2, seq=8, scan=scan, accum=accum)
    params = random_params(config)
    params = params if scan else unstacked(params, config.layers)
    params = jax.device_put(params, of.partition.replicated)
    loss, grads = jax.jit(of.loss_and_grads)(params, of.place(Batch(*BATCH)))
    assert float(loss) == pytest.approx(value, rel=1e-6)
    grads = unstacked(grads, config.layers) if scan else grads
    grads["layers"] = [grads["layers"][layer] for layer in range(config.layers)]

    def compare(path: Any, found: Any, wanted: Any) -> None:
        size = np.abs(wanted).max()
        assert size > 1e-6
        assert np.abs(found - wanted).max() < 2e-5 * size, jax.tree_util.keystr(path)

    jax.tree_util.tree_map_with_path(compare, grads, expected)
