"""`when` and `expect` expressions: names looked up, units multiplied in, kinds checked before there is any value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from sharddsl.spec.collectives import lower_call
from sharddsl.spec.evaluate import MODES
from sharddsl.spec.model import Binary, Condition, Expr, Name, Number, Unary
from sharddsl.spec.scope import Scope
from sharddsl.syntax import to_text, tree

Kind = Literal["number", "truth", "word"]
Place = Literal["when", "expect"]

DIMS: tuple[str, ...] = ("embed", "heads", "kv_heads", "head_dim", "ffn", "vocab", "layers", "seq", "batch")
"""The model's dims that a condition may ask about, before axes of the same name."""

KINDS: Mapping[str, Kind] = {
    **dict.fromkeys((*DIMS, "devices", "hosts"), "number"),
    "tied": "truth",
    "mode": "word",
    **dict.fromkeys(sorted(MODES), "word"),
}
"""The names that always mean something, and what kind of value each has."""

QUANTITIES: tuple[str, ...] = (
    "memory.params", "memory.grads", "memory.opt", "memory.cache", "memory.peak", "flops", "replicated.params",
)  # fmt: skip
"""What only a program has: numbers, for `expect` alone."""

UNITS: Mapping[str, int] = {
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
"""Bytes (IEC 80000-13 and SI prefixes)."""

_LARGEST = 10**30
"""The largest number that is read."""

_OPERANDS: Mapping[str, Kind] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "<", "<=", ">", ">="), "number"),
    "and": "truth",
    "or": "truth",
}

_KIND_WORDS: Mapping[Kind, str] = {"number": "a number", "truth": "true or false", "word": "a word"}


def lower_condition(expr: tree.Expr, scope: Scope, place: Place) -> Condition | None:
    """The expression, which must be true or false; None, with findings, where it is wrong.

    It is nested no deeper than Python can follow: the parser sees to that, as it does for blocks.
    """
    lowered = _lower(expr, scope, place)
    if lowered is None:
        return None
    value, kind = lowered
    if kind != "truth":
        message = f"`{place}` needs a condition, and this is {_KIND_WORDS[kind]}"
        help = "compare it: `… > 1`" if kind == "number" else f"compare it: `mode == {_word(expr)}`"
        scope.report.add("SHD007", expr.span, message, help)
        return None
    return Condition(expr=value, text=to_text(_renamed(expr, scope)), where=scope.at(expr.span))


def _renamed(expr: tree.Expr, scope: Scope) -> tree.Expr:
    """The expression with the axes under the whole spec's names, so that what reads the same means the same."""
    if not scope.renames:
        return expr
    match expr:
        case tree.Word(text=text):
            return replace(expr, text=_axis_name(text, scope)) if text not in (*KINDS, *QUANTITIES) else expr
        case tree.Unary(operand=operand):
            return replace(expr, operand=_renamed(operand, scope))
        case tree.Binary(left=left, right=right):
            return replace(expr, left=_renamed(left, scope), right=_renamed(right, scope))
        case _:
            return expr


def _axis_name(text: str, scope: Scope) -> str:
    """How a condition of the whole spec names the axis that this file's condition calls `text`: with `mesh.` where the
    file says so, and where the name would mean a dim otherwise."""
    plain = text.removeprefix("mesh.")
    axis = scope.axis(plain)
    return f"mesh.{axis}" if text != plain or axis in KINDS else axis


def _word(expr: tree.Expr) -> str:
    return expr.text if isinstance(expr, tree.Word) and expr.text in MODES else "train"


def _lower(expr: tree.Expr, scope: Scope, place: Place) -> tuple[Expr, Kind] | None:
    match expr:
        case tree.Number():
            return _number(expr, scope)
        case tree.Word():
            return _name(expr, scope, place)
        case tree.Unary():
            return _unary(expr, scope, place)
        case tree.Binary():
            return _binary(expr, scope, place)
        case tree.Call():
            if place == "when":
                message = f"`{expr.function}(…)` counts in a compiled program, which no rule can depend on"
                scope.report.add("SHD007", expr.span, message, "ask it in `expect`")
                return None
            query = lower_call(expr, scope)
            return None if query is None else (query, "number")


def _number(number: tree.Number, scope: Scope) -> tuple[Number, Kind] | None:
    factor = 1
    if number.unit is not None:
        if number.unit not in UNITS:
            span = scope.report.find(number.unit, number.span)
            scope.report.unknown("SHD002", span, number.unit, "unit", UNITS)
            return None
        factor = UNITS[number.unit]
    if not abs(number.value) <= _LARGEST:
        scope.report.add("SHD007", number.span, "a number too large to mean anything here (at most 1e30 is read)")
        return None
    return Number(value=number.value * factor), "number"


def _name(word: tree.Word, scope: Scope, place: Place) -> tuple[Name, Kind] | None:
    text = word.text
    if text in KINDS:
        return Name(text=text), KINDS[text]
    if text in QUANTITIES:
        if place == "expect":
            return Name(text=text), "number"
        message = f"`{text}` is known of a compiled program only, which no rule can depend on"
        scope.report.add("SHD007", word.span, message, "ask it in `expect`")
        return None
    plain = text.removeprefix("mesh.")
    axis = scope.axis(plain)
    if "." not in plain and (scope.axes is None or axis in scope.axes):
        return Name(text=_axis_name(text, scope)), "number"
    if text != plain:
        scope.report.unknown("SHD101", word.span, text, "axis", [f"mesh.{name}" for name in scope.axes or ()])
    else:
        known = [*KINDS, *(scope.axes or ()), *(QUANTITIES if place == "expect" else ())]
        remedy = f"if it is an axis, the mesh calls it otherwise: extends … with {text}=…" if scope.origin > 0 else None
        scope.report.unknown("SHD002", word.span, text, "name", known, or_else=remedy)
    return None


def _unary(expr: tree.Unary, scope: Scope, place: Place) -> tuple[Expr, Kind] | None:
    lowered = _lower(expr.operand, scope, place)
    needed: Kind = "truth" if expr.op == "not" else "number"
    if lowered is None or not _is(lowered[1], needed, expr.op, expr.operand, scope):
        return None
    return Unary(op=expr.op, operand=lowered[0]), needed


def _binary(expr: tree.Binary, scope: Scope, place: Place) -> tuple[Expr, Kind] | None:
    left, right = _lower(expr.left, scope, place), _lower(expr.right, scope, place)
    if left is None or right is None:
        return None
    needed = _OPERANDS.get(expr.op)
    if needed is not None:
        good = [_is(left[1], needed, expr.op, expr.left, scope), _is(right[1], needed, expr.op, expr.right, scope)]
        if not all(good):
            return None
    elif left[1] != right[1]:
        message = f"`{expr.op}` compares {_KIND_WORDS[left[1]]} with {_KIND_WORDS[right[1]]}"
        scope.report.add("SHD007", expr.span, message)
        return None
    if expr.op in ("/", "%") and isinstance(right[0], Number) and right[0].value == 0:
        scope.report.add("SHD007", expr.span, f"`{expr.op}` by zero")
        return None
    kind: Kind = "number" if expr.op in ("+", "-", "*", "/", "%") else "truth"
    return Binary(op=expr.op, left=left[0], right=right[0]), kind


def _is(kind: Kind, needed: Kind, op: str, operand: tree.Expr, scope: Scope) -> bool:
    if kind != needed:
        message = f"`{op}` needs {_KIND_WORDS[needed]}, and `{to_text(operand)}` is {_KIND_WORDS[kind]}"
        scope.report.add("SHD007", operand.span, message)
    return kind == needed
