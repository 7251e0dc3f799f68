"""From the cases of a spec to one list of findings: each root cause once, with the cases that it is in.

A finding about a tensor stands if it is in any case. One about a rule of the file (it matches no tensor, names a dim
that none has, never wins) stands only if it holds wherever the rule applies: a rule for decoding is not dead because
training does not use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sharddsl.findings import Finding, Location, in_order
from sharddsl.layout import layout_of
from sharddsl.layout.resolution import Resolution
from sharddsl.lint.cases import Case
from sharddsl.lint.rules import WHOLE_FILE
from sharddsl.lint.subject import LARGE, Subject
from sharddsl.spec import Loaded

ABOUT_RULES = frozenset({"SHD201", "SHD204", "SHD205"})
"""Codes that are said of a rule and not of a tensor."""

DESPITE_ERRORS = ABOUT_RULES | {
    *("SHD101", "SHD102", "SHD103", "SHD104", "SHD107", "SHD208", "SHD301", "SHD302", "SHD303", "SHD308"),
}
"""Codes that are looked for in what can be read of a text with errors. That a rule is missing, or an axis splits
nothing, may be the doing of the statements that cannot be read."""


@dataclass(frozen=True)
class Judged:
    """A finding, and the labels of the cases that it is in; none for one about the text alone."""

    finding: Finding
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All about one spec. `cases` are those that were resolved; `unchecked` is what could not be judged; `silenced`
    counts the findings that are not told, by what keeps them from it. `source` is the spec's own among `sources`.
    `complete`: all of the text was understood."""

    name: str
    findings: tuple[Judged, ...]
    cases: tuple[str, ...]
    unchecked: tuple[str, ...]
    source: str
    sources: Mapping[str, str]
    complete: bool = True
    silenced: Mapping[str, int] = field(default_factory=dict)


def judge(name: str, loaded: Loaded, cases: Sequence[Case], large: int = LARGE) -> Report:
    """The report on a spec that these cases were made of. `large` is how many bytes a param has that is large."""
    told: dict[object, Judged] = {}
    for finding in loaded.findings:
        told[_cause(finding)] = Judged(finding)
    for case in cases:
        for finding in case.findings:
            if finding.code not in ABOUT_RULES and (loaded.spec is not None or finding.code in DESPITE_ERRORS):
                _tell(finding, case, told)
    for finding in _about_rules(cases):
        told[_cause(finding)] = Judged(finding)
    if loaded.spec is not None and any(case.layout is not None for case in cases):
        for rule in WHOLE_FILE:
            for finding in rule(Subject(loaded.spec, cases, large)):
                told.setdefault(_cause(finding), Judged(finding))
    in_file_order = {id(f): n for n, f in enumerate(in_order(judged.finding for judged in told.values()))}
    return Report(
        name,
        tuple(sorted(told.values(), key=lambda judged: in_file_order[id(judged.finding)])),
        tuple(case.label for case in cases if case.layout is not None),
        tuple(dict.fromkeys(_unchecked(loaded, cases))),
        loaded.source,
        loaded.sources,
        loaded.spec is not None,
    )


def _tell(finding: Finding, case: Case, told: dict[object, Judged]) -> None:
    cause = _cause(finding)
    before = told.get(cause)
    if before is None:
        told[cause] = Judged(finding, (case.label,))
    elif case.label not in before.cases:
        told[cause] = replace(before, cases=(*before.cases, case.label))


def _cause(finding: Finding) -> object:
    """What a finding is about, whatever sizes a case gives it. Of the many tensors that a rule places wrongly the first
    is named, which differs from case to case: with a place, that is what counts."""
    return finding.code, finding.where or finding.tensor, finding.dim


def _about_rules(cases: Sequence[Case]) -> Iterable[Finding]:
    """The findings that are made of a rule in every resolution in which it applies."""
    resolutions = [resolution for case in cases for resolution in case.resolutions]
    found: dict[tuple[str, Location | None], list[Finding]] = {}
    for resolution in resolutions:
        for finding in layout_of(resolution).findings:
            if finding.code in ABOUT_RULES:
                found.setdefault((finding.code, finding.where), []).append(finding)
    for (_, where), findings in found.items():
        if where is None or len(findings) >= sum(_applies(where, resolution) for resolution in resolutions):
            yield findings[0]


def _applies(where: Location, resolution: Resolution) -> bool:
    """Whether the rule that stands around this place is among those that apply, and has tensors to be about."""
    held = {tensor.namespace for tensor in resolution.inventory}
    return any(rule.pattern.namespace in held and _around(rule.where, where) for rule in resolution.rules)


def _around(outer: Location, inner: Location) -> bool:
    begins = (outer.span.line, outer.span.column) <= (inner.span.line, inner.span.column)
    ends = (inner.span.end_line, inner.span.end_column) <= (outer.span.end_line, outer.span.end_column)
    return outer.source == inner.source and begins and ends


def _unchecked(loaded: Loaded, cases: Sequence[Case]) -> Iterable[str]:
    if loaded.spec is None and not any(case.layout is not None for case in cases):
        yield "layouts: the text has errors"
        return
    if loaded.spec is None:
        yield "rules that are missing or never win, and axes that are not used: the text has errors"
    spec = loaded.readable
    if spec.mesh is None:
        yield "layouts: it has no mesh of its own, and is there to be extended"
    elif not cases:
        yield "layouts: it has no `check` line; name a model (model=…), or add `check MODEL on [AXIS=SIZE]`"
    for case in cases:
        if case.layout is not None:
            yield from (f"{text}, in {case.label}" for text in case.layout.unknown)
    expectations = len(spec.expect) + sum(len(check.expect) for check in spec.checks)
    if expectations == 1:
        yield "1 `expect` line: it asks about the compiled program"
    elif expectations:
        yield f"{expectations} `expect` lines: they ask about the compiled program"
