"""Whatever a text says, and however it is spaced, formatting keeps it: `formatted` proves it, and raises where not."""

from __future__ import annotations

import random
import re

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sharddsl.syntax import parse, to_text, tree
from sharddsl.syntax.format import formatted
from tests.syntax import strategies


@given(strategies.files)
@settings(max_examples=60, deadline=None)
def test_a_printed_tree(file: tree.File) -> None:
    text = formatted(to_text(file))
    assert parse(text).file == file
    assert all(line == line.rstrip() for line in text.split("\n"))


@given(strategies.files, st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None)
def test_spaces_ends_of_lines_and_comments_anywhere(file: tree.File, chance: random.Random) -> None:
    text = disturbed(to_text(file), chance)
    parsed = parse(text)
    assume(parsed.findings == () and parsed.file == file)
    again = parse(formatted(text))
    assert again.file == file
    assert [comment.text for comment in again.file.comments] == [comment.text for comment in parsed.file.comments]


def disturbed(text: str, chance: random.Random) -> str:
    """The text with other gaps at some places: most of them where they change nothing."""
    parts = re.split(r'("(?:[^"\\\n]|\\["\\])*"|\s+|[\[\](){},:=?])', text)
    gaps = [" ", "  ", "\n", "\n\n\n", " # one\n", "\n# two\n", '  #three\n\n  # four [ " {\n', "\t", ""]
    places = [at for at, part in enumerate(parts) if not part.strip() or part in ",[({:=?"]
    for at in chance.sample(places, min(len(places), chance.randint(0, 4))):
        gap = chance.choice(gaps)
        parts[at] = gap or parts[at] if not parts[at].strip() else parts[at] + gap
    return "".join(parts)
