"""Layouts written by hand, so that what is built on them is tested without the language."""

from __future__ import annotations

from collections.abc import Mapping

from sharddsl.layout.model import DimAxes, Layout, MeshSizes, Placement
from sharddsl.tensors.model import LAYERS, Inventory, Tensor

ByDim = Mapping[str, DimAxes]
"""The axes of some dims of a tensor; its other dims are replicated."""


def lay_out(inventory: Inventory, mesh: Mapping[str, int], by_name: Mapping[str, ByDim]) -> Layout:
    """A layout by the tensors' names without their layer, `cache.k` or `attn.wq`. A namespace (`param`, `act`) stands
    for those of its tensors that are not named. An activation that nothing names is left to the compiler."""
    return Layout(MeshSizes(dict(mesh)), inventory, tuple(_place(tensor, by_name) for tensor in inventory))


def _place(tensor: Tensor, by_name: Mapping[str, ByDim]) -> Placement:
    by_dim = by_name.get(_name(tensor), by_name.get(tensor.namespace))
    if by_dim is None and tensor.namespace == "act":
        return Placement(tensor, None, "compiler")
    return Placement(tensor, tuple((by_dim or {}).get(dim, ()) for dim in tensor.dims), "rule")


def _name(tensor: Tensor) -> str:
    path = ".".join(segment for segment in tensor.path.segments if segment != LAYERS)
    return path if tensor.namespace == "param" else f"{tensor.namespace}.{path}"


DATA: ByDim = {"batch": ("dp",)}
BOTH: ByDim = {"batch": ("dp", "fsdp")}
TENSOR: ByDim = {"heads": ("mp",), "kv_heads": ("mp",), "ffn": ("mp",), "vocab": ("mp",)}
LAYOUTS: Mapping[str, tuple[Mapping[str, int], Mapping[str, ByDim]]] = {
    "one": ({"dp": 1}, {}),
    "dp": ({"dp": 8}, {"param": {}, "act": DATA, "batch": DATA, "cache": DATA}),
    "fsdp": (
        {"fsdp": 8},
        {
            "param": {"embed": ("fsdp",)},
            "act": {"batch": ("fsdp",)},
            "batch": {"batch": ("fsdp",)},
            "cache": {"batch": ("fsdp",)},
        },
    ),
    "tp": ({"mp": 8}, {"param": TENSOR, "act": TENSOR, "act.resid": {}, "batch": {}, "cache": TENSOR}),
    "fsdp_tp": (
        {"dp": 1, "fsdp": 4, "mp": 2},
        {
            "param": {"embed": ("fsdp",), **TENSOR},
            "embed.w": {"vocab": ("mp",)},
            "act": {**BOTH, **TENSOR},
            "batch": BOTH,
            "cache": {**BOTH, **TENSOR},
        },
    ),
    "sp": (
        {"dp": 2, "mp": 4},
        {
            "param": TENSOR,
            "act": {**DATA, **TENSOR},
            "act.embed": {**DATA, "seq": ("mp",)},
            "act.resid": {**DATA, "seq": ("mp",)},
            "batch": DATA,
            "cache": {**DATA, **TENSOR},
        },
    ),
    "long_cache": (
        {"dp": 1, "fsdp": 4, "mp": 2},
        {"param": {"vocab": ("mp",)}, "act": {}, "batch": {}, "cache": {"seq": ("fsdp", "mp")}},
    ),
}
"""The usual layouts for eight devices: the mesh, and the axes by tensor or namespace."""
