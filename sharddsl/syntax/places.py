"""What can be found in a text without parsing it: its lines and its comments."""

from __future__ import annotations

import re
from bisect import bisect_right

from sharddsl.findings import Span
from sharddsl.syntax import tree

MARK = re.compile(r'"(?:[^"\\\n]|\\["\\])*"|#[^\n]*|[()\[\]{}\n]')
"""A string, a comment, a bracket or a newline: what says where statements begin and end, and how they nest."""


class Lines:
    """From offsets to lines and columns, which count from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(m.end() for m in re.finditer(r"\n", text))]

    def at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        return Span(*self.at(start), *self.at(end))


def comments(text: str) -> tuple[tree.Comment, ...]:
    """Every comment, in order."""
    lines = Lines(text)
    found = []
    for mark in MARK.finditer(text):
        if mark[0].startswith("#"):
            before = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
            span = lines.span(mark.start(), mark.end())
            found.append(tree.Comment(mark[0].rstrip(), not before.strip(), span=span))
    return tuple(found)
