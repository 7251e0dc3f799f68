"""Statements by the hundred, each with its printed form, written out in `corpus.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl.syntax import parse, to_text


def pairs() -> list[tuple[str, str]]:
    """What is written, and how it is printed."""
    lines = Path(__file__).with_name("corpus.txt").read_text(encoding="utf-8").split("\n")
    found = []
    for line in lines:
        if line and not line.startswith("%%"):
            written, arrow, printed = line.replace("⏎", "\n").partition(" => ")
            found.append((written, printed if arrow else written))
    return found


@pytest.mark.parametrize(("written", "printed"), pairs())
def test_a_statement_is_printed_in_its_one_form(written: str, printed: str) -> None:
    parsed = parse(written)
    assert parsed.findings == ()
    assert to_text(parsed.file) == printed + "\n"
    again = parse(printed)
    assert again.findings == ()
    assert again.file == parsed.file


def test_the_corpus_is_one_file_too() -> None:
    written, printed = zip(*pairs(), strict=True)
    parsed = parse("\n".join(written))
    assert parsed.findings == ()
    assert to_text(parsed.file) == "\n".join(printed) + "\n"
    assert len(parsed.file.statements) == len(written) >= 150
