"""From what is asked of a tensor's dims to the axes that split them: repeated axes, `?`, divisibility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharddsl.findings import Location
from sharddsl.layout.entries import Asked
from sharddsl.layout.model import OPEN, DimAxes, Drop, MeshSizes
from sharddsl.layout.problems import AxisTwice, Dropped, NotDivisible, Problem, UnknownAxis
from sharddsl.layout.words import product
from sharddsl.spec.model import Axes, AxisRef, Open
from sharddsl.tensors.model import Tensor

HEAD_DIMS = ("heads", "kv_heads")
"""Dims whose elements are whole heads."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The axes of each dim, the largest shape that a device holds, the optional axes not used, what is wrong."""

    axes: tuple[DimAxes, ...]
    local_shape: tuple[int | None, ...]
    dropped: tuple[Drop, ...] = ()
    problems: tuple[Problem, ...] = ()


def units_of(tensor: Tensor, dim: int) -> tuple[int | None, bool]:
    """Into how many parts a dim can be cut at most, and whether these are heads: a dim that fuses heads and head_dim
    has as many parts as heads, however many elements it has."""
    name = tensor.dims[dim]
    for fused, heads in tensor.heads:
        if fused == name:
            return heads, True
    return tensor.shape[dim], name in HEAD_DIMS


def assign(asked: Sequence[Asked], tensor: Tensor, mesh: MeshSizes) -> Assigned:
    """Entries without `?` take their axes first, then those with `?`, each in dim order. An axis that is unknown or
    already used is left out and reported; a dim that does not divide is reported and keeps its axes."""
    work = _Work(tensor, mesh)
    for dim, item in enumerate(asked):
        work.place_required(dim, item)
    for dim, item in enumerate(asked):
        work.place_optional(dim, item)
    for dim, item in enumerate(asked):
        work.check(dim, item)
    axes = tuple(
        OPEN if isinstance(item.entry, Open) else tuple(ref.name for ref in work.ordered(dim, item.entry))
        for dim, item in enumerate(asked)
    )
    drops = tuple(p.drop for p in work.problems if isinstance(p, Dropped))
    return Assigned(axes, local_shape(tensor, axes, mesh), drops, tuple(work.problems))


def local_shape(tensor: Tensor, axes: Sequence[DimAxes], mesh: MeshSizes) -> tuple[int | None, ...]:
    """The largest shape that one device holds. A dim left to the compiler may be whole."""
    return tuple(
        size if size is None or split == OPEN else -(-size // mesh.ways(split))
        for size, split in zip(tensor.shape, axes, strict=True)
    )


class _Work:
    """One tensor while its axes are handed out."""

    def __init__(self, tensor: Tensor, mesh: MeshSizes) -> None:
        self.tensor, self.mesh = tensor, mesh
        self.problems: list[Problem] = []
        self._used: dict[str, int] = {}  # axis -> the dim that it splits
        self._chosen: dict[int, set[str]] = {}  # dim -> its axes

    def place_required(self, dim: int, item: Asked) -> None:
        """Axes without `?`."""
        if isinstance(item.entry, Open) or item.rule is None:
            return
        for ref in item.entry.axes:
            if ref.name not in self.mesh.sizes:
                self.problems.append(UnknownAxis(item.rule, ref))
            elif not (item.entry.optional or ref.optional):
                if ref.name in self._used:
                    self.problems.append(AxisTwice(item.rule, ref, self._used[ref.name], dim))
                else:
                    self._use(dim, ref)

    def place_optional(self, dim: int, item: Asked) -> None:
        """Axes with `?`: each one that fits, or, of a tuple with `?`, all or none."""
        if isinstance(item.entry, Open) or item.rule is None:
            return
        known = [ref for ref in item.entry.axes if ref.name in self.mesh.sizes]
        if item.entry.optional:
            # inside `(a, b?)?` the inner `?` drops one axis before the outer one drops them all
            kept: list[AxisRef] = []
            for ref in known:
                why = self._unfit(dim, [*kept, ref])
                if why is None:
                    kept.append(ref)
                elif ref.optional and len(known) > 1:
                    self._drop(item, dim, (ref,), why, ref.where)
                else:
                    self._drop(item, dim, tuple(known), self._unfit(dim, known) or why, item.entry.where)
                    return
            for ref in kept:
                self._use(dim, ref)
            return
        for ref in known:
            if ref.optional:
                why = self._unfit(dim, [ref])
                if why is None:
                    self._use(dim, ref)
                else:
                    self._drop(item, dim, (ref,), why, ref.where)

    def check(self, dim: int, item: Asked) -> None:
        """Whether the dim divides by what it got."""
        if isinstance(item.entry, Open) or item.rule is None:
            return
        refs = self.ordered(dim, item.entry)
        ways = self.mesh.ways(tuple(ref.name for ref in refs))
        units, heads = units_of(self.tensor, dim)
        if units is not None and units % ways:
            where = refs[0].where if len(refs) == 1 else item.entry.where
            where = where or item.rule.layout_at
            self.problems.append(NotDivisible(item.rule, dim, units, heads, tuple(refs), ways, where))

    def ordered(self, dim: int, entry: Axes) -> list[AxisRef]:
        """The axes that this dim got, in the order in which they were written."""
        left = set(self._chosen.get(dim, ()))
        refs = []
        for ref in entry.axes:
            if ref.name in left:
                left.remove(ref.name)
                refs.append(ref)
        return refs

    def _use(self, dim: int, ref: AxisRef) -> None:
        self._used[ref.name] = dim
        self._chosen.setdefault(dim, set()).add(ref.name)

    def _unfit(self, dim: int, refs: Sequence[AxisRef]) -> str | None:
        """Why these axes cannot join the ones that the dim has, or None if they can."""
        names = [ref.name for ref in refs]
        for position, name in enumerate(names):
            if name in self._used or name in names[:position]:
                taken = self.tensor.dims[self._used.get(name, dim)]
                return f"{name} already splits {taken}"
        together = [*sorted(self._chosen.get(dim, ())), *names]
        sizes = [self.mesh.sizes[name] for name in together]
        units, heads = units_of(self.tensor, dim)
        if units is None or units % self.mesh.ways(tuple(together)) == 0:
            return None
        name = self.tensor.dims[dim]
        shown = f"{units} heads of {name}" if heads and name not in HEAD_DIMS else f"{name} {units}"
        return f"{shown} is not a multiple of {product(together, sizes)}"

    def _drop(self, item: Asked, dim: int, refs: tuple[AxisRef, ...], why: str, where: Location | None) -> None:
        drop = Drop(tuple(ref.name for ref in refs), self.tensor.dims[dim], why)
        fallback = item.rule.layout_at if item.rule else None
        self.problems.append(Dropped(item.rule, drop, where or fallback))
