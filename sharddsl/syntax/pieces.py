"""Where statements begin and end in a text that does not parse.

A statement begins on its own line, at bracket depth 0. A bracket that is never closed would swallow the rest of the
text: it ends where a line begins like a statement, and counts as no bracket at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sharddsl.syntax.places import MARK

_OPENER = {")": "(", "]": "[", "}": "{"}

_TOP = r"(?:let|mesh|check|extends)\b(?!\s*[.{])"
_PATH = r'[ \t]*(?!\[)(?:[\w.*/"]|\{[\w*, ]*\}|\[[0-9: ]*\])+'
_STARTER = re.compile(rf"{_TOP}|[ \t]*(?:when|expect)\b|{_PATH}:|{_PATH}\s\{{")
_TOP_STARTER = re.compile(_TOP)
_RULE_STARTER = re.compile(rf"{_TOP}|[ \t]*(?:when|expect)\b|{_PATH}:\s*(?:[\[{{]|replicated|follow)")
"""What cannot stand in a named layout, whose lines look like `dim: axis`."""

_GOES_ON = re.compile(r"(?:[,:=+\-*/%<>.@]|\b(?:and|or|not))$")


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement's text, with offsets into the whole text."""

    start: int
    end: int


def split(text: str, start: int, end: int) -> list[Piece]:
    """The statements of `text[start:end]`, in order; blank lines and lines of comment belong to none."""
    ignored = _unpaired(text, start, end)
    pieces: list[Piece] = []
    depth = 0
    begin = line = start
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
            line, comment = mark.end(), None
            if depth == 0 and not (_GOES_ON.search(written) and not _STARTER.match(text, line)):
                _add(pieces, text, begin, mark.start())
                begin = mark.end()
    _add(pieces, text, begin, end)
    return pieces


def body(text: str, piece: Piece) -> Piece | None:
    """What lies between the braces of a statement that ends in a body, or None where it does not."""
    ignored = _unpaired(text, piece.start, piece.end)
    depth = 0
    begin: int | None = None
    for mark in MARK.finditer(text, piece.start, piece.end):
        kind = mark[0][0]
        if mark.start() in ignored:
            continue
        if kind in "([{":
            if kind == "{" and depth == 0 and not _holds_layout(text, piece.start, mark.start()):
                begin = mark.end()
            depth += 1
        elif kind in ")]}":
            depth -= 1
            if depth == 0 and begin is not None:
                nothing_more = _BLANK.fullmatch(text, mark.end(), piece.end)
                return Piece(begin, mark.start()) if nothing_more and kind == "}" else None
    return None


_BLANK = re.compile(r"(?:\s+|#[^\n]*)*")


def _add(pieces: list[Piece], text: str, begin: int, end: int) -> None:
    """Adds the piece, without the blank lines and comment lines before its first token, if there is one."""
    blank = _BLANK.match(text, begin, end)
    first = blank.end() if blank else begin
    if first < end:
        pieces.append(Piece(first, end))


def _unpaired(text: str, start: int, end: int) -> frozenset[int]:
    """The offsets of brackets that have no partner."""
    open_at: list[tuple[str, int, bool]] = []  # the bracket, its offset, and whether it holds a layout
    count = dict.fromkeys("([{", 0)
    alone: set[int] = set()

    def drop() -> int:
        kind, offset, _ = open_at.pop()
        count[kind] -= 1
        return offset

    for mark in MARK.finditer(text, start, end):
        kind = mark[0][0]
        if kind in "([{":
            open_at.append((kind, mark.start(), kind == "{" and _holds_layout(text, start, mark.start())))
            count[kind] += 1
        elif kind in _OPENER:
            if not count[_OPENER[kind]]:
                alone.add(mark.start())
                continue
            while open_at[-1][0] != _OPENER[kind]:
                alone.add(drop())
            drop()
        elif kind == "\n" and open_at:
            top = _TOP_STARTER.match(text, mark.end())
            while open_at and (top or _escapes(text, mark.end(), open_at[-1])):
                alone.add(drop())
    return frozenset(alone | {offset for _, offset, _ in open_at})


def _holds_layout(text: str, start: int, brace: int) -> bool:
    """Whether this brace follows a `:` or `=`, and so holds a layout, not statements."""
    return text[max(start, brace - 80) : brace].rstrip()[-1:] in (":", "=")


def begins_statement(text: str, offset: int) -> bool:
    """Whether the text from here on looks like a statement."""
    return _STARTER.match(text, offset) is not None


def _escapes(text: str, line: int, inside: tuple[str, int, bool]) -> bool:
    """Whether the line begins a statement, although this bracket is open. A block's lines may always do so."""
    kind, _, layout = inside
    if kind == "{":
        return layout and _RULE_STARTER.match(text, line) is not None
    return _STARTER.match(text, line) is not None


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
