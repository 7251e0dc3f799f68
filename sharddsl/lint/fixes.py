"""Fixes made in texts: which of the edits that findings offer go together, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sharddsl.findings import Finding, Span

SAFE = frozenset({"SHD005", "SHD006", "SHD203", "SHD206"})
"""Codes whose fixes change no layout. Those of all others decide something (which axis was meant, what becomes of a
tensor that no rule names), so that a person has to ask for them."""


@dataclass(frozen=True)
class Fixed:
    """The texts that change, by source, and the findings that were mended."""

    texts: Mapping[str, str]
    mended: tuple[Finding, ...]


def fixed(findings: Iterable[Finding], sources: Mapping[str, str]) -> Fixed:
    """The fixes of these findings made in their sources, each wholly or not at all: of fixes that touch the same text
    the first is made, and the others are left for the next run."""
    taken: dict[str, dict[tuple[Span, str], None]] = {}
    mended: list[Finding] = []
    for finding in findings:
        edits = [(edit.where.source, (edit.where.span, edit.text)) for edit in finding.fix]
        if not edits or not all(source in sources for source, _ in edits):
            continue
        if any(_collide(edit, other) for source, edit in edits for other in taken.get(source, {})):
            continue
        for source, edit in edits:
            taken.setdefault(source, {})[edit] = None
        mended.append(finding)
    texts = {source: _edited(sources[source], tuple(edits)) for source, edits in taken.items()}
    return Fixed({source: text for source, text in texts.items() if text != sources[source]}, tuple(mended))


def _collide(edit: tuple[Span, str], other: tuple[Span, str]) -> bool:
    """Whether two edits touch the same text. The same edit twice is one."""
    (first, _), (second, _) = edit, other
    if edit == other:
        return False
    (begin, end), (other_begin, other_end) = _ends(first), _ends(second)
    return begin == other_begin or (begin < other_end and other_begin < end)


def _ends(span: Span) -> tuple[tuple[int, int], tuple[int, int]]:
    return (span.line, span.column), (span.end_line, span.end_column)


def _edited(text: str, edits: Sequence[tuple[Span, str]]) -> str:
    """The text with the edits made. Lines end with LF, CRLF or CR, as the parser counts them, and stay as they end."""
    lines = _lines(text)
    starts = [0, *accumulate(map(len, lines))]

    def offset(line: int, column: int) -> int:
        return min(starts[min(line - 1, len(lines))] + column - 1, len(text))

    end_of_line = "\r\n" if "\r\n" in text else "\n"
    for span, new in sorted(edits, reverse=True):
        begin, end = offset(span.line, span.column), offset(span.end_line, span.end_column)
        text = text[:begin] + new.replace("\n", end_of_line) + text[end:]
    return text


def _lines(text: str) -> list[str]:
    """The lines with their ends. (`splitlines` would also break at form feeds and the like.)"""
    import re

    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
