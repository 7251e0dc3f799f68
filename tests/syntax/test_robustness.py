"""No text makes the parser crash, and none keeps it for long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharddsl import resources
from sharddsl.syntax import decode, parse, to_text
from sharddsl.syntax.parse import MAX_CHARACTERS
from sharddsl.syntax.problem import MAX_NESTING

DEEP = 30_000
LIMIT_S = 30
"""Of CPU time: far above what any of these takes, and far below what anything worse than linear would."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 10_000_000, "too long: 10,000,000 characters, and a spec may have 1,000,000"),
        ("a: " + "[" * DEEP, "expected an axis, `(axis, …)`, `None`, `*`, `...` or `]`, found `[`"),
        ("expect " + "(" * DEEP + "a" + ")" * DEEP, "brackets nest more than 64 deep"),
        ("a {" * DEEP + "}" * DEEP, "brackets nest more than 64 deep"),
        ("a {\n" * DEEP + "}\n" * DEEP, "brackets nest more than 64 deep"),
        ("a {\n" * DEEP, "`{` is never closed: expected a rule, a block, `when` or `}`"),
        ("expect " + "not " * DEEP + "a", "more than 64 operators in one expression"),
        ("expect " + "-" * DEEP + "a", "more than 64 operators in one expression"),
        ("expect " + "a + " * DEEP + "a", "more than 64 operators in one expression"),
        ("}" * DEEP, "`}` closes nothing"),
        ("[({\n" * DEEP, "expected a statement, found `[`"),
        ('"\n' * DEEP, 'text in double quotes does not end on this line: expected a closing `"`'),
        ("{a, " * DEEP, "expected a statement, found `{`"),
        ("a: [x\n" * DEEP, "`[` is never closed: expected `]`, `,` or `?`"),
        ("a" * MAX_CHARACTERS, "a name of 1,000,000 characters: at most 1,000 are read"),
        ('"' + "x" * DEEP + '": []', "a name of 30,002 characters: at most 1,000 are read"),
        ("mesh: [" + "a" * DEEP + "=2]", "a name of 30,000 characters: at most 1,000 are read"),
        ("mesh: [a=" + "9" * DEEP + "]", "a number of 30000 digits is more than anything here can be"),
        ("\x01\x02\ud800", "expected a statement, found the character U+0001"),
    ],
    ids=range(19),
)
def test_a_hostile_text_is_a_finding_soon(text: str, message: str) -> None:
    start = time.process_time()
    findings = parse(text).findings
    assert time.process_time() - start < LIMIT_S
    assert findings[0].message == message


@pytest.mark.parametrize("text", ["", "\n", "# a\n  # b\n", " " * 10_000, "\n \t\n" * 10_000, "\f"])
def test_nothing_is_an_empty_file(text: str) -> None:
    parsed = parse(text)
    assert parsed.file.statements == ()
    assert parsed.findings == ()


def test_what_just_fits_is_read_and_printed() -> None:
    blocks = "a {" * MAX_NESTING + "}" * MAX_NESTING
    assert parse(blocks).findings == ()
    assert to_text(parse(blocks).file).count("{") == MAX_NESTING
    assert parse("a {" * (MAX_NESTING + 1) + "}" * (MAX_NESTING + 1)).findings != ()
    sums = "expect " + " + ".join("a" * (MAX_NESTING + 1))
    assert to_text(parse(sums).file) == sums + "\n"
    assert parse(sums + " + a").findings != ()
    assert parse("x: [" + ", ".join("*" * 1000) + "]").findings == ()


def test_the_time_grows_with_the_text_and_no_faster() -> None:
    def seconds(count: int) -> float:
        text = "layers[0:4].attn.{wq, wk}: [fsdp, (mp, dp)?]  # why\n" * count
        start = time.process_time()
        assert len(parse(text).file.statements) == count
        return time.process_time() - start

    seconds(10)
    assert seconds(8000) < 10 * 4 * seconds(800)


# ----------------------------------------------------------------------------------------------------------------- fuzz


def real_texts() -> list[str]:
    specs = sorted(resources.shipped_specs().rglob("*.shard"))
    corpus = Path(__file__).with_name("corpus.txt")
    return [path.read_text(encoding="utf-8") for path in [*specs, corpus]]


TEXTS = real_texts()
SNIPPETS = [
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    '"',
    "'",
    "#",
    "\n",
    "\r",
    ":",
    "=",
    ",",
    "..",
    "...",
    "*",
    "**",
    "/",
    "?",
    "@",
]
SNIPPETS += [
    "when ",
    "let ",
    "check ",
    "expect ",
    "mesh:",
    "extends ",
    "not ",
    " and ",
    "None",
    "\t",
    "\0",
    "é",
    "9" * 30,
]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_mutated_spec_is_read_or_refused(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    start = data.draw(st.integers(0, len(text)))
    text = text[start : start + 400]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 8))
        text = text[:at] + data.draw(st.sampled_from(["", *SNIPPETS])) + text[at + cut :]
    parsed = parse(text)
    again = parse(to_text(parsed.file))
    assert again.findings == ()
    assert again.file == parsed.file
    last = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for finding in parsed.findings:
        assert finding.where is not None
        assert 1 <= finding.where.span.line <= last


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    text, findings = decode(data, "a")
    assert findings or not parse(text).findings or parse(text).findings[0].code == "SHD001"
