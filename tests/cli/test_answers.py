"""Answers that grow at once are printed one after the other, each as soon as it may be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sharddsl.cli.answers import Answer, Page
from sharddsl.llama.tokenizer import ByteTokenizer

Capture = pytest.CaptureFixture[str]


def answers(*prompts: str) -> list[Answer]:
    tokenizer = ByteTokenizer(512)
    return [Answer(prompt, tokenizer.encode(prompt), tokenizer.stream()) for prompt in prompts]


def ids(*characters: str | None) -> Sequence[int | None]:
    """One token of each row; None where the row is done."""
    return [None if character is None else ByteTokenizer(512).encode(character)[0] for character in characters]


def test_a_single_answer_streams_without_a_heading(capsys: Capture) -> None:
    page = Page(answers("why?"))
    page.add(ids("a"))
    assert capsys.readouterr().out == "a"
    page.add(ids("b"))
    assert capsys.readouterr().out == "b"
    page.finish()
    assert capsys.readouterr().out == "\n"


def test_an_answer_waits_until_those_before_it_are_done(capsys: Capture) -> None:
    page = Page(answers("first\nand more", "second", "third"))
    assert capsys.readouterr().out == "[1/3] first …\n"
    page.add(ids("a", "x", "p"))
    assert capsys.readouterr().out == "a"
    page.add(ids("b", None, "q"))
    assert capsys.readouterr().out == "b"
    page.add(ids(None, None, "r"))
    assert capsys.readouterr().out == "\n\n[2/3] second\nx\n\n[3/3] third\npqr"
    page.finish()
    assert capsys.readouterr().out == "\n"


def test_a_character_that_is_cut_off_ends_an_answer_as_one_replacement(capsys: Capture) -> None:
    page = Page(answers("why?"))
    page.add(ByteTokenizer(512).encode("é")[:1])
    assert capsys.readouterr().out == ""
    page.finish()
    page.finish()
    assert capsys.readouterr().out == "\N{REPLACEMENT CHARACTER}\n"


def test_answers_without_headings_are_set_apart_by_a_blank_line(capsys: Capture) -> None:
    page = Page(answers("first", "second"), headed=False)
    page.add(ids("a", "x"))
    page.finish()
    assert capsys.readouterr().out == "a\n\nx\n"
