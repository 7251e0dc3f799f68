"""`docs/language.md` says what is so: its examples are read, printed and read again, its findings are the real ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharddsl.findings import render
from sharddsl.syntax import parse, to_text

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", blocks("shard"))
def test_an_example_is_read(text: str) -> None:
    parsed = parse(text)
    assert parsed.findings == ()
    assert parse(to_text(parsed.file)).file == parsed.file


def test_there_are_examples() -> None:
    assert len(blocks("shard")) >= 8


def test_the_findings_are_those_of_the_text_they_show() -> None:
    (shown,) = blocks("text")
    text = "\n\nattn.wq  [fsdp, mp]\n\n\n\nattn.wo: [mp, none, fsdp]\n"
    assert render(parse(text, "tp.shard").findings, {"tp.shard": text}) + "\n" == shown
