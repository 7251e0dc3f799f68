"""What a rule over a whole file judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharddsl.lint.cases import Case
from sharddsl.spec.model import Spec

LARGE = 64 * 2**20
"""Bytes of a param that nobody keeps whole by accident."""


@dataclass(frozen=True)
class Subject:
    """A spec with all its cases. `large` is how many bytes a param has that is worth a word if it is held whole."""

    spec: Spec
    cases: Sequence[Case]
    large: int = LARGE
