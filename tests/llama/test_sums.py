"""The product that XLA's partitioner gets wrong, and that the model's own are right beside it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sharddsl import layout, spec
from sharddsl.llama.forward import forward
from sharddsl.llama.sums import constrain_of
from sharddsl.models import inventory
from sharddsl.partition import Partition
from tests.llama.small import F32, UNTIED, free, random_params, some_tokens

ROWS = ("dp", "fsdp")


@pytest.mark.parametrize(
    ("sizes", "right"), [((2, 2, 2), False), ((1, 4, 2), True), ((4, 1, 2), True), ((1, 2, 4), True)]
)
def test_xla_takes_rows_from_other_devices(sizes: tuple[int, int, int], right: bool) -> None:
    """Wrong in jax 0.10.2 and 0.12.0.1 where fsdp and mp are of one size and dp is more than 1. Once this fails, XLA
    has been mended, and `sharddsl.llama.sums` has no purpose left."""
    mesh = Mesh(np.asarray(jax.devices()).reshape(sizes), ("dp", "fsdp", "mp"), axis_types=(AxisType.Auto,) * 3)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(8, 4, 16)).astype(np.float32), rng.normal(size=(16, 32)).astype(np.float32)

    @jax.jit
    def product(x: Array, w: Array) -> Array:
        at = NamedSharding(mesh, P(ROWS, None, "mp"))
        pinned: Array = jax.lax.with_sharding_constraint(jnp.einsum("bsf,fe->bse", x, w), at)
        return pinned

    found = product(
        jax.device_put(x, NamedSharding(mesh, P(ROWS, None, "mp"))),
        jax.device_put(w, NamedSharding(mesh, P("mp", "fsdp"))),
    )
    assert np.allclose(found, x @ w, atol=1e-4) == right


@pytest.mark.parametrize("name", ["easylm", "maxtext"])
@pytest.mark.parametrize("guarded", [True, False])
def test_the_model_is_right_on_the_mesh_on_which_xla_is_wrong(name: str, guarded: bool) -> None:
    run = F32.model_copy(update={"batch": 8, "seq": 4})
    axes = ("dp", "fsdp", "mp") if name == "easylm" else ("data", "fsdp", "tensor")
    shipped = spec.load(f"llama/{name}", mesh=dict.fromkeys(axes, 2)).checked()
    assert shipped.mesh is not None
    sizes, _ = layout.size_mesh(shipped.mesh, devices=8)
    assert sizes is not None
    partition = Partition.of(layout.resolve(shipped, inventory(UNTIED, run), sizes))
    params, tokens = random_params(UNTIED), some_tokens(UNTIED, 8, 4)
    alone = forward(UNTIED, run, params, tokens, constrain=free)
    constrain = constrain_of(partition) if guarded else partition.constrain
    found = jax.jit(lambda params, tokens: forward(UNTIED, run, params, tokens, constrain=constrain))(
        jax.device_put(params, partition.shardings(params)),
        jax.device_put(tokens, partition.sharding("batch.tokens")),
    )
    assert np.allclose(found, alone, atol=1e-3) == guarded
