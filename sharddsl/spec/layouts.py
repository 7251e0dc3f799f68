"""Layouts: entries with their `let`s replaced, and what a layout may say in which namespace."""

from __future__ import annotations

from collections.abc import Iterable

from sharddsl.findings import Location, Span
from sharddsl.spec.model import (
    Axes,
    AxisRef,
    DimEntry,
    Entry,
    Fill,
    Follow,
    LayoutSpec,
    Named,
    Namespace,
    Open,
    Positional,
    Replicated,
)
from sharddsl.spec.scope import MOST_AXES, MOST_ENTRIES, LetAxes, LetLayout, OwnAxis, Scope, relocated
from sharddsl.syntax import tree


def lower_layout(layout: tree.LayoutExpr, scope: Scope) -> LayoutSpec | None:
    """The layout with every `let` replaced; None, with a finding, where it is wrong."""
    match layout:
        case tree.Positional():
            return _positional(layout, scope)
        case tree.Named():
            return _named(layout, scope)
        case tree.Replicated():
            return Replicated()
        case tree.Follow():
            return Follow()
        case tree.LayoutName(name=name, span=span):
            return _layout_called(name, span, scope)


def _positional(layout: tree.Positional, scope: Scope) -> Positional | None:
    if not _fits(len(layout.entries), layout.span, scope):
        return None
    entries = [_entry(entry, scope) for entry in layout.entries]
    fills = [entry.span for entry in layout.entries if isinstance(entry, tree.Fill)]
    for again in fills[1:]:
        message = "`...` stands twice in one layout, so that no one can say which dims are between"
        scope.report.add("SHD007", again, message, "keep one of them", related=((scope.at(fills[0]), "the first"),))
    good = tuple(entry for entry in entries if entry is not None)
    return Positional(entries=good) if len(good) == len(entries) and len(fills) < 2 else None


def _named(layout: tree.Named, scope: Scope) -> Named | None:
    if not _fits(len(layout.entries), layout.span, scope):
        return None
    first: dict[str, Span] = {}
    entries: list[DimEntry] = []
    for item in layout.entries:
        entry = _entry(item.entry, scope)
        if item.dim in first:
            scope.report.add(
                "SHD003",
                item.span,
                f"dim `{item.dim}` stands twice in one layout",
                f"put both axes into one entry: `{item.dim}: (a, b)`",
                related=((scope.at(first[item.dim]), "the first"),),
            )
        elif isinstance(entry, Fill):
            message = "`...` has no meaning in a layout by dim name: dims that are not listed are replicated"
            scope.report.add("SHD007", item.entry.span, message)
        elif entry is not None:
            entries.append(DimEntry(dim=item.dim, entry=entry, where=scope.at(item.span)))
        first.setdefault(item.dim, item.span)
    return Named(entries=tuple(entries), inherit=layout.inherit) if len(entries) == len(layout.entries) else None


def _fits(entries: int, span: Span, scope: Scope) -> bool:
    if entries > MOST_ENTRIES:
        message = f"a layout of {entries} entries: no array has as many dims (at most {MOST_ENTRIES} are read)"
        scope.report.add("SHD007", span, message)
    return entries <= MOST_ENTRIES


def _layout_called(name: str, span: Span, scope: Scope) -> LayoutSpec | None:
    if name not in scope.lets:
        if scope.axes is not None and scope.renames.get(name, name) in scope.axes:
            message = f"`{name}` is an axis, and a layout is needed here"
            scope.report.add("SHD007", span, message, f"write `[{name}]`, an entry per dim, or `{{dim: {name}}}`")
        else:
            known = [let for let, value in scope.lets.items() if isinstance(value, LetLayout)]
            scope.report.unknown("SHD002", span, name, "layout", [*known, "replicated", "follow"])
        return None
    value = scope.let(name)
    if isinstance(value, LetAxes):
        message = f"`{name}` stands for axes, and a layout is needed here"
        scope.report.add("SHD007", span, message, f"write `[{name}]`, an entry per dim, or `{{dim: {name}}}`")
        return None
    if value is None or value.layout is None or not scope.may_expand(_axes_in(value.layout), span):
        return None
    return _placed(value.layout, scope.at(span))


def _axes_in(layout: LayoutSpec) -> int:
    if isinstance(layout, Replicated | Follow):
        return 0
    return sum(len(entry.axes) + 1 if isinstance(entry, Axes) else 1 for entry in _entries(layout))


