"""Where statements begin and end in a text that does not parse.

A statement begins on its own line, at bracket depth 0. A bracket that is never closed would swallow the rest of the
text: it ends where a line begins like a statement, and counts as no bracket at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sharddsl.syntax.places import MARK

_OPENER = {")": "(", "]": "[", "}": "{"}

_TOP = r"(?:let|mesh|check|extends)\b(?!\s*[.{])"
_PATH = r'[ \t]*(?!\[)(?:[\w.*/"]|\{[\w*, ]*\}|\[[0-9: ]*\])+'
_STARTER = re.compile(rf"{_TOP}|[ \t]*(?:when|expect)\b|{_PATH}:|{_PATH}[ \t]+\{{")
_TOP_STARTER = re.compile(_TOP)
_RULE_STARTER = re.compile(rf"{_TOP}|[ \t]*(?:when|expect)\b|{_PATH}:\s*(?:[\[{{]|replicated|follow)")
"""What cannot stand in a named layout, whose lines look like `dim: axis`."""

_GOES_ON = re.compile(r"(?:[,:=+\-*/%<>.@]|\b(?:and|or|not))$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the whole text: a statement, or what lies in its body."""

    start: int
    end: int


def split(text: str, where: Piece, ignored: frozenset[int]) -> list[Piece]:
    """The statements there, in order; blank lines and lines of comment belong to none. `ignored`: see `unpaired`."""
    start, end = where.start, where.end
    pieces: list[Piece] = []
    depth = 0
    goes_on = False
    begin = line = start
    indent = end  # of the statement's first line, once that is known
    comment: int | None = None
    for mark in MARK.finditer(text, start, end):
        kind = mark[0][0]
        if kind == "#":
            comment = mark.start()
        elif kind in "([{":
            depth += mark.start() not in ignored
        elif kind in ")]}":
            depth -= mark.start() not in ignored
        elif kind == "\n":
            written = text[line : mark.start() if comment is None else comment].strip()
            if written:
                goes_on = _GOES_ON.search(written[-8:]) is not None
                indent = min(indent, _indent(text, line))
            line, comment = mark.end(), None
            # A line that is indented deeper goes on with the statement, whatever it looks like.
            if depth == 0 and (not goes_on or (_STARTER.match(text, line) and _indent(text, line) <= indent)):
                _add(pieces, text, begin, mark.start())
                begin, indent = line, end
    _add(pieces, text, begin, end)
    return pieces


def _indent(text: str, line: int) -> int:
    blank = _SPACES.match(text, line)
    return blank.end() - line if blank else 0


_SPACES = re.compile(r"[ \t]*")


def body(text: str, piece: Piece, ignored: frozenset[int]) -> Piece | None:
    """What lies between the braces of a statement that ends in a body, or None where it does not."""
    depth = 0
    begin: int | None = None
    for mark in MARK.finditer(text, piece.start, piece.end):
        kind = mark[0][0]
        if mark.start() in ignored:
            continue
        if kind in "([{":
            if kind == "{" and depth == 0 and not _holds_layout(text, mark.start()):
                begin = mark.end()
            depth += 1
        elif kind in ")]}":
            depth -= 1
            if depth == 0 and begin is not None:
                nothing_more = _BLANK.fullmatch(text, mark.end(), piece.end)
                return Piece(begin, mark.start()) if nothing_more and kind == "}" else None
    return None


_BLANK = re.compile(r"(?:\s++|#[^\n]*+)*+")


def _add(pieces: list[Piece], text: str, begin: int, end: int) -> None:
    """Adds the piece, without the blank lines and comment lines before its first token, if there is one."""
    blank = _BLANK.match(text, begin, end)
    first = blank.end() if blank else begin
    if first < end:
        pieces.append(Piece(first, end))


def unpaired(text: str) -> frozenset[int]:
    """The offsets of brackets that have no partner."""
    open_at: list[tuple[str, int, bool]] = []  # the bracket, its offset, and whether it holds a layout
    count = dict.fromkeys("([{", 0)
    alone: set[int] = set()

    def drop() -> int:
        kind, offset, _ = open_at.pop()
        count[kind] -= 1
        return offset

    for mark in MARK.finditer(text):
        kind = mark[0][0]
        if kind in "([{":
            open_at.append((kind, mark.start(), kind == "{" and _holds_layout(text, mark.start())))
            count[kind] += 1
        elif kind in _OPENER:
            if not count[_OPENER[kind]]:
                alone.add(mark.start())
                continue
            while open_at[-1][0] != _OPENER[kind]:
                alone.add(drop())
            drop()
        elif kind == "\n" and open_at:
            ends = _ends_at(text, mark.end())
            while open_at and ends(*open_at[-1]):
                alone.add(drop())
    return frozenset(alone | {offset for _, offset, _ in open_at})


def _holds_layout(text: str, brace: int) -> bool:
    """Whether this brace follows a `:` or `=`, and so holds a layout, not statements."""
    return text[max(0, brace - 80) : brace].rstrip()[-1:] in (":", "=")


def begins_statement(text: str, offset: int) -> bool:
    """Whether the text from here on looks like a statement."""
    return _STARTER.match(text, offset) is not None


def _ends_at(text: str, line: int) -> Callable[[str, int, bool], bool]:
    """Whether a bracket that is open where this line begins cannot go on: the line begins a statement.

    Within a block it may, unless it begins a statement that stands in no block.
    """
    top = _TOP_STARTER.match(text, line) is not None
    starter = _STARTER.match(text, line) is not None
    rule = starter and _RULE_STARTER.match(text, line) is not None

    def ends(kind: str, _offset: int, layout: bool) -> bool:
        return top or (starter if kind != "{" else layout and rule)

    return ends


def code_end(text: str) -> int:
    """Where the last token of a statement ends: what follows is blank or comment."""
    end = len(text)
    while True:
        end = len(text[:end].rstrip())
        line = text.rfind("\n", 0, end) + 1
        comment = next((m.start() for m in MARK.finditer(text, line, end) if m[0].startswith("#")), None)
        if comment is None:
            return end
        end = comment


def innermost(text: str, offset: int) -> tuple[str, int] | None:
    """The innermost bracket that is open at this offset, and where it stands."""
    open_at: list[tuple[str, int]] = []
    for mark in MARK.finditer(text, 0, offset):
        kind = mark[0][0]
        if kind in "([{":
            open_at.append((kind, mark.start()))
        elif kind in _OPENER and open_at and open_at[-1][0] == _OPENER[kind]:
            open_at.pop()
    return open_at[-1] if open_at else None
