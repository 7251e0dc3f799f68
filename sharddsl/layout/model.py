"""Where every tensor lies: the result of resolving a spec against an inventory and mesh sizes. No jax here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Literal

from sharddsl.findings import Finding
from sharddsl.spec.model import Rule
from sharddsl.tensors.model import ITEMSIZE, Inventory, Tensor

Reason = Literal[
    "rule",  # a rule of the spec
    "follows param",  # grad or opt without a rule of its own, or `follow`
    "by dim name",  # an opt leaf of another shape than its param
    "scalar",  # always the empty spec
    "batch of act.resid",  # the inputs, split as the residual stream's batch
    "default",  # an opt leaf that nothing matches: replicated, and said so
    "compiler",  # an activation without a rule: no constraint
]

OPEN: Literal["*"] = "*"
"""A dim left to the compiler."""

DimAxes = tuple[str, ...] | Literal["*"]
"""The axes that split one dim, major first (none: replicated), or `OPEN`."""


@dataclass(frozen=True, slots=True)
class MeshSizes:
    """A mesh as resolved: the axes in order, major to minor, none of them -1.

    `dcn` gives the factor of each axis that crosses the slow network. `devices` is the number of devices that were
    there, which is more than the product only where idle ones are allowed. `inferred` names the axis that was -1.
    """

    sizes: Mapping[str, int]
    dcn: Mapping[str, int] = field(default_factory=dict)
    devices: int | None = None
    inferred: str | None = None

    @property
    def size(self) -> int:
        """The number of devices in the mesh."""
        return prod(self.sizes.values())

    def ways(self, axes: tuple[str, ...]) -> int:
        """Into how many parts these axes split a dim."""
        return prod(self.sizes[axis] for axis in axes)

    def __str__(self) -> str:
        return "[" + ", ".join(f"{name}={size}" for name, size in self.sizes.items()) + "]"


@dataclass(frozen=True, slots=True)
class Drop:
    """An optional axis (`?`) that was not used: which, on which dim, and why ("kv_heads 8 is not a multiple of 16")."""

    axes: tuple[str, ...]
    dim: str
    why: str


@dataclass(frozen=True, slots=True)
class Placement:
    """One tensor's place. `axes` has an item per dim; it is None where nothing constrains the tensor (`compiler`)."""

    tensor: Tensor
    axes: tuple[DimAxes, ...] | None
    reason: Reason
    rule: Rule | None = None
    """The rule that decided: for `follows param`, the param's."""
    memory: str | None = None
    """The memory kind (`pinned_host`), or None for the device's own."""
    dropped: tuple[Drop, ...] = ()
    local_shape: tuple[int | None, ...] | None = None
    """The largest shape that one device holds (XLA pads a dim of an activation that does not divide). None where the
    compiler decides; a size is None where the tensor's is."""

    @property
    def local_bytes(self) -> int | None:
        """Bytes that one device holds, or None where that is not known."""
        if self.local_shape is None or None in self.local_shape:
            return None
        return prod(self.local_shape) * ITEMSIZE[self.tensor.dtype]  # type: ignore[arg-type]


@dataclass(frozen=True)
class Layout:
    """Every tensor's placement on a mesh, the findings made on the way, and what could not be judged."""

    mesh: MeshSizes
    inventory: Inventory
    placements: tuple[Placement, ...]
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()
    """What could not be judged: conditions whose value is not known here (no batch, say), each with what was taken for
    it, and namespaces that rules speak of and the inventory says nothing about."""
    sources: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> Mapping[str, Placement]:
        return {placement.tensor.name: placement for placement in self.placements}

    def __getitem__(self, name: str) -> Placement:
        """By the tensor's name: `mlp.w_in`'s full path for a param, `act.mlp.hidden` for the others."""
        return self.by_name[name]

    def __iter__(self) -> Iterator[Placement]:
        return iter(self.placements)
