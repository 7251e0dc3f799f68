"""Several errors in one run: each at its place, and every good statement kept."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sharddsl.syntax import Parsed, parse, to_text
from sharddsl.syntax.recovery import MAX_FINDINGS, recover
from tests.syntax.test_corpus import pairs

GOOD = [
    "embed.w: [mp, None]",
    "let data = (dp, fsdp)",
    "mesh: [dp=1 @dcn,\n  fsdp=-1]",
    "when mp > kv_heads {\n  attn.wk: [fsdp, None]\n}",
    "attn {\nwq: [fsdp]\n}",
    "act: {\n  batch: data,\n  heads: mp\n}",
    "{wq, wk}: replicated",
    "check m on [dp=1] {\n  expect flops > 0\n}",
    "expect a ==\n  b",
    "# only a comment, with a bracket [",
]
BROKEN = [
    "embed.w [mp]",
    "a: [x",
    "a: {b: c",
    "a: (x, y",
    "b: [x, y)",
    "let q",
    "attn {",
    "}",
    "a: [x]]",
    'a: "x',
    "when a < b < c {}",
    "a: [none]",
]


def lines(parsed: Parsed) -> list[int]:
    return [finding.where.span.line for finding in parsed.findings if finding.where]


@given(st.lists(st.sampled_from([(True, t) for t in GOOD] + [(False, t) for t in BROKEN]), max_size=12))
@settings(max_examples=150, deadline=None)
def test_each_broken_statement_is_one_finding_and_each_good_one_is_kept(parts: list[tuple[bool, str]]) -> None:
    texts = [text for _, text in parts]
    assume("}" not in texts or not {"attn {", "a: {b: c"} & set(texts))  # it may close what was open
    broken_lines = []
    line = 1
    for good, text in parts:
        if not good:
            broken_lines.append(line)
        line += text.count("\n") + 1
    parsed = parse("\n".join(text for _, text in parts))
    assert lines(parsed) == broken_lines
    kept = "\n".join(text for good, text in parts if good)
    assert parsed.file == parse(kept).file


def test_errors_within_blocks_are_found_one_by_one() -> None:
    text = dedent("""\
        when tied {
          a [x]
          good.one: [y]
          attn { b: [x) }
          mlp {
            good.two: [y]
            c = [x]
          }
        }
        check m batch 2 {
          expect a = b
          expect good
        }
        """)
    parsed = parse(text)
    assert lines(parsed) == [2, 4, 7, 11]
    assert to_text(parsed.file) == dedent("""\
        when tied {
          good.one: [y]
          attn {}
          mlp {
            good.two: [y]
          }
        }
        check m batch 2 {
          expect good
        }
        """)


@pytest.mark.parametrize(
    ("text", "expected", "kept"),
    [
        ("a: [x\nb: [y]", [1], "b: [y]\n"),
        ("a: [x,\nlet b = c", [1], "let b = c\n"),
        ("a: {x: y\nb.c: [z]", [1], "b.c: [z]\n"),
        ("attn {\n  wq: [x]\nmesh: [a=1]", [1], "wq: [x]\nmesh: [a=1]\n"),
        ("a:\nb: [x]", [1], "b: [x]\n"),
        ("expect a +\ncheck m", [1], "check m\n"),
        ("when a or\n  b {}\nx y", [3], "when a or b {}\n"),
        ("attn {\n  a:\n  b: [x]\n}", [2], "attn {\n  b: [x]\n}\n"),
        ("expect a +\n\n# c\n  b\nx y", [5], "expect a + b\n"),
        ("a b\n\tc: [d]\n  e f", [1, 3], "c: [d]\n"),
        ("a b\r\nc: [d]\r\ne f\rg: [h]", [1, 3], "c: [d]\ng: [h]\n"),
    ],
)
def test_where_reading_goes_on(text: str, expected: list[int], kept: str) -> None:
    parsed = parse(text)
    assert lines(parsed) == expected
    assert to_text(parsed.file) == kept


def test_spans_are_those_of_the_whole_text() -> None:
    parsed = parse("x y\n\n  a.b: [c, (d,\n  e)]")
    (rule,) = parsed.file.statements
    assert (rule.span.line, rule.span.column, rule.span.end_line, rule.span.end_column) == (3, 3, 4, 6)


@pytest.mark.parametrize("text", [written for written, _ in pairs()])
def test_reading_statement_by_statement_gives_the_same_tree(text: str) -> None:
    file, findings = recover(text, "a")
    assert findings == ()
    assert file == parse(text).file
    assert [s.span for s in file.statements] == [s.span for s in parse(text).file.statements]


def test_many_errors_are_counted_not_listed() -> None:
    parsed = parse("a b\n" * (MAX_FINDINGS + 3) + "good: [x]")
    assert len(parsed.findings) == MAX_FINDINGS + 1
    assert parsed.findings[-1].message == "further syntax errors, in 3 statements: the first is here"
    assert lines(parsed) == list(range(1, MAX_FINDINGS + 2))
    assert to_text(parsed.file) == "good: [x]\n"
    assert parse("a b\n" * (MAX_FINDINGS + 1)).findings[-1].message == (
        "further syntax errors, in 1 statement: the first is here"
    )
    assert parse("a b\n" * 5000).findings[-1].message == (
        "further syntax errors, in 1000 or more statements: the first is here"
    )
