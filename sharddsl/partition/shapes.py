"""Whether a value that is pinned has the shape that its tensor is laid out for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from sharddsl.findings import UsageError
from sharddsl.layout.model import OPEN, DimAxes, MeshSizes, Placement
from sharddsl.tensors.model import LAYERS

BATCH, SEQ = "batch", "seq"
OF_THE_CALL = frozenset({BATCH, SEQ})
"""Dims whose size is each call's own: a layout for 64 rows of 8192 tokens serves for any number of either."""


def axes_by_dim(placement: Placement, shape: tuple[int, ...], mesh: MeshSizes) -> tuple[DimAxes, ...]:
    """The axes of each dim of a value of this shape: the whole tensor, or one layer of a stacked one.

    Raises `UsageError` for another number of dims, for a size that the model has otherwise, and for rows of the batch
    that the axes do not divide. Another dim that they do not divide is a `UserWarning`: XLA pads it.
    """
    dims = _dims(placement, len(shape))
    for (dim, size, axes), found in zip(dims, shape, strict=True):
        if size not in (None, found) and dim not in OF_THE_CALL:
            raise UsageError(
                f"{placement.tensor.name} has {dim} {size}, and the value that is constrained to it has {found}: its "
                f"shape is {shape}"
            )
        # What is known when the spec is resolved is judged there, and a single token is what decoding has.
        if axes == OPEN or (size == found and dim != BATCH) or (dim == SEQ and found == 1):
            continue
        _divide(placement.tensor.name, dim, found, axes, mesh)
    return tuple(axes for _, _, axes in dims)


def _dims(placement: Placement, rank: int) -> list[tuple[str, int | None, DimAxes]]:
    """Each dim's name, size and axes; all are open where nothing constrains the tensor."""
    tensor = placement.tensor
    axes = (OPEN,) * len(tensor.dims) if placement.axes is None else placement.axes
    dims: Iterator[tuple[str, int | None, DimAxes]] = zip(tensor.dims, tensor.shape, axes, strict=True)
    if rank == len(tensor.dims):
        return list(dims)
    if LAYERS in tensor.dims and rank == len(tensor.dims) - 1:
        return [dim for dim in dims if dim[0] != LAYERS]
    raise UsageError(
        f"{tensor.name} is ({', '.join(tensor.dims)}): a value with {rank} dims cannot be constrained to it"
    )


def _divide(name: str, dim: str, size: int, axes: tuple[str, ...], mesh: MeshSizes) -> None:
    """Say so where the axes do not divide the size."""
    ways = mesh.ways(axes)
    if size % ways == 0:
        return
    over = f"{'*'.join(axes)}={ways}"
    above = -(-size // ways) * ways
    if dim == BATCH:
        near = f"{above - ways} or {above}" if size > ways else f"{above}"
        raise UsageError(
            f"{name}: {size} rows of the batch cannot be shared out evenly over {over}. Give it a multiple: {near} rows"
        )
    text = f"{name}: {dim} {size} is not a multiple of {over}: XLA pads it to {above}, {above // ways} on each device"
    warnings.warn(text, UserWarning, stacklevel=4)  # at the line that calls `Partition.constrain`
