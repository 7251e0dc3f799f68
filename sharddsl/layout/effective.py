"""What a layout comes to: axes of size 1, which split nothing, are left out, and a tensor of every layer is one line.

This is what golden files hold and what two specs are compared by: it changes only where a device holds something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sharddsl.layout.model import OPEN, DimAxes, Layout, MeshSizes, Placement
from sharddsl.layout.naming import names_of
from sharddsl.layout.table import layout_text
from sharddsl.tensors.model import LAYERS, Tensor

REPLICATED = "replicated"
UNCONSTRAINED = "unconstrained"

_NO_RENAMES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Kind:
    """The tensors of one path that lie alike, in all layers or in those that `name` says: `layers[0:4].attn.wq`."""

    name: str
    dims: str
    layout: str


def headline(layout: Layout) -> str:
    """`llama3_8b, train, on [fsdp=16, mp=4], batch 64, seq 8192`: what the layout is of."""
    held = layout.inventory
    known = (f"{name} {held.sizes[name]}" for name in ("batch", "seq") if held.sizes.get(name) is not None)
    return ", ".join([held.kind, held.mode, f"on {effective_mesh(layout.mesh)}", *known])


def effective_mesh(mesh: MeshSizes, renames: Mapping[str, str] = _NO_RENAMES) -> str:
    """`[fsdp=16, mp=4]`, and `[dp=8 @dcn(2)]` where an axis crosses the slow network; `[]` is one device. `renames` has
    axes that are called otherwise."""
    axes = [
        f"{renames.get(name, name)}={size}" + (f" @dcn({mesh.dcn[name]})" if mesh.dcn.get(name, 1) > 1 else "")
        for name, size in mesh.sizes.items()
        if size > 1
    ]
    return f"[{', '.join(axes)}]"


def effective_layout(placement: Placement, mesh: MeshSizes, renames: Mapping[str, str] = _NO_RENAMES) -> str:
    """`[fsdp, mp, None]`, one layer's dims by position; `replicated` where no axis splits a dim, `unconstrained` where
    nothing constrains the tensor; ` @pinned_host` behind it for another memory than the device's own."""
    if placement.axes is None:
        return UNCONSTRAINED
    axes = tuple(_splitting(of_dim, mesh, renames) for of_dim in placement.axes)
    memory = "" if placement.memory is None else f" @{placement.memory}"
    return layout_text(replace(placement, axes=axes)) if any(axes) else f"{REPLICATED}{memory}"


def _splitting(axes: DimAxes, mesh: MeshSizes, renames: Mapping[str, str]) -> DimAxes:
    if axes == OPEN:
        return OPEN
    return tuple(renames.get(axis, axis) for axis in axes if mesh.sizes[axis] > 1)


def kinds(layout: Layout) -> Iterator[Kind]:
    """A kind for each path, in the inventory's order; several where its layers do not lie alike."""
    by_path: dict[object, dict[str, list[Tensor]]] = {}
    for placement in layout:
        tensor = placement.tensor
        path = (tensor.namespace, tensor.path.segments, tensor.path.layer_at, tensor.path.layer is None)
        said = effective_layout(placement, layout.mesh)
        by_path.setdefault(path, {}).setdefault(said, []).append(tensor)
    for by_layout in by_path.values():
        for said, tensors in by_layout.items():
            yield Kind(_name(tensors, whole=len(by_layout) == 1), _dims(tensors[0]), said)


def _name(tensors: Iterable[Tensor], whole: bool) -> str:
    """The path, without its layers where `whole`: these are all there are."""
    tensors = list(tensors)
    if whole:
        return replace(tensors[0], path=replace(tensors[0].path, layer=None)).name
    (name,) = names_of(tensors)
    return name


def _dims(tensor: Tensor) -> str:
    return f"({', '.join(dim for dim in tensor.dims if dim != LAYERS)})"