def _placed(layout: LayoutSpec, where: Location) -> LayoutSpec:
    """The layout of a `let` as if it were written where it is used."""
    match layout:
        case Positional(entries=entries):
            return Positional(entries=tuple(_entry_at(entry, where) for entry in entries))
        case Named(entries=entries, inherit=inherit):
            placed = (DimEntry(dim=item.dim, entry=_entry_at(item.entry, where), where=where) for item in entries)
            return Named(entries=tuple(placed), inherit=inherit)
        case _:
            return layout


def _entry_at(entry: Entry, where: Location) -> Entry:
    return relocated(entry, where) if isinstance(entry, Axes) else entry.model_copy(update={"where": where})


def _entry(entry: tree.Entry, scope: Scope) -> Entry | None:
    where = scope.at(entry.span)
    match entry:
        case tree.Whole():
            return Axes(where=where)
        case tree.Open():
            return Open(where=where)
        case tree.Fill():
            return Fill(where=where)
        case _:
            value = axes_of(entry, scope)
            if value is None:
                return None
            refs = [AxisRef(name=scope.axis(a.name), optional=a.optional, where=scope.at(a.span)) for a in value.axes]
            return Axes(axes=tuple(refs), optional=value.optional, where=where)


def axes_of(entry: tree.AxisName | tree.AxisTuple, scope: Scope) -> LetAxes | None:
    """The axes that an entry or a `let` stands for, under the file's own names; None, with a finding, if wrong."""
    if isinstance(entry, tree.AxisName):
        return _axes_called(entry, scope)
    if len(entry.axes) > MOST_AXES:
        _report_long_tuple(len(entry.axes), entry, scope)
        return None
    parts = [_within_tuple(item, scope) for item in entry.axes]
    axes = tuple(axis for part in parts if part is not None for axis in part)
    if len(axes) > MOST_AXES:
        _report_long_tuple(len(axes), entry, scope)
    return None if None in parts or len(axes) > MOST_AXES else LetAxes(axes, entry.optional)


def _report_long_tuple(axes: int, entry: tree.AxisTuple, scope: Scope) -> None:
    scope.report.add("SHD007", entry.span, f"one dim over {axes} axes: at most {MOST_AXES} are read")


def _within_tuple(item: tree.AxisName, scope: Scope) -> tuple[OwnAxis, ...] | None:
    value = _axes_called(item, scope)
    if value is None:
        return None
    if value.optional:
        message = f"`{item.name}` is dropped whole or not at all, which a part of a tuple cannot be"
        scope.report.add("SHD007", item.span, message, "write the axes out, with `?` on each that may be dropped")
        return None
    return value.axes


def _axes_called(entry: tree.AxisName, scope: Scope) -> LetAxes | None:
    """An axis by its name, or the axes of a `let`, each as if written here."""
    if entry.name not in scope.lets:
        return LetAxes((OwnAxis(entry.name, entry.optional, entry.span),))
    value = scope.let(entry.name)
    if isinstance(value, LetLayout):
        message = f"`{entry.name}` is a layout, and an axis is needed here"
        scope.report.add("SHD007", entry.span, message, "name an axis, or a `let` that stands for axes")
        return None
    if value is None or not scope.may_expand(len(value.axes), entry.span):
        return None
    single = len(value.axes) == 1
    axes = (OwnAxis(a.name, a.optional or (single and entry.optional), entry.span) for a in value.axes)
    return LetAxes(tuple(axes), value.optional or (entry.optional and not single))


def check_namespace(layout: LayoutSpec, namespace: Namespace, span: Span, scope: Scope) -> bool:
    """Whether tensors of `namespace` may have this layout; if not, with a finding."""
    if isinstance(layout, Follow):
        if namespace in ("grad", "opt"):
            return True
        message = (
            f"`follow` is the layout of the param that a gradient or a moment belongs to; {_plural(namespace)} none"
        )
        scope.report.add("SHD007", span, message, "write the layout out")
        return False
    opened = [e.where for e in _entries(layout) if isinstance(e, Open)] if namespace not in ("act", "grad") else []
    for where in dict.fromkeys(opened):
        message = (
            f"`*` leaves a dim to the compiler, which jit allows for act and grad only; {_plural(namespace)} "
            "to be placed before anything runs"
        )
        scope.report.add("SHD007", where.span if where else span, message, "write `None` or an axis")
    return not opened


def _entries(layout: LayoutSpec) -> Iterable[Entry]:
    match layout:
        case Positional(entries=entries):
            return entries
        case Named(entries=items):
            return (item.entry for item in items)
        case _:
            return ()


def _plural(namespace: Namespace) -> str:
    """The subject and verb that fit both messages above."""
    return {"param": "params have", "batch": "inputs have", "cache": "caches have", "act": "activations have"}.get(
        namespace, "optimizer leaves have"
    )
