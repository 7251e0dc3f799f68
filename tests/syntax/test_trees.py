"""What the nodes of a text are, where they stand, and what is kept beside them."""

from __future__ import annotations

import pytest

from sharddsl.findings import Span
from sharddsl.syntax import parse, tree
from sharddsl.syntax.tree import (
    Argument,
    AxisName,
    AxisTuple,
    Binary,
    Block,
    Call,
    Check,
    DimEntry,
    Expect,
    Extends,
    Fill,
    Follow,
    LayoutName,
    Let,
    Mesh,
    MeshAxis,
    Named,
    Number,
    Open,
    Pattern,
    Positional,
    Rename,
    Replicated,
    Rule,
    Segment,
    SizedAxis,
    Unary,
    When,
    Whole,
    Word,
)


def path(*segments: str | Segment, root: int | None = None) -> Pattern:
    return Pattern(tuple(Segment(s) if isinstance(s, str) else s for s in segments), root)


A, B, C = AxisName("a"), AxisName("b"), AxisName("c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("act: data", Rule(path("act"), LayoutName("data"))),
        ("*: replicated", Rule(path("*"), Replicated())),
        ("/a.b: follow @pinned_host", Rule(path("a", "b", root=0), Follow(), "pinned_host")),
        ("opt./a.b: []", Rule(path("opt", "a", "b", root=1), Positional(()))),
        (
            '{ x , y* }[2].**.0."a b": [a, (b, c?)?, None, *, ...]',
            Rule(
                path(Segment("{x,y*}", False, (2, 3)), "**", Segment("0", True), Segment("a b", True)),
                Positional((A, AxisTuple((B, AxisName("c", True)), True), Whole(), Open(), Fill())),
            ),
        ),
        ("a[1:4]: {}", Rule(path(Segment("a", False, (1, 4))), Named(()))),
        ("a[:4]: {..}", Rule(path(Segment("a", False, (None, 4))), Named((), True))),
        (
            "a[1:]: {.., x: a?, y: None}",
            Rule(
                path(Segment("a", False, (1, None))),
                Named((DimEntry("x", AxisName("a", True)), DimEntry("y", Whole())), True),
            ),
        ),
        ('extends "x\\"y" with a=b, c=d', Extends('x"y', (Rename("a", "b"), Rename("c", "d")))),
        ("let d = a", Let("d", A)),
        ("let d = (a, b)", Let("d", AxisTuple((A, B)))),
        ("let d = [a]", Let("d", Positional((A,)))),
        ("let d = follow", Let("d", Follow())),
        (
            "mesh: [a=1 @dcn, b=8 @dcn(4), c=-1] allow_idle",
            Mesh((MeshAxis("a", 1, "whole"), MeshAxis("b", 8, 4), MeshAxis("c", -1)), True),
        ),
        ("a { b: [c] }", Block(path("a"), (Rule(path("b"), Positional((C,))),))),
        ("when tied { a {} }", When(Word("tied"), (Block(path("a"), ()),))),
        ("check m", Check("m")),
        (
            'check m on [a=-1] target "t" batch 2 seq 3 mode decode run r { expect x }',
            Check("m", (SizedAxis("a", -1),), "t", 2, 3, "decode", "r", (Expect(Word("x")),)),
        ),
        ("expect 80 GiB", Expect(Number(80, "GiB"))),
        ("expect 0.5", Expect(Number(0.5))),
        ("expect mesh.seq", Expect(Word("mesh.seq"))),
        ("expect - - a", Expect(Unary("-", Unary("-", Word("a"))))),
        (
            "expect a - b - c",
            Expect(Binary("-", Binary("-", Word("a"), Word("b")), Word("c"))),
        ),
        (
            "expect not a == b and c or d",
            Expect(
                Binary(
                    "or",
                    Binary("and", Unary("not", Binary("==", Word("a"), Word("b"))), Word("c")),
                    Word("d"),
                )
            ),
        ),
        (
            "expect -a * b + c <= d",
            Expect(
                Binary(
                    "<=",
                    Binary("+", Binary("*", Unary("-", Word("a")), Word("b")), Word("c")),
                    Word("d"),
                )
            ),
        ),
        ("expect count()", Expect(Call("count", None))),
        (
            "expect count(permute, over=(a, b), of=act.*, in=fwd)",
            Expect(
                Call(
                    "count",
                    "permute",
                    (
                        Argument("over", ("a", "b")),
                        Argument("of", path("act", "*")),
                        Argument("in", path("fwd")),
                    ),
                )
            ),
        ),
    ],
)
def test_the_tree_of_a_statement(text: str, expected: tree.Statement) -> None:
    parsed = parse(text)
    assert parsed.findings == ()
    assert parsed.file.statements == (expected,)


