"""Collecting findings about one source, and saying what a wrong name might have meant."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from sharddsl.findings import Edit, Finding, Location, Severity, Span


@dataclass
class Report:
    """The findings about one source, as they are made. `text` is the source's text, with LF at the ends of lines."""

    source: str
    text: str
    findings: list[Finding] = field(default_factory=list)
    offered: set[str] = field(default_factory=set)
    """Names that unknown ones may have meant."""

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line starts, and where one after the last would."""
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        return [*starts, len(self.text) + 1]

    def at(self, span: Span) -> Location:
        return Location(self.source, span)

    def add(
        self,
        code: str,
        span: Span,
        message: str,
        help: str | None = None,
        *,
        related: tuple[tuple[Location, str], ...] = (),
        replace_by: str | None = None,
        fix: tuple[Edit, ...] = (),
        severity: Severity = "error",
    ) -> None:
        """Add a finding at `span`; `replace_by` is the text that would mend what stands there, where not
        another `fix` does."""
        where = self.at(span)
        message, help = _shortened(message), None if help is None else _shortened(help)
        fix = fix if replace_by is None else (Edit(where, replace_by),)
        self.findings.append(Finding(code, severity, message, where, help, related=related, fix=fix))

    def unknown(
        self, code: str, span: Span, name: str, what: str, known: Iterable[str], *, or_else: str | None = None
    ) -> None:
        """Add "no `what` called `name`", with the nearest known names as help and, if one is near, as the fix;
        `or_else` is a remedy besides."""
        known = sorted(known)
        near = nearest(name, known) if len(self.findings) < _MOST_GUESSES else []
        self.offered.update(near)
        exact = near[0] if near and self.excerpt(span) == name else None
        help = "\n".join(remedy for remedy in (suggestion(near, known), or_else) if remedy) or None
        self.add(code, span, f"unknown {what} `{name}`", help, replace_by=exact)

    def excerpt(self, span: Span) -> str | None:
        """The text of a span within one line, or None where there is no such place."""
        if span.line != span.end_line or not 1 <= span.line < len(self._lines):
            return None
        start = self._lines[span.line - 1]
        return self.text[start + span.column - 1 : start + span.end_column - 1]

    def find(self, word: str, within: Span) -> Span:
        """The span of `word` (as a whole word) in a statement whose parts have no spans; all of it if not found."""
        if not 1 <= within.line <= within.end_line < len(self._lines):
            return within
        start = self._lines[within.line - 1] + within.column - 1
        stop = self._lines[within.end_line - 1] + within.end_column - 1
        match = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])").search(self.text, start, stop)
        if match is None:
            return within
        line = bisect_right(self._lines, match.start())
        column = match.start() - self._lines[line - 1] + 1
        return Span(line, column, line, column + len(word))


def _shortened(text: str) -> str:
    """The text with what it quotes cut to a readable length: a name may be as long as the file."""
    return re.sub(r"`([^`]{60})[^`]{20,}`", r"`\1…`", text)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that `name` may have meant, best first."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in islice(known, _MOST_COMPARED)}
    best = get_close_matches(name[:80].lower(), by_lower, n=3, cutoff=0.6)
    return [by_lower[match] for match in best]


def suggestion(near: list[str], known: list[str]) -> str | None:
    """The help under an unknown name: the near names, else (if they are few) all of them."""
    if near:
        return "did you mean " + " or ".join(f"`{name}`" for name in near) + "?"
    if not known:
        return None
    rest = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    return "known here: " + ", ".join(known[:_MOST_LISTED]) + rest


_MOST_LISTED = 24
_MOST_GUESSES = 100
"""After so many findings about one source, unknown names get no guesses any more: each costs a comparison with all."""
_MOST_COMPARED = 1000
