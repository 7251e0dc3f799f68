"""The one exception of this package: a text that cannot be read, with its place. `parse` turns it into a finding."""

from __future__ import annotations

from sharddsl.findings import Span

MAX_NESTING = 64
"""How deep brackets may nest, and how many operators one expression may have: a bound on the depth of every tree, so
that no stage after this one can run out of stack."""


class Problem(Exception):
    """What is wrong at `span`, and what would work."""

    def __init__(self, message: str, span: Span, remedy: str | None = None) -> None:
        self.message = message
        self.span = span
        self.remedy = remedy
        super().__init__(message)
