"""Edits made in texts."""

from __future__ import annotations

import pytest

from sharddsl.findings import Edit, Finding, Location, Span
from sharddsl.lint.fixes import fixed


def finding(*edits: tuple[tuple[int, int, int, int], str], source: str = "a") -> Finding:
    return Finding("SHD005", "warning", "…", fix=tuple(Edit(Location(source, Span(*at)), text) for at, text in edits))


@pytest.mark.parametrize(
    ("text", "findings", "expected"),
    [
        ("abc\n", [finding(((1, 2, 1, 3), "X"))], "aXc\n"),
        ("abc\n", [finding(((1, 2, 1, 3), "X")), finding(((1, 2, 1, 3), "X"))], "aXc\n"),  # the same edit is one
        ("abc\n", [finding(((1, 1, 1, 3), "X")), finding(((1, 2, 1, 4), "Y"))], "Xc\n"),  # the first of two that touch
        ("abc\n", [finding(((1, 1, 1, 3), "X"), ((1, 3, 1, 4), "Z")), finding(((1, 3, 1, 4), "Y"))], "XZ\n"),  # whole
        ("a\r\nb\r\n", [finding(((2, 1, 2, 2), "X"))], "a\r\nX\r\n"),
        ("a\rb\fc\nd", [finding(((3, 1, 3, 2), "X"))], "a\rb\fc\nX"),
        ("a\nb", [finding(((2, 1, 3, 1), ""))], "a\n"),  # the last line, which no newline ends
        ("a\n", [finding(((2, 1, 2, 1), "b\n"))], "a\nb\n"),
        ("", [finding(((1, 1, 1, 1), "b\n"))], "b\n"),
    ],
)
def test_the_edits_of_a_text(text: str, findings: list[Finding], expected: str) -> None:
    assert fixed(findings, {"a": text}).texts == {"a": expected}


def test_a_source_without_a_text_is_left_alone() -> None:
    here, there = finding(((1, 1, 1, 2), "X")), finding(((1, 1, 1, 2), "X"), source="elsewhere")
    made = fixed([there, here], {"a": "abc"})
    assert made.mended == (here,)
    assert dict(made.texts) == {"a": "Xbc"}
