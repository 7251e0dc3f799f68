"""Lines on their way to a formatted text: columns are aligned once all lines of a group are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

_INDENT = "  "
_BEFORE_COMMENT = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """`head` is what stands before the column that a group aligns (a rule's pattern and colon), `rest` what stands in
    it. Lines of one `group` that follow each other are aligned; None stands alone. `blank`: an empty line comes
    before."""

    depth: int
    rest: str
    head: str = ""
    comment: str = ""
    group: object = None
    blank: bool = False

    @property
    def code(self) -> str:
        return _INDENT * self.depth + f"{self.head}{self.rest}"

    def __str__(self) -> str:
        if not self.comment:
            return self.code
        return f"{self.code}{_BEFORE_COMMENT}{self.comment}" if self.rest else _INDENT * self.depth + self.comment


def aligned(lines: Iterable[Line]) -> Iterator[str]:
    """The lines as text, empty ones among them. Lines of comment alone do not part a group; empty ones do."""
    for _, group in groupby(_numbered(lines), key=lambda item: item[0]):
        for line in _aligned([line for _, line in group]):
            if line.blank:
                yield ""
            yield str(line)


def _numbered(lines: Iterable[Line]) -> Iterator[tuple[int, Line]]:
    """Each line with the number of its group."""
    number, group = 0, None
    for line in lines:
        own_comment = not line.rest
        if line.blank or (not own_comment and (line.group is None or line.group != group)):
            number += 1
            group = line.group
        elif own_comment and line.group is None and group is None:
            number += 1
        yield number, line


def _aligned(lines: list[Line]) -> list[Line]:
    width = max((len(line.head) for line in lines), default=0)
    lines = [replace(line, head=line.head.ljust(width + 1)) if line.head else line for line in lines]
    column = max((len(line.code) for line in lines if line.comment and line.rest), default=0)
    indents = {id(line): len(line.code) - len(line.rest) for line in lines}
    return [
        replace(line, rest=line.rest.ljust(column - indents[id(line)])) if line.comment and line.rest else line
        for line in lines
    ]
