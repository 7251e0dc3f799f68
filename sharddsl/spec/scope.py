"""What a name in one file can stand for: the file's `let`s, its axes, and what `extends … with` calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sharddsl.findings import Location, Span
from sharddsl.spec.model import Axes, AxisRef, LayoutSpec
from sharddsl.spec.report import Report

RESERVED: frozenset[str] = frozenset({
    "and", "or", "not", "None", "replicated", "follow", "extends", "with", "let", "mesh", "when", "check", "on",
    "expect", "tied", "mode", "devices", "hosts", "train", "prefill", "decode",
})  # fmt: skip
"""Words of the language and of its conditions, which neither an axis nor a `let` may be called."""

MOST_AXES = 64
"""The most axes in one tuple once its `let`s are replaced: no mesh has as many, and it keeps doubling `let`s small."""

MOST_ENTRIES = 256
"""The most entries in one layout: no array has as many dims."""

_MOST_EXPANDED = 500_000
"""The most axes that one file's `let`s may be expanded to, all uses together."""


class OwnAxis(NamedTuple):
    """An axis as an entry of one file mentions it: by the file's own name."""

    name: str
    optional: bool
    span: Span


@dataclass(frozen=True, slots=True)
class LetAxes:
    """What an entry or a `let` stands for: an axis, or (`optional` as a whole or not) several."""

    axes: tuple[OwnAxis, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class LetLayout:
    """A `let` that stands for a layout; None where the layout was found wrong, and reported, at its definition."""

    layout: LayoutSpec | None


LetValue = LetAxes | LetLayout | None
"""None where the `let` was found wrong, and reported."""


@dataclass
class Scope:
    """The names of one file, while it is lowered.

    `renames` maps the file's axis names to those of the whole spec. `axes` are the whole spec's mesh axes, None where
    it has no mesh (a fragment) or the mesh was found wrong. `origin` is the file's distance, as in `Rule.origin`.
    """

    report: Report
    lets: Mapping[str, LetValue] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    axes: frozenset[str] | None = None
    origin: int = 0
    used_axes: set[str] = field(default_factory=set)
    """The file's own names of the axes that it mentions, for `extends … with` to be checked against."""
    used_lets: set[str] = field(default_factory=set)
    expanded: int = 0

    def at(self, span: Span) -> Location:
        return self.report.at(span)

    def axis(self, name: str) -> str:
        """The whole spec's name of an axis that this file calls `name`."""
        self.used_axes.add(name)
        return self.renames.get(name, name)

    def let(self, name: str) -> LetValue:
        """The value of a `let` that is there (`name in scope.lets`)."""
        self.used_lets.add(name)
        return self.lets[name]

    def may_expand(self, size: int, span: Span) -> bool:
        """Whether a `let` of `size` axes may be put here. False, with a finding the first time, once it is too much."""
        before, self.expanded = self.expanded, self.expanded + max(1, size)
        if self.expanded <= _MOST_EXPANDED:
            return True
        if before <= _MOST_EXPANDED:
            self.report.add("SHD007", span, f"the `let`s of this file expand to more than {_MOST_EXPANDED:,} axes")
        return False


def relocated(axes: Axes, where: Location) -> Axes:
    """The same entry as if it were written at `where`."""
    return Axes(
        axes=tuple(AxisRef(name=ref.name, optional=ref.optional, where=where) for ref in axes.axes),
        optional=axes.optional,
        where=where,
    )
