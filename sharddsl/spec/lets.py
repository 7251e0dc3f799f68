"""`let`: each name's value, whatever the order in which they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sharddsl.spec.layouts import axes_of, lower_layout
from sharddsl.spec.removal import removal
from sharddsl.spec.scope import RESERVED, LetLayout, LetValue, Scope
from sharddsl.syntax import tree


def define_lets(lets: Sequence[tree.Let], axes: Collection[str], scope: Scope) -> None:
    """Give `scope` the values of a file's `let`s. `axes` are the axes of the mesh that the file sees, by its names."""
    values: dict[str, LetValue] = {}
    scope.lets = values
    statements: dict[str, tree.Let] = {}
    for let in lets:
        if let.name in statements:
            first = scope.at(statements[let.name].span)
            scope.report.add("SHD003", let.span, f"`let {let.name}` stands twice", related=((first, "the first"),))
            continue
        _check_name(let, axes, scope)
        statements[let.name] = let
    for name in _in_order(statements, scope, values):
        values[name] = _value(statements[name].value, scope)
    scope.used_lets.clear()


def _check_name(let: tree.Let, axes: Collection[str], scope: Scope) -> None:
    if let.name in RESERVED:
        message = f"`{let.name}` is a word of the language: a `let` needs another name"
    elif let.name in axes:
        message = f"`let {let.name}` has the name of a mesh axis: which of them an entry means could not be told"
    else:
        return
    scope.report.add("SHD003", scope.report.find(let.name, let.span), message, "give the `let` another name")


def _value(value: tree.AxisName | tree.AxisTuple | tree.LayoutExpr, scope: Scope) -> LetValue:
    match value:
        case tree.AxisName(name=name) | tree.LayoutName(name=name) if isinstance(scope.lets.get(name), LetLayout):
            return scope.lets[name]
        case tree.AxisName() | tree.AxisTuple():
            return axes_of(value, scope)
        case tree.LayoutName(name=name, span=span):
            return axes_of(tree.AxisName(name, span=span), scope)
        case _:
            return LetLayout(lower_layout(value, scope))


def _in_order(lets: dict[str, tree.Let], scope: Scope, values: dict[str, LetValue]) -> Iterator[str]:
    """The names, each after those it mentions; a name that is defined by itself is reported and gets no value.

    Walks with a stack of its own: a chain of ten thousand `let`s is no reason to run out of Python's.
    """
    for start, let in lets.items():
        path: dict[str, Iterator[str]] = {} if start in values else {start: iter(mentioned(let.value))}
        while path:
            name, rest = next(reversed(path.items()))
            following = next((other for other in rest if other in lets and other not in values), None)
            if following is None:
                del path[name]
                if name not in values:
                    yield name
            elif following in path:
                _report_cycle([*path][[*path].index(following) :], lets, scope)
                values.update(dict.fromkeys(path))
                path.clear()
            else:
                path[following] = iter(mentioned(lets[following].value))


def _report_cycle(names: list[str], lets: dict[str, tree.Let], scope: Scope) -> None:
    shown = names if len(names) <= 8 else [*names[:4], "…", *names[-3:]]
    chain = " → ".join(f"`{name}`" if name != "…" else name for name in [*shown, names[0]])
    message = f"`let {names[0]}` has no value: it is defined by itself ({chain})"
    scope.report.add("SHD002", lets[names[0]].span, message)


def mentioned(value: tree.AxisName | tree.AxisTuple | tree.LayoutExpr) -> Iterator[str]:
    """The names that a `let`'s value or a layout mentions: axes or `let`s."""
    match value:
        case tree.AxisName(name=name) | tree.LayoutName(name=name):
            yield name
        case tree.AxisTuple(axes=axes):
            yield from (axis.name for axis in axes)
        case tree.Positional(entries=entries):
            for entry in entries:
                if isinstance(entry, tree.AxisName | tree.AxisTuple):
                    yield from mentioned(entry)
        case tree.Named(entries=items):
            for item in items:
                if isinstance(item.entry, tree.AxisName | tree.AxisTuple):
                    yield from mentioned(item.entry)


def report_unused(lets: Sequence[tree.Let], scope: Scope) -> None:
    """SHD005 for each `let` that no rule, check or used `let` mentions, with its removal as the fix. One that an
    unknown name may have meant is not called unused."""
    values = {let.name: let.value for let in reversed(lets)}
    reached, waiting = set[str](), [name for name in scope.used_lets if name in values]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += (other for other in mentioned(values[name]) if other in values)
    for let in lets:
        if let.name not in reached | scope.report.offered and values[let.name] is let.value:
            message = f"`let {let.name}` is used by nothing"
            fix = removal(scope.at(let.span), scope.report.text)
            scope.report.add("SHD005", let.span, message, "remove it", severity="warning", fix=fix)
