"""What of a report is told: the codes that are wanted, in the severity that they are given, without what comments and
a baseline silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sharddsl.findings import NAMES, in_order
from sharddsl.lint.baseline import Baseline
from sharddsl.lint.ignores import ignores_in, silenced_by, useless
from sharddsl.lint.judge import DESPITE_ERRORS, Judged, Report
from sharddsl.lint.settings import Settings

_UNUSED = "SHD005"
_TEXT = frozenset(code for code in NAMES if code.startswith("SHD0"))
"""Codes that need no case to be looked for."""


def told(report: Report, settings: Settings, file: Path | None = None) -> Report:
    """The report with what is to be told of it, and counts of what is not. `file` is where the spec lies."""
    codes = settings.codes(file)
    wanted = [judged for judged in report.findings if judged.finding.code in codes]
    silenced = {"settings": len(report.findings) - len(wanted)}
    ignores = [ignore for source, text in report.sources.items() for ignore in ignores_in(source, text)]
    findings, silent, used = silenced_by(ignores, wanted)
    if _UNUSED in codes:
        own = [ignore for ignore in ignores if ignore.where.source == report.source]
        idle = [Judged(finding) for finding in useless(own, used, codes & _looked_for(report), report.sources)]
        still, more, _ = silenced_by(ignores, idle)
        findings, silent = findings + still, silent + more
    silenced["comments"] = len(silent)
    graded = [_graded(judged, settings) for judged in findings]
    return replace(report, findings=_ordered(graded), silenced={by: n for by, n in silenced.items() if n})


def without_known(report: Report, baseline: Baseline) -> Report:
    """The report without the findings that the baseline knows, which takes note of them."""
    findings, known = baseline.split(report, report.findings)
    silenced = {**report.silenced, "the baseline": len(known)} if known else report.silenced
    return replace(report, findings=tuple(findings), silenced=silenced)


def _looked_for(report: Report) -> frozenset[str]:
    """The codes that would have been found: those about layouts only if there is a case."""
    if not report.cases:
        return _TEXT
    return frozenset(NAMES) if report.complete else _TEXT | DESPITE_ERRORS


def _graded(judged: Judged, settings: Settings) -> Judged:
    severity = settings.severity.get(judged.finding.code)
    return judged if severity is None else replace(judged, finding=replace(judged.finding, severity=severity))


def _ordered(findings: list[Judged]) -> tuple[Judged, ...]:
    place = {id(finding): n for n, finding in enumerate(in_order(judged.finding for judged in findings))}
    return tuple(sorted(findings, key=lambda judged: place[id(judged.finding)]))
