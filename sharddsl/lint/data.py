"""Reports as data, for programs: `--format json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sharddsl.findings import Location
from sharddsl.lint.judge import Judged, Report

VERSION = 1
"""It changes when a reader of the former would misread it."""


def to_data(reports: Sequence[Report]) -> dict[str, Any]:
    """Every file with its cases, what was not checked, and its findings."""
    return {
        "version": VERSION,
        "files": [
            {
                "file": report.name,
                "cases": list(report.cases),
                "unchecked": list(report.unchecked),
                "silenced": dict(report.silenced),
                "findings": [_finding(judged) for judged in report.findings],
            }
            for report in reports
        ],
    }


def _finding(judged: Judged) -> dict[str, Any]:
    finding = judged.finding
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "message": finding.message,
        "where": _place(finding.where),
        "note": finding.note,
        "help": finding.help,
        "tensor": finding.tensor,
        "dim": finding.dim,
        "count": finding.count,
        "cases": list(judged.cases),
        "related": [{"where": _place(where), "what": what} for where, what in finding.related],
        "fix": [{"where": _place(edit.where), "text": edit.text} for edit in finding.fix],
    }


def _place(where: Location | None) -> dict[str, Any] | None:
    """Lines and columns from 1, columns in characters, the end exclusive."""
    if where is None:
        return None
    span = where.span
    return {
        "file": where.source,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