def spanned(node: object, text: str) -> str:
    """The text at a node's span, which lies on the first line."""
    assert isinstance(node, tree.Node)
    assert (node.span.line, node.span.end_line) == (1, 1)
    return text[node.span.column - 1 : node.span.end_column - 1]


def test_each_node_of_a_rule_knows_its_place() -> None:
    text = " /a.{b, c}[0:2] : {.., x: (d, e?)?, y: *} @pinned_host  # why"
    (rule,) = parse(text).file.statements
    assert isinstance(rule, Rule)
    assert spanned(rule, text) == "/a.{b, c}[0:2] : {.., x: (d, e?)?, y: *} @pinned_host"
    assert spanned(rule.pattern, text) == "/a.{b, c}[0:2]"
    assert [spanned(s, text) for s in rule.pattern.segments] == ["a", "{b, c}[0:2]"]
    assert isinstance(rule.layout, Named)
    assert spanned(rule.layout, text) == "{.., x: (d, e?)?, y: *}"
    assert [spanned(d, text) for d in rule.layout.entries] == ["x: (d, e?)?", "y: *"]
    first = rule.layout.entries[0].entry
    assert isinstance(first, AxisTuple)
    assert spanned(first, text) == "(d, e?)?"
    assert [spanned(a, text) for a in first.axes] == ["d", "e?"]


def test_each_node_of_an_expression_knows_its_place() -> None:
    text = "expect (a + 1 GiB) * count(permute, over=(x, y)) < -b"
    (expect,) = parse(text).file.statements
    assert isinstance(expect, Expect)
    assert spanned(expect, text) == text
    comparison = expect.condition
    assert isinstance(comparison, Binary)
    assert spanned(comparison, text) == "(a + 1 GiB) * count(permute, over=(x, y)) < -b"
    product = comparison.left
    assert isinstance(product, Binary)
    assert spanned(product.left, text) == "(a + 1 GiB)"
    assert isinstance(product.right, Call)
    assert spanned(product.right, text) == "count(permute, over=(x, y))"
    assert spanned(product.right.arguments[0], text) == "over=(x, y)"
    assert spanned(comparison.right, text) == "-b"


def test_columns_count_characters_and_tabs_are_one() -> None:
    (rule,) = parse('\t"é𝛼": [a]').file.statements
    assert rule.span == Span(1, 2, 1, 11)


def test_trees_compare_by_meaning_not_by_place() -> None:
    assert parse("a: [b]").file == parse("\n\n  a:   [b]  # c").file
    assert parse("a: [b]").file != parse("a: [c]").file


def test_comments_are_kept_beside_the_tree() -> None:
    text = '# one\na: [b]  # two  \n  # three\n"x # no": {c: d, # four\n e: f}\nbad # five "\n#six'
    parsed = parse(text)
    assert [(c.text, c.own_line) for c in parsed.file.comments] == [
        ("# one", True),
        ("# two", False),
        ("# three", True),
        ("# four", False),
        ('# five "', False),
        ("#six", True),
    ]
    assert [c.span for c in parsed.file.comments][:3] == [Span(1, 1, 1, 6), Span(2, 9, 2, 16), Span(3, 3, 3, 10)]
