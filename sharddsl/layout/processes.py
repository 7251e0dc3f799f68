"""Which rows of the batch each process feeds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from sharddsl.layout.model import MeshSizes

_LARGEST = 2**20
"""Devices. No machine has as many, and each is looked at."""


def parts_per_process(axes: Sequence[str], mesh: MeshSizes, processes: int) -> int | None:
    """Into how many of the parts that `axes` cut the batch each process's rows fall, or None where processes do not
    own whole, equal parts: two own overlapping but different ones, or one owns more than another.

    Devices belong to processes in contiguous blocks of the mesh's order, or, where `@dcn` factors multiply to the
    number of processes, by their place along these factors.
    """
    if mesh.size % processes or mesh.size > _LARGEST:
        return None
    owned: dict[int, set[tuple[int, ...]]] = {}
    for place, coordinates in enumerate(product(*(range(size) for size in mesh.sizes.values()))):
        at = dict(zip(mesh.sizes, coordinates, strict=True))
        process = _process(place, at, mesh, processes)
        owned.setdefault(process, set()).add(tuple(at[axis] for axis in axes))
    parts = {frozenset(part) for part in owned.values()}
    sizes = {len(part) for part in parts}
    if len(sizes) > 1 or sum(len(part) for part in parts) != len(frozenset().union(*parts)):
        return None
    return sizes.pop()


def _process(place: int, at: dict[str, int], mesh: MeshSizes, processes: int) -> int:
    if prod(mesh.dcn.values()) != processes:
        return place // (mesh.size // processes)
    process = 0
    for axis, factor in mesh.dcn.items():
        process = process * factor + at[axis] // (mesh.sizes[axis] // factor)
    return process
