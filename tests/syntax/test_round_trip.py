"""A printed tree reads back as the same tree, and is printed as the same text."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sharddsl.syntax import parse, parse_rule, to_text, tree
from tests.syntax import strategies


@given(strategies.files)
@settings(max_examples=100, deadline=None)
def test_the_printed_tree_reads_back_as_itself(file: tree.File) -> None:
    text = to_text(file)
    parsed = parse(text)
    assert parsed.findings == ()
    assert parsed.file == file
    assert to_text(parsed.file) == text


@given(strategies.expressions)
@settings(max_examples=60, deadline=None)
def test_every_pair_of_parentheses_is_needed(expression: tree.Expr) -> None:
    text = to_text(expression)
    whole = parse(f"expect {text}").file
    assert whole == tree.File((tree.Expect(expression),))
    quoted = {at for match in _QUOTED.finditer(text) for at in range(*match.span())}
    for at, character in enumerate(text):
        if character == "(" and at not in quoted and not text[:at].rstrip()[-1:].isalnum():
            close = _closing(text, at, quoted)
            without = text[:at] + " " + text[at + 1 : close] + " " + text[close + 1 :]
            assert parse(f"expect {without}").file != whole


_QUOTED = re.compile(r'"(?:[^"\\\n]|\\["\\])*"')


def _closing(text: str, at: int, quoted: set[int]) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0) if i not in quoted else 0
        if depth == 0:
            return i
    raise AssertionError("the parenthesis is not closed")


@given(strategies.rules)
@settings(max_examples=40, deadline=None)
def test_a_rule_reads_back_by_itself(rule: tree.Rule) -> None:
    assert parse_rule(to_text(rule), "--rule 1") == (rule, ())


@given(strategies.files, st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=30, deadline=None)
def test_the_kind_of_newline_changes_neither_tree_nor_spans(file: tree.File, newline: str) -> None:
    text = to_text(file)
    plain = parse(text)
    other = parse(text.replace("\n", newline))
    assert other == plain
    assert [s.span for s in other.file.statements] == [s.span for s in plain.file.statements]


@given(st.lists(strategies.statements, min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_statement_spans_its_own_text(statements: list[tree.Statement]) -> None:
    text = to_text(tree.File(tuple(statements)))
    lines = text.split("\n")
    for statement in parse(text).file.statements:
        span = statement.span
        inside = lines[span.line - 1 : span.end_line]
        inside[-1] = inside[-1][: span.end_column - 1]
        inside[0] = inside[0][span.column - 1 :]
        assert "\n".join(inside) == to_text(statement)
