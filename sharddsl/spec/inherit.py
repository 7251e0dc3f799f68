"""What a file gets from its bases: the mesh, and axes under the names that `extends … with` gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sharddsl.findings import Span
from sharddsl.spec.chain import Unit
from sharddsl.spec.mesh import lower_mesh, renamed
from sharddsl.spec.model import Mesh
from sharddsl.spec.scope import RESERVED
from sharddsl.syntax import tree


@dataclass(frozen=True, slots=True)
class MeshView:
    """The mesh that a file sees, under its own names: its own or its base's. None where there is none, or, unless
    `known`, where it was found wrong or its file could not be had."""

    mesh: Mesh | None
    known: bool


def effective_meshes(units: Sequence[Unit], whole: bool) -> list[MeshView]:
    """Each file's view, in the order of `units`. `whole`: the last of them has no base."""
    views: list[MeshView] = []
    view = MeshView(None, known=whole)
    for unit in reversed(units):
        statements = [s for s in unit.file.statements if isinstance(s, tree.Mesh)]
        for again in statements[1:]:
            related = ((unit.report.at(statements[0].span), "the first"),)
            unit.report.add("SHD003", again.span, "`mesh` stands twice in one file", related=related)
        if statements:
            mesh = lower_mesh(statements[0], unit.report)
            view = MeshView(mesh, known=mesh is not None)
        else:
            mesh = None if view.mesh is None else renamed(view.mesh, _names(unit))
            view = MeshView(mesh, known=view.known and unit.complete)
        views.append(view)
    return views[::-1]


def _names(unit: Unit) -> dict[str, str]:
    """What the unit's `extends … with` calls its base's axes; the first of two that rename the same axis counts."""
    renames = unit.extends.renames if unit.extends is not None else ()
    return {rename.old: rename.new for rename in reversed(renames)}


def composed(units: Sequence[Unit]) -> list[Mapping[str, str]]:
    """For each file, what the whole spec calls its axes (those that are called otherwise)."""
    maps: list[Mapping[str, str]] = [{}]
    for unit in units[:-1]:
        outer, names = maps[-1], _names(unit)
        maps.append({old: outer.get(names.get(old, old), names.get(old, old)) for old in {**outer, **names}})
    return maps


def report_renames(units: Sequence[Unit], views: Sequence[MeshView], used: Sequence[Collection[str]]) -> None:
    """Whether each `extends … with` renames axes that its base has, to names that are free. `used` are the axes that
    each file mentions: what a base without a mesh is taken to have."""
    below: set[str] = set()
    for i in reversed(range(len(units) - 1)):
        names = _names(units[i + 1]) if i + 2 < len(units) else {}
        below = {names.get(axis, axis) for axis in below} | set(used[i + 1])
        view = views[i + 1]
        axes = None if not view.known else below if view.mesh is None else set(view.mesh.names)
        _report_renames(units[i], axes)


def _report_renames(unit: Unit, axes: Collection[str] | None) -> None:
    renames = unit.extends.renames if unit.extends is not None else ()
    olds: dict[str, Span] = {}
    news: dict[str, Span] = {}
    moved = {rename.old for rename in renames}
    for rename in renames:
        report, span = unit.report, rename.span
        if rename.old in olds:
            related = ((report.at(olds[rename.old]), "the first"),)
            report.add("SHD003", span, f"axis `{rename.old}` is renamed twice", related=related)
        elif rename.new in news:
            related = ((report.at(news[rename.new]), "the first"),)
            report.add("SHD003", span, f"two axes are renamed to `{rename.new}`", related=related)
        elif rename.new in RESERVED:
            report.add("SHD003", span, f"`{rename.new}` is a word of the language: an axis needs another name")
        elif axes is not None and rename.old not in axes:
            report.unknown("SHD101", report.find(rename.old, span), rename.old, "axis of the base", axes)
        elif axes is not None and rename.new in axes and rename.new not in moved:
            message = f"the base has an axis `{rename.new}` already: two axes would have one name"
            report.add("SHD003", span, message, f"rename it as well: `{rename.new}=…`")
        olds.setdefault(rename.old, span)
        news.setdefault(rename.new, span)
