"""From tree to text: the one way in which each tree is written.

`parse(to_text(tree)).file == tree` for every tree that a text can give. Comments are not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from sharddsl.syntax import tree

_INDENT = "  "
_BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Printable = tree.File | tree.Statement | tree.LayoutExpr | tree.Pattern | tree.Expr | tree.Entry


def to_text(node: Printable) -> str:
    """The canonical text of a node. A file ends with a newline; nothing else does."""
    match node:
        case tree.File(statements):
            return "".join(f"{_statement(s, '')}\n" for s in statements)
        case tree.Pattern():
            return _pattern(node)
        case tree.Number() | tree.Word() | tree.Unary() | tree.Binary() | tree.Call():
            return _expr(node, _LOOSEST)
        case tree.AxisName() | tree.AxisTuple() | tree.Whole() | tree.Open() | tree.Fill():
            return _entry(node)
        case tree.Positional() | tree.Named() | tree.Replicated() | tree.Follow() | tree.LayoutName():
            return _layout(node)
        case _:
            return _statement(node, "")


# ----------------------------------------------------------------------------------------------------------- statements


def _statement(node: tree.Statement, indent: str) -> str:
    match node:
        case tree.Extends(target, renames):
            names = ", ".join(f"{r.old}={r.new}" for r in renames)
            return f"{indent}extends {_quoted(target)}{f' with {names}' if names else ''}"
        case tree.Let(name, value):
            return f"{indent}let {name} = {to_text(value)}"
        case tree.Mesh(axes, allow_idle):
            listed = ", ".join(_mesh_axis(axis) for axis in axes)
            return f"{indent}mesh: [{listed}]{' allow_idle' if allow_idle else ''}"
        case tree.Rule(pattern, layout, memory):
            return f"{indent}{_pattern(pattern)}: {_layout(layout)}{f' @{memory}' if memory else ''}"
        case tree.Block(pattern, body):
            return f"{indent}{_pattern(pattern)} {_body(body, indent)}"
        case tree.When(condition, body):
            return f"{indent}when {_expr(condition, _LOOSEST)} {_body(body, indent)}"
        case tree.Expect(condition):
            return f"{indent}expect {_expr(condition, _LOOSEST)}"
        case tree.Check():
            return indent + _check(node, indent)
    assert_never(node)


def _body(body: Iterable[tree.Statement], indent: str) -> str:
    lines = [_statement(s, indent + _INDENT) for s in body]
    return "\n".join(["{", *lines, indent + "}"]) if lines else "{}"


def _mesh_axis(axis: tree.MeshAxis) -> str:
    tag = "" if axis.dcn is None else " @dcn" if axis.dcn == "whole" else f" @dcn({axis.dcn})"
    return f"{axis.name}={axis.size}{tag}"


def _check(node: tree.Check, indent: str) -> str:
    parts = [f"check {_word(node.model)}"]
    if node.mesh is not None:
        parts.append(f"on [{', '.join(f'{axis.name}={axis.size}' for axis in node.mesh)}]")
    if node.target is not None:
        parts.append(f"target {_quoted(node.target)}")
    if node.batch is not None:
        parts.append(f"batch {node.batch}")
    if node.seq is not None:
        parts.append(f"seq {node.seq}")
    if node.mode is not None:
        parts.append(f"mode {_word(node.mode)}")
    if node.run is not None:
        parts.append(f"run {_word(node.run)}")
    if node.body:
        parts.append(_body(node.body, indent))
    return " ".join(parts)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _word(text: str) -> str:
    return text if _BARE_WORD.fullmatch(text) else _quoted(text)


# ------------------------------------------------------------------------------------------------- patterns and layouts


def _pattern(node: tree.Pattern) -> str:
    segments = [("/" if i == node.root else "") + _segment(s) for i, s in enumerate(node.segments)]
    return ".".join(segments)


def _segment(node: tree.Segment) -> str:
    if node.quoted:
        text = node.text if node.text.isascii() and node.text.isdigit() else _quoted(node.text)
    else:
        text = node.text.replace(",", ", ")
    match node.layers:
        case None:
            return text
        case (int() as first, int() as stop) if stop == first + 1:
            return f"{text}[{first}]"
        case (start, stop):
            return f"{text}[{'' if start is None else start}:{'' if stop is None else stop}]"


def _layout(node: tree.LayoutExpr) -> str:
    match node:
        case tree.Positional(entries):
            return f"[{', '.join(_entry(e) for e in entries)}]"
        case tree.Named(dims, inherit):
            return f"{{{', '.join([*['..'] * inherit, *(f'{d.dim}: {_entry(d.entry)}' for d in dims)])}}}"
        case tree.Replicated():
            return "replicated"
        case tree.Follow():
            return "follow"
        case tree.LayoutName(name):
            return name
    assert_never(node)


def _entry(node: tree.Entry) -> str:
    match node:
        case tree.AxisName(name, optional):
            return f"{name}{'?' if optional else ''}"
        case tree.AxisTuple(axes, optional):
            return f"({', '.join(_entry(axis) for axis in axes)}){'?' if optional else ''}"
        case tree.Whole():
            return "None"
        case tree.Open():
            return "*"
        case tree.Fill():
            return "..."
    assert_never(node)


# ---------------------------------------------------------------------------------------------------------- expressions

_LOOSEST = 0
_NEGATION, _SIGN = 2, 6
_BINDING = {"or": 0, "and": 1, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_COMPARISON = 3


def _expr(node: tree.Expr, at_least: int) -> str:
    """The expression, in parentheses where it binds looser than `at_least`."""
    match node:
        case tree.Number(value, unit):
            return f"{value!r}{f' {unit}' if unit else ''}"
        case tree.Word(text):
            return text
        case tree.Call():
            return _call(node)
        case tree.Unary("not", operand):
            binds, text = _NEGATION, f"not {_expr(operand, _NEGATION)}"
        case tree.Unary(_, operand):
            binds, text = _SIGN, f"-{_expr(operand, _SIGN)}"
        case tree.Binary(op, left, right):
            # Operators group from the left; a comparison is no operand of another one on either side.
            binds = _BINDING.get(op, _COMPARISON)
            text = f"{_expr(left, binds + (binds == _COMPARISON))} {op} {_expr(right, binds + 1)}"
        case _:
            assert_never(node)
    return f"({text})" if binds < at_least else text


def _call(node: tree.Call) -> str:
    arguments = [f"{a.name}={_argument(a.value)}" for a in node.arguments]
    return f"{node.function}({', '.join([*([node.kind] if node.kind else []), *arguments])})"


def _argument(value: tree.Pattern | tuple[str, ...]) -> str:
    return _pattern(value) if isinstance(value, tree.Pattern) else f"({', '.join(value)})"
