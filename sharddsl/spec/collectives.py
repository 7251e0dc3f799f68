"""`count(…)` and `bytes(…)`: which of a program's collectives are meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from sharddsl.findings import Span
from sharddsl.spec.model import CollectiveQuery, Pattern
from sharddsl.spec.patterns import OUTERMOST, as_pattern, extend
from sharddsl.spec.scope import LetAxes, LetLayout, Scope
from sharddsl.syntax import tree

FUNCTIONS = ("count", "bytes")
_FIELDS = CollectiveQuery.model_fields


def _words(field: str) -> tuple[str, ...]:
    """The words that a field of `CollectiveQuery` takes: `Literal[…] | None`."""
    literal = next(option for option in get_args(_FIELDS[field].annotation) if option is not type(None))
    return get_args(literal)


COLLECTIVES = _words("collective")
WORDS: Mapping[str, tuple[str, ...]] = {"in": _words("during"), "at": _words("at")}
_CALLED = {"in": "phase", "at": "place"}
_ARGUMENTS = ("over", "of", *WORDS)


def lower_call(call: tree.Call, scope: Scope) -> CollectiveQuery | None:
    """The query; None, with findings, where a word, an axis or a pattern in it is wrong."""
    report = scope.report
    before = len(report.findings)
    if call.function not in FUNCTIONS:
        report.unknown("SHD002", report.find(call.function, call.span), call.function, "function", FUNCTIONS)
    if call.kind is not None and call.kind not in COLLECTIVES:
        report.unknown("SHD002", report.find(call.kind, call.span), call.kind, "collective", COLLECTIVES)
    first: dict[str, tree.Argument] = {}
    words: dict[str, str] = {}
    over: tuple[str, ...] = ()
    of: Pattern | None = None
    for argument in call.arguments:
        if argument.name in first:
            related = ((report.at(first[argument.name].span), "the first"),)
            report.add("SHD003", argument.span, f"argument `{argument.name}` stands twice", related=related)
            continue
        first[argument.name] = argument
        match argument.name:
            case "over":
                over = _axes(argument, scope)
            case "of":
                of = _tensors(argument, scope)
            case "in" | "at":
                words[argument.name] = _word(argument, scope)
            case name:
                report.unknown("SHD002", report.find(name, argument.span), name, "argument", _ARGUMENTS)
    if len(report.findings) > before:
        return None
    return CollectiveQuery.model_validate(
        {
            "function": call.function,
            "collective": call.kind,
            "over": over,
            "of": of,
            "during": words.get("in"),
            "at": words.get("at"),
        }
    )


def _plain(pattern: tree.Pattern) -> str | None:
    """The word that a pattern of one plain segment is."""
    if len(pattern.segments) != 1 or pattern.root is not None:
        return None
    segment = pattern.segments[0]
    return segment.text if segment.layers is None and not segment.quoted and segment.text.isidentifier() else None


def _axes(argument: tree.Argument, scope: Scope) -> tuple[str, ...]:
    """The axes of `over=`, `let`s replaced, under the whole spec's names."""
    value = argument.value
    if isinstance(value, tree.Pattern):
        word = _plain(value)
        if word is None:
            scope.report.add("SHD007", value.span, "`over` names an axis or a tuple of axes: `over=(dp, fsdp)`")
            return ()
        value = (word,)
    return tuple(axis for name in value for axis in _axis(name, argument.span, scope))


def _axis(name: str, within: Span, scope: Scope) -> tuple[str, ...]:
    span = scope.report.find(name, within)
    if name in scope.lets:
        match scope.let(name):
            case LetAxes(axes=axes):
                return tuple(scope.axis(own.name) for own in axes)
            case LetLayout():
                scope.report.add("SHD007", span, f"`{name}` is a layout, and an axis is needed here")
        return ()
    axis = scope.axis(name)
    if scope.axes is not None and axis not in scope.axes:
        scope.report.unknown("SHD101", span, name, "axis", scope.axes)
        return ()
    return (axis,)


def _tensors(argument: tree.Argument, scope: Scope) -> Pattern | None:
    if isinstance(argument.value, tuple):
        scope.report.add("SHD007", argument.span, "`of` takes one pattern", "write alternatives: `of=attn.{wq, wk}`")
        return None
    whole = extend(OUTERMOST, argument.value, scope.report)
    return None if whole is None else as_pattern(whole)


def _word(argument: tree.Argument, scope: Scope) -> str:
    known = WORDS[argument.name]
    word = _plain(argument.value) if isinstance(argument.value, tree.Pattern) else None
    if word is None:
        scope.report.add("SHD007", argument.span, f"`{argument.name}` takes one word: " + ", ".join(known))
    elif word not in known:
        scope.report.unknown("SHD002", scope.report.find(word, argument.span), word, _CALLED[argument.name], known)
    return word or ""
