"""What is judged over all cases of a file: one module for each code, whose docstring is the code's page."""

from collections.abc import Callable, Iterator, Sequence

from sharddsl.findings import Finding
from sharddsl.lint.cases import Case
from sharddsl.lint.rules import axis_never_used, large_and_replicated, rule_never_wins
from sharddsl.spec.model import Spec

WHOLE_FILE: tuple[Callable[[Spec, Sequence[Case]], Iterator[Finding]], ...] = (
    axis_never_used.findings,
    rule_never_wins.findings,
    large_and_replicated.findings,
)

__all__ = ["WHOLE_FILE"]
