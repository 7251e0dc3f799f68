"""Short forms for the tests of the linter."""

from __future__ import annotations

from sharddsl import spec
from sharddsl.findings import Finding
from sharddsl.lint import Report, cases_of_checks, judge
from sharddsl.models import PRESETS, Run

RUNS = {"train": Run()}


def linted(text: str) -> Report:
    """The report on a text, for the checks in it."""
    loaded = spec.parse(text, "my.shard", models=PRESETS, runs=RUNS)
    cases = () if loaded.spec is None else tuple(cases_of_checks(loaded, PRESETS, RUNS))
    return judge("my.shard", loaded, cases)


def found(text: str, code: str) -> list[Finding]:
    """The findings of this code."""
    return [judged.finding for judged in linted(text).findings if judged.finding.code == code]


def codes(text: str) -> list[str]:
    return [judged.finding.code for judged in linted(text).findings]
