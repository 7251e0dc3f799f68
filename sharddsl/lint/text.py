"""Reports as text: `full` has the source lines, carets and help; `concise` is a line for each finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sharddsl.findings import printable, render
from sharddsl.lint.judge import Judged, Report

_CASES_SHOWN = 3


def to_full(reports: Sequence[Report]) -> str:
    """Every finding with its place in the text, what was checked of each file and what was not."""
    lines: list[str] = []
    for report in reports:
        for judged in report.findings:
            lines += [render([judged.finding], report.sources), *_where(judged, report)]
        lines.append(f"{report.name}: {_counted([report])}")
        lines += [f"  checked: {case}" for case in report.cases]
        lines += [f"  not checked: {printable(text)}" for text in report.unchecked]
        if report.silenced:
            lines.append(f"  silenced: {', '.join(f'{n} by {by}' for by, n in report.silenced.items())}")
    return "\n".join([*lines, *([summary(reports)] if len(reports) > 1 else [])])


def to_concise(reports: Sequence[Report]) -> str:
    """`file:line:column: severity code name: message`, and the sums."""
    lines = [render([judged.finding]).split("\n")[0] for report in reports for judged in report.findings]
    return "\n".join([*lines, summary(reports)])


def summary(reports: Sequence[Report]) -> str:
    """`10 files, 30 cases: 1 error, 2 warnings; not compiled`."""
    cases = sum(len(report.cases) for report in reports)
    unchecked = sum(bool(report.unchecked) for report in reports)
    without = f"; not all was checked of {_number(unchecked, 'file')}" if unchecked else ""
    silenced = sum(sum(report.silenced.values()) for report in reports)
    but = f" ({silenced} silenced)" if silenced else ""
    files, counted = _number(len(reports), "file"), _counted(reports)
    return f"{files}, {_number(cases, 'case')}: {counted}{but}; layouts only, not compiled{without}"


def _counted(reports: Sequence[Report]) -> str:
    counts = Counter(judged.finding.severity for report in reports for judged in report.findings)
    told = [_number(counts[severity], severity) for severity in ("error", "warning", "info") if counts[severity]]
    return ", ".join(told) or "clean"


def _where(judged: Judged, report: Report) -> Iterator[str]:
    """The cases that a finding is in, where it is not in all of them."""
    if judged.cases and len(judged.cases) < len(report.cases):
        shown, rest = judged.cases[:_CASES_SHOWN], len(judged.cases) - _CASES_SHOWN
        yield from (f"  in: {case}" for case in shown)
        if rest > 0:
            yield f"  and in {_number(rest, 'case')} more"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
