"""Collecting findings about one source, and saying what a wrong name might have meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sharddsl.findings import Edit, Finding, Location, Severity, Span


@dataclass
class Report:
    """The findings about one source, as they are made. `text` is the source's text."""

    source: str
    text: str
    findings: list[Finding] = field(default_factory=list)

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
        severity: Severity = "error",
    ) -> None:
        """Add a finding at `span`; `replace_by` is the text that would mend what stands there."""
        where = self.at(span)
        fix = () if replace_by is None else (Edit(where, replace_by),)
        self.findings.append(Finding(code, severity, message, where, help, related=related, fix=fix))

    def unknown(self, code: str, span: Span, name: str, what: str, known: Iterable[str]) -> None:
        """Add "no `what` called `name`", with the nearest known names as help and, if one is near, as the fix."""
        known = sorted(known)
        near = nearest(name, known)
        exact = near[0] if near and self.excerpt(span) == name else None
        self.add(code, span, f"unknown {what} `{name}`", suggestion(near, known), replace_by=exact)

    def excerpt(self, span: Span) -> str | None:
        """The text of a span within one line, or None where there is no such place."""
        if span.line != span.end_line or span.line < 1:
            return None
        start = _line_start(self.text, span.line)
        return None if start is None else self.text[start + span.column - 1 : start + span.end_column - 1]

    def find(self, word: str, within: Span) -> Span:
        """The span of `word` (as a whole word) in a statement whose parts have no spans; all of it if not found."""
        start, stop = _line_start(self.text, within.line), _line_start(self.text, within.end_line)
        if start is None or stop is None:
            return within
        start, stop = start + within.column - 1, stop + within.end_column - 1
        match = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])").search(self.text, start, stop)
        if match is None:
            return within
        line = within.line + self.text.count("\n", start, match.start())
        column = match.start() - (self.text.rfind("\n", 0, match.start()) + 1) + 1
        return Span(line, column, line, column + len(word))


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that `name` may have meant, best first."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known}
    return [by_lower[match] for match in get_close_matches(name[:80].lower(), by_lower, n=3, cutoff=0.6)]


def suggestion(near: list[str], known: list[str]) -> str | None:
    """The help under an unknown name: the near names, else (if they are few) all of them."""
    if near:
        return "did you mean " + " or ".join(f"`{name}`" for name in near) + "?"
    if not known:
        return None
    rest = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    return "known here: " + ", ".join(known[:_MOST_LISTED]) + rest


_MOST_LISTED = 24


def _line_start(text: str, line: int) -> int | None:
    """The index of the first character of a line (from 1)."""
    start = 0
    for _ in range(line - 1):
        newline = text.find("\n", start)
        if newline < 0:
            return None
        start = newline + 1
    return start
