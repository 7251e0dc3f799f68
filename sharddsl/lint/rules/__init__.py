"""What is judged over all cases of a file: one module for each code, whose docstring is the code's page."""

from collections.abc import Callable, Iterator

from sharddsl.findings import Finding
from sharddsl.lint.rules import axis_never_used, large_and_replicated, rule_never_wins
from sharddsl.lint.subject import Subject

WHOLE_FILE: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    axis_never_used.findings,
    rule_never_wins.findings,
    large_and_replicated.findings,
)

__all__ = ["WHOLE_FILE"]
