"""One list of findings for all the ways in which conditions of unknown value can come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sharddsl.findings import Finding
from sharddsl.layout.model import Layout
from sharddsl.layout.resolution import Resolution
from sharddsl.spec.model import Rule


def of_all_ways(resolutions: Sequence[Resolution], layouts: Sequence[Layout]) -> tuple[Finding, ...]:
    """The findings of the layouts, the first of which is shown, each once; those that are not made in every way say
    under which condition they are."""
    causes = [{_cause(finding) for finding in layout.findings} for layout in layouts]
    everywhere, told = set.intersection(*causes), set[object]()
    findings: list[Finding] = []
    for resolution, layout, own in zip(resolutions, layouts, causes, strict=True):
        for finding in layout.findings:
            cause = _cause(finding)
            if cause in everywhere and layout is layouts[0]:
                findings.append(finding)
            elif cause not in everywhere and cause not in told:
                findings.append(_if(finding, resolution, shown=layout is layouts[0]))
        told |= own
    return tuple(findings)


def _cause(finding: Finding) -> object:
    """What a finding is about, however many tensors show it."""
    return finding.code, finding.where, finding.tensor, finding.dim


def _if(finding: Finding, resolution: Resolution, *, shown: bool) -> Finding:
    """The finding under what is assumed; an error only where the layout that is shown rests on that."""
    assumed = resolution.assumed
    depends = _conditions_around(finding, resolution) & assumed.keys() or assumed.keys()
    said = " and ".join(f"{'' if holds else 'not '}`{text}`" for text, holds in assumed.items() if text in depends)
    severity = finding.severity if shown or finding.severity == "info" else "warning"
    return replace(finding, message=f"if {said}: {finding.message}", severity=severity)


def _conditions_around(finding: Finding, resolution: Resolution) -> set[str]:
    """The conditions of the rule that a finding is about; none where a rule is missing, since that stands nowhere."""
    if finding.code == "SHD202":
        return set()
    return {c.text for rule in resolution.rules if _within(finding, rule) for c in rule.conditions}


def _within(finding: Finding, rule: Rule) -> bool:
    where, around = finding.where, rule.where.span
    if where is None or where.source != rule.where.source:
        return False
    begins_after = (around.line, around.column) <= (where.span.line, where.span.column)
    return begins_after and (where.span.end_line, where.span.end_column) <= (around.end_line, around.end_column)
