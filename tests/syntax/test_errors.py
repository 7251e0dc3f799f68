"""What is said, and where, about a text that cannot be read: every message of `errors.txt`, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharddsl.findings import Finding
from sharddsl.syntax import decode, parse, parse_rule
from sharddsl.syntax.messages import PHRASES, wanted
from sharddsl.syntax.table import parser


def cases() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in Path(__file__).with_name("errors.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("    "):
            found[-1][1].append(line.strip())
        elif line and not line.startswith("%%"):
            found.append((line, []))
    return found


def shown(finding: Finding) -> str:
    assert finding.where is not None
    span = finding.where.span
    place = f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
    return f"{place} {finding.message}" + (f" | {finding.help}" if finding.help else "")


@pytest.mark.parametrize(("text", "expected"), cases())
def test_the_message_and_its_place(text: str, expected: list[str]) -> None:
    findings = parse(text, "a.shard").findings
    assert [shown(finding) for finding in findings] == expected
    for finding in findings:
        assert (finding.code, finding.severity) == ("SHD001", "error")
        assert finding.where is not None
        assert finding.where.source == "a.shard"


def test_there_are_many_and_none_leaks_the_name_of_a_terminal() -> None:
    assert len(cases()) >= 50
    leaked = re.compile(r"\b(?:" + "|".join(t.name for t in parser().terminals) + r")\b|\$END")
    for _, expected in cases():
        assert not any(leaked.search(line) for line in expected)


def test_every_terminal_has_words() -> None:
    ignored = {"COMMENT", "SPACE"}
    named = {terminal for terminals, _ in PHRASES for terminal in terminals if len(terminals) == 1}
    assert {t.name for t in parser().terminals} - ignored <= named
    assert wanted({"RSQB"}) == "`]`"
    assert wanted({"RSQB", "COMMA"}) == "`]` or `,`"
    assert wanted({"RSQB", "COMMA", "QMARK"}) == "`]`, `,` or `?`"


# -------------------------------------------------------------------------------------------------------- `--rule TEXT`


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1-1:2 expected a rule, found nothing"]),
        ("# only this", ["1:1-1:2 expected a rule, found nothing"]),
        ("a: [x]\nb: [y]", ["2:1-2:7 expected one rule, found more"]),
        ("let a = b", ["1:1-1:10 expected a rule, found another statement"]),
        ("when tied { a: [x] }", ["1:1-1:21 expected a rule, found another statement"]),
        ("act: [(dp,fsdp), None, mp", ["1:6-1:7 `[` is never closed: expected `]`, `,` or `?`"]),
    ],
)
def test_an_option_holds_exactly_one_rule(text: str, expected: list[str]) -> None:
    rule, findings = parse_rule(text, "--rule 1")
    assert rule is None
    assert [shown(finding).split(" | ")[0] for finding in findings] == expected


# ---------------------------------------------------------------------------------------------------------------- bytes


def test_bytes_are_utf_8_with_or_without_a_mark() -> None:
    assert decode("é: x".encode(), "a") == ("é: x", ())
    assert decode(b"\xef\xbb\xbf" + "é: x".encode(), "a") == ("é: x", ())
    assert decode(b"", "a") == ("", ())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ab\xff", "not UTF-8 text: invalid start byte at byte 2"),
        (b"\xef\xbb\xbfab\xff", "not UTF-8 text: invalid start byte at byte 5"),
        ("a: [x]".encode("utf-16"), "not UTF-8 text: invalid start byte at byte 0"),
        (b"a: [x]\0", "not a text file: a zero byte at byte 6"),
        ("é\0".encode(), "not a text file: a zero byte at byte 2"),
        (b"\x89PNG\r\n\x1a\n\0", "not UTF-8 text: invalid start byte at byte 0"),
    ],
)
def test_other_bytes_are_one_finding(data: bytes, message: str) -> None:
    text, findings = decode(data, "a.shard")
    assert text == ""
    assert [finding.message for finding in findings] == [message]
    assert [finding.help for finding in findings] == ["a spec is a UTF-8 text file"]


@pytest.mark.parametrize(
    "text",
    [
        "x: ['{}']",
        "'{}': [x]",
        "x: [a] {}",
        "mesh: [a=1 @{}]",
        "x: [a] {}: [b]",
        "layers[{}].w: [x]",
        "when a == not {} {{}}",
    ],
)
def test_a_message_quotes_no_more_than_the_beginning_of_a_name(text: str) -> None:
    for finding in parse(text.format("n" * 100_000)).findings:
        assert len(finding.message + (finding.help or "")) < 300
