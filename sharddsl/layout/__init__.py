"""Spec × Inventory × mesh sizes → Layout: for each tensor its axes, local shape, bytes, and the rule that decided."""

from sharddsl.layout.mesh import size_mesh
from sharddsl.layout.model import OPEN, DimAxes, Drop, Layout, MeshSizes, Placement, Reason
from sharddsl.layout.resolver import layout_of, layout_of_all, resolutions_of, resolve

__all__ = [
    "OPEN",
    "DimAxes",
    "Drop",
    "Layout",
    "MeshSizes",
    "Placement",
    "Reason",
    "layout_of",
    "layout_of_all",
    "resolutions_of",
    "resolve",
    "size_mesh",
]
