"""What can be wrong with one tensor's layout, as values: `about_entries` groups them and puts them into words."""

from __future__ import annotations

from dataclasses import dataclass

from sharddsl.findings import Location
from sharddsl.layout.model import Drop
from sharddsl.spec.model import AxisRef, Rule


@dataclass(frozen=True, slots=True)
class TooManyEntries:
    """A positional layout has more entries than one layer's tensor has dims."""

    rule: Rule
    entries: int


@dataclass(frozen=True, slots=True)
class NoBase:
    """`..` or `follow` where there is nothing to start from."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class UnknownAxis:
    """An axis that the mesh lacks."""

    rule: Rule
    axis: AxisRef


@dataclass(frozen=True, slots=True)
class AxisTwice:
    """A second use of an axis in one tensor: the positions of both dims."""

    rule: Rule
    axis: AxisRef
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class NotDivisible:
    """A dim that these axes do not split into equal parts. `units` is its size, in heads where `heads` says so."""

    rule: Rule
    dim: int
    units: int
    heads: bool
    axes: tuple[AxisRef, ...]
    ways: int
    where: Location | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """An optional axis that was not used."""

    rule: Rule | None
    drop: Drop
    where: Location | None


Problem = TooManyEntries | NoBase | UnknownAxis | AxisTwice | NotDivisible | Dropped
