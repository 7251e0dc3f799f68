"""The edit that takes a statement out of a text."""

from __future__ import annotations

from sharddsl.findings import Edit, Location, Span


def removal(where: Location, text: str) -> tuple[Edit, ...]:
    """The statement gone, with its lines and what is said of it beside them; none where it shares a line with others.
    Comments on lines of their own stay: nobody knows what they speak of."""
    lines = text.split("\n")
    span = where.span
    if not 1 <= span.line <= span.end_line <= len(lines):
        return ()
    before, after = lines[span.line - 1][: span.column - 1], lines[span.end_line - 1][span.end_column - 1 :]
    if before.strip() or after.partition("#")[0].strip():
        return ()
    return (Edit(Location(where.source, Span(span.line, 1, span.end_line + 1, 1)), ""),)
