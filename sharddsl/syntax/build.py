"""From grammar rules to tree nodes, while the text is parsed: a method makes the node of the rule that it is named for.

Lark calls a method with all of the rule's children, punctuation included, so that the first and the last of them say
where the node stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lark import Token

from sharddsl.findings import Span
from sharddsl.syntax import tree
from sharddsl.syntax.newlines import span_of
from sharddsl.syntax.problem import Problem, shortened

Children = list[Any]
_T = TypeVar("_T", bound=tree.Node)

_LONGEST_INTEGER = 18
_NOTHING = frozenset({"None", "none", "null", "nil", "NONE", "NULL"})
_OPERATORS = frozenset({"and", "or", "not"})
_LAYOUTS = frozenset({"replicated", "follow"})


@dataclass(frozen=True, slots=True)
class _Part(tree.Node):
    """One part of a `check`, on its way into the node."""

    key: str
    value: object


class Builder:
    """Stateless. Raises `Problem` for what the grammar cannot refuse by itself."""

    def file(self, children: Children) -> tree.File:
        statements = _only(children, tree.Node)
        return tree.File(statements, span=_span(children)) if children else tree.File(())  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------------------ statements

    def extends(self, children: Children) -> tree.Extends:
        return tree.Extends(_string(children[1]), _only(children, tree.Rename), span=_span(children))

    def rename(self, children: Children) -> tree.Rename:
        return tree.Rename(str(children[0]), str(children[2]), span=_span(children))

    def let(self, children: Children) -> tree.Let:
        return tree.Let(str(children[1]), children[3], span=_span(children))

    def mesh(self, children: Children) -> tree.Mesh:
        return tree.Mesh(_only(children, tree.MeshAxis), _is(children[-1], "ALLOW_IDLE"), span=_span(children))

    def mesh_axis(self, children: Children) -> tree.MeshAxis:
        """NAME = SIZE, and then @ NAME, and then ( INT )."""
        dcn: int | str | None = None
        if len(children) > 3:
            tag = children[4]
            if tag != "dcn":
                raise Problem(
                    f"an axis has no tag `@{shortened(tag)}`",
                    span_of(tag),
                    "`@dcn` marks an axis that crosses the slow network between hosts",
                )
            dcn = _integer(children[6]) if len(children) > 5 else "whole"
        return tree.MeshAxis(str(children[0]), _integer(children[2]), dcn, span=_span(children))  # type: ignore[arg-type]

    def rule(self, children: Children) -> tree.Rule:
        memory = str(children[4]) if len(children) > 3 else None
        return tree.Rule(children[0], children[2], memory, span=_span(children))

    def block(self, children: Children) -> tree.Block:
        body = _only(children[2:], tree.Node)
        return tree.Block(children[0], body, span=_span(children))  # type: ignore[arg-type]

    def when(self, children: Children) -> tree.When:
        body = _only(children[3:], tree.Node)
        return tree.When(children[1], body, span=_span(children))  # type: ignore[arg-type]

    def check(self, children: Children) -> tree.Check:
        parts: dict[str, Any] = {}
        for part in _only(children, _Part):
            if part.key in parts:
                raise Problem(f"`{part.key}` is said twice in one check", part.span)
            parts[part.key] = part.value
        if "on" in parts:
            parts["mesh"] = parts.pop("on")
        body = _only(children, tree.Expect)
        return tree.Check(_word(children[1]), **parts, body=body, span=_span(children))

    def check_part(self, children: Children) -> _Part:
        key, value = str(children[0]), children[1]
        if key == "on":
            return _Part(key, _only(children, tree.SizedAxis), span=_span(children))
        return _Part(key, _integer(value) if key in ("batch", "seq") else _word(value), span=_span(children))

    def sized_axis(self, children: Children) -> tree.SizedAxis:
        return tree.SizedAxis(str(children[0]), _integer(children[2]), span=_span(children))

    def expect(self, children: Children) -> tree.Expect:
        return tree.Expect(children[1], span=_span(children))

    # -------------------------------------------------------------------------------------------------------- patterns

    def pattern(self, children: Children) -> tree.Pattern:
        segments: list[tree.Segment] = []
        root = None
        for child in children:
            if isinstance(child, tree.Segment):
                segments.append(child)
            elif child.type == "SLASH":
                root = len(segments)
        return tree.Pattern(tuple(segments), root, span=_span(children))

    def segment(self, children: Children) -> tree.Segment:
        token = children[0]
        layers = _layers(children[2:-1]) if len(children) > 1 else None
        if token.type == "STRING":
            return tree.Segment(_string(token), True, layers, span=_span(children))
        text = str(token)
        if text.isdigit():
            return tree.Segment(text, True, layers, span=_span(children))
        if "**" in text and text != "**":
            raise Problem(
                "`**` stands for whole segments, so it is a segment by itself",
                span_of(token),
                "`*` is any number of characters within one segment; write `a.**.b` for any segments between two",
            )
        if "{" in text:
            text = "".join(text.split())
        return tree.Segment(text, False, layers, span=_span(children))

    # --------------------------------------------------------------------------------------------------------- layouts

    def positional(self, children: Children) -> tree.Positional:
        entries = _only(children, tree.Node)
        fills = _only(children, tree.Fill)
        if len(fills) > 1:
            raise Problem("`...` may stand once in a layout", fills[1].span)
        return tree.Positional(entries, span=_span(children))  # type: ignore[arg-type]

    def named(self, children: Children) -> tree.Named:
        inherit = _is(children[1], "INHERIT")
        return tree.Named(_only(children, tree.DimEntry), inherit, span=_span(children))

    def dim_entry(self, children: Children) -> tree.DimEntry:
        return tree.DimEntry(str(children[0]), children[2], span=_span(children))

    def replicated(self, children: Children) -> tree.Replicated:
        return tree.Replicated(span=_span(children))

    def follow(self, children: Children) -> tree.Follow:
        return tree.Follow(span=_span(children))

    def layout_name(self, children: Children) -> tree.LayoutName:
        if children[0] in _NOTHING:
            raise Problem(
                f"`{children[0]}` is no layout",
                _span(children),
                "write `replicated` to keep the tensor whole on every device",
            )
        return tree.LayoutName(str(children[0]), span=_span(children))

    def axis(self, children: Children) -> tree.AxisName:
        name = children[0]
        if name in _LAYOUTS:
            raise Problem(f"`{name}` is a whole layout, not an axis", _span(children))
        if name == "None":
            raise Problem("`None` is no axis: it stands alone, for a dim that is not split", _span(children))
        if name in _NOTHING:
            raise Problem(f"`{name}` is no axis", _span(children), "write `None` for a dim that is not split")
        return tree.AxisName(str(name), len(children) > 1, span=_span(children))

    def axis_tuple(self, children: Children) -> tree.AxisTuple:
        optional = _is(children[-1], "QMARK")
        return tree.AxisTuple(_only(children, tree.AxisName), optional, span=_span(children))

    def whole(self, children: Children) -> tree.Whole:
        return tree.Whole(span=_span(children))

    def open_dim(self, children: Children) -> tree.Open:
        return tree.Open(span=_span(children))

    def fill(self, children: Children) -> tree.Fill:
        return tree.Fill(span=_span(children))

    # ----------------------------------------------------------------------------------------------------- expressions

    def number(self, children: Children) -> tree.Number:
        unit = str(children[1]) if len(children) > 1 else None
        return tree.Number(_number(children[0]), unit, span=_span(children))

    def word(self, children: Children) -> tree.Word:
        if children[0] in _OPERATORS:
            raise Problem(f"`{children[0]}` is an operator, not a name", _span(children))
        return tree.Word(str(children[0]), span=_span(children))

    def unary(self, children: Children) -> tree.Unary:
        return tree.Unary(str(children[0]), children[1], span=_span(children))  # type: ignore[arg-type]

    def binary(self, children: Children) -> tree.Binary:
        left, op, right = children
        return tree.Binary(str(op), left, right, span=_span(children))  # type: ignore[arg-type]

    def group(self, children: Children) -> tree.Expr:
        """The node within the parentheses, which count as its text: they would be lost from a quotation otherwise."""
        inner: tree.Expr = children[1]
        return replace(inner, span=_span(children))

    def call(self, children: Children) -> tree.Call:
        kind = str(children[2]) if _is(children[2], "NAME") else None
        return tree.Call(str(children[0]), kind, _only(children, tree.Argument), span=_span(children))

    def argument(self, children: Children) -> tree.Argument:
        value = children[2]
        if not isinstance(value, tree.Pattern):
            value = tuple(str(c) for c in children[3:] if c.type == "NAME")
        return tree.Argument(str(children[0]), value, span=_span(children))


def _span(children: Children) -> Span:
    """From the first child's start to the last one's end."""
    first, last = children[0], children[-1]
    start = first.span if isinstance(first, tree.Node) else first
    end = last.span if isinstance(last, tree.Node) else last
    return Span(start.line, start.column, end.end_line, end.end_column)


def _only(children: Children, kind: type[_T]) -> tuple[_T, ...]:
    return tuple(c for c in children if isinstance(c, kind))


def _is(child: object, terminal: str) -> bool:
    return isinstance(child, Token) and child.type == terminal


def _string(token: Token) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _word(token: Token) -> str:
    return _string(token) if token.type == "STRING" else str(token)


def _integer(token: Token) -> int:
    if len(token) > _LONGEST_INTEGER:
        raise Problem(f"a number of {len(token)} digits is more than anything here can be", span_of(token))
    return int(token)


def _number(token: Token) -> int | float:
    if token.isdigit():
        return _integer(token)
    value = float(token)
    if value in (float("inf"), float("-inf")):
        raise Problem("a number too large to compute with", span_of(token))
    return value


def _layers(tokens: Children) -> tuple[int | None, int | None]:
    """The half-open range of a subscript's inside: `3`, `0:4`, `:4`, `2:` or `:`."""
    if len(tokens) == 1 and tokens[0].type == "INT":
        first = _integer(tokens[0])
        return first, first + 1
    colon = next(i for i, token in enumerate(tokens) if token.type == "COLON")
    start = _integer(tokens[0]) if colon else None
    stop = _integer(tokens[-1]) if colon + 1 < len(tokens) else None
    return start, stop
