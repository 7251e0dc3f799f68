"""What is said about a text that cannot be read: the exception within this package, and the finding that leaves it."""

from __future__ import annotations

from sharddsl.findings import Finding, Location, Span

MAX_NESTING = 64
"""How deep brackets may nest, and how many operators one expression may have: a bound on the depth of every tree, so
that no stage after this one can run out of stack."""

MAX_NAME = 1000
"""How many characters a name, a segment of a pattern or a quoted text may have: tables and messages repeat them."""

_LONGEST = 40


def shortened(text: str) -> str:
    """The text as a message quotes it: its beginning, if it is long."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


class Problem(Exception):
    """What is wrong at `span`, and what would work."""

    def __init__(self, message: str, span: Span, remedy: str | None = None) -> None:
        self.message = message
        self.span = span
        self.remedy = remedy
        super().__init__(message)


def syntax_error(message: str, span: Span, source: str, remedy: str | None = None) -> Finding:
    """SHD001 at a place in a source."""
    return Finding("SHD001", "error", message, Location(source, span), remedy)
