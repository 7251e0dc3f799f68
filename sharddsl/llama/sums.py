"""Where a product's terms lie on several devices: pinned so that XLA adds up the right ones.

XLA's partitioner miscompiles such a product (measured with jax 0.10.2 and 0.12.0.1, on CPU devices):

    x [(dp, fsdp), None, mp] · w [mp, fsdp]  →  [(dp, fsdp), None, mp],  with fsdp = mp in size and dp > 1

Rows of the result come from other devices' rows, and nothing says so. The layouts of EasyLM and MaxText hold it in the
forward pass (their MLP's output, or the residual stream, is split along `embed`) and in the backward pass (the gradient
of what a column-parallel weight reads). With the sum first pinned whole along `embed`, of which each device then takes
its part, the result is right. `tests/llama/test_sums.py` holds the smallest program that goes wrong, and fails when XLA
mends it.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import Array

from sharddsl.layout.model import OPEN, MeshSizes, Placement
from sharddsl.llama.gradients import Constrain, with_gradient
from sharddsl.partition import Partition

_FORWARD = frozenset({"act.attn.out", "act.mlp.out"})
"""What row-parallel weights make."""
_BACKWARD = frozenset({"act.attn.norm", "act.mlp.norm", "act.final"})
"""What column-parallel weights read, and the sums are of gradients."""


def constrain_of(partition: Partition) -> Constrain:
    """`partition.constrain`; on meshes where the sums above would be wrong they are pinned whole along `embed`."""
    if not _at_risk(partition):
        return partition.constrain
    whole = partition.along("batch.tokens", "batch")

    def sum_whole(x: Array) -> Array:
        summed: Array = jax.lax.with_sharding_constraint(x, whole)
        return summed

    def constrain(x: Array, name: str) -> Array:
        if name in _FORWARD:
            x = _forward_only(sum_whole, x)
        pinned = partition.constrain(x, name)
        return with_gradient(pinned, sum_whole) if name in _BACKWARD else pinned

    return constrain


def _at_risk(partition: Partition) -> bool:
    layout = partition.layout
    axes = layout["batch.tokens"].axes
    rows = () if axes is None or axes[0] == OPEN else axes[0]
    return any(_is_mistaken(layout[tensor.name], rows, layout.mesh) for tensor in layout.inventory.of("param"))


def _is_mistaken(weight: Placement, rows: tuple[str, ...], mesh: MeshSizes) -> bool:
    """Whether some axes of the rows split the weight's `embed`, others of the same size another dim of it, and the rows
    have axes besides."""
    by_dim = {
        dim: axes for dim, axes in zip(weight.tensor.dims, weight.axes or (), strict=False) if axes and axes != OPEN
    }
    along = by_dim.pop("embed", ())
    ways = mesh.ways(along)
    return (
        ways > 1
        and set(along) <= set(rows)
        and mesh.ways(rows) > ways
        and any(not set(axes) & set(rows) and mesh.ways(axes) == ways for axes in by_dim.values())
    )


def _forward_only(pin: Callable[[Array], Array], x: Array) -> Array:
    """`pin(x)`, while x's gradient is left as it comes."""

    @jax.custom_vjp
    def pinned(x: Array) -> Array:
        return pin(x)

    pinned.defvjp(lambda x: (pin(x), None), lambda _, gradient: (gradient,))
    made: Array = pinned(x)
    return made
