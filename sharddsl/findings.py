"""What the tool says about a user's text: findings, where they point, and the error that carries them.

A finding says *what* is wrong, *why*, and *what would work*. It has a code and a kebab name (`SHD303 splits-a-head`),
a severity, a place in a file (or in the text of a command-line override), and, where one is known, the tensor and dim.
Every stage makes findings; only the edges (`cli`, tests) render them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import wrap
from typing import Literal

Severity = Literal["error", "warning", "info"]

NAMES: dict[str, str] = {
    "SHD001": "syntax-error",
    "SHD002": "unknown-name",
    "SHD003": "said-twice",
    "SHD004": "cannot-extend",
    "SHD005": "unused-name",
    "SHD006": "not-formatted",
    "SHD007": "wrong-kind",
    "SHD008": "constant-condition",
    "SHD101": "unknown-axis",
    "SHD102": "axis-used-twice",
    "SHD103": "mesh-is-not-the-devices",
    "SHD104": "cannot-infer-axis",
    "SHD105": "axis-of-size-one",
    "SHD106": "axis-never-used",
    "SHD107": "mesh-does-not-fit-target",
    "SHD108": "surprising-inferred-axis",
    "SHD109": "tensor-axis-crosses-hosts",
    "SHD201": "matches-no-tensor",
    "SHD202": "no-rule-for-tensor",
    "SHD203": "rule-never-wins",
    "SHD204": "dim-no-tensor-has",
    "SHD205": "layer-out-of-reach",
    "SHD206": "says-the-same-again",
    "SHD207": "override-replaces",
    "SHD208": "dim-name-twice",
    "SHD209": "golden-differs",
    "SHD301": "more-entries-than-dims",
    "SHD302": "does-not-divide",
    "SHD303": "splits-a-head",
    "SHD304": "large-and-replicated",
    "SHD305": "optimizer-could-be-split",
    "SHD306": "weight-looks-transposed",
    "SHD307": "optional-axis-dropped",
    "SHD308": "batch-not-whole",
    "SHD309": "no-such-memory-kind",
    "SHD310": "rule-for-tied-head",
}
"""Every code, with the name that may be written in its place."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of text. Lines and columns count from 1; columns count characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The span from this one's start to the other's end."""
        return Span(self.line, self.column, other.end_line, other.end_column)


NOWHERE = Span(0, 0, 0, 0)
"""The span of a node that no text stands behind (built by hand, or by a test)."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A span in a named source: a file's path, or an option's name such as `--rule 1`."""

    source: str
    span: Span

    def __str__(self) -> str:
        return f"{self.source}:{self.span.line}:{self.span.column}" if self.span.line else self.source

    @property
    def short(self) -> str:
        """`file:line`, as tables show it."""
        return f"{self.source}:{self.span.line}" if self.span.line else self.source


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement of text, part of a fix."""

    where: Location
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about the input; one root cause gives one finding, with a `count` of the tensors it is in."""

    code: str
    severity: Severity
    message: str
    where: Location | None = None
    help: str | None = None
    tensor: str | None = None
    dim: str | None = None
    count: int = 1
    note: str | None = None
    """What stands beside the caret: the tensor's dims and sizes, as a rule."""
    related: tuple[tuple[Location, str], ...] = ()
    """Other places that matter (the rule that shadows this one, the base file), each with what it is."""
    fix: tuple[Edit, ...] = field(default=())

    @property
    def name(self) -> str:
        return NAMES[self.code]


class ShardError(Exception):
    """The input cannot be used. Carries every finding that was made, errors first, and the texts they point into.

    `sources` maps a location's source name to its text; `render` shows the line and the caret from it.
    """

    def __init__(self, findings: Iterable[Finding], sources: Mapping[str, str] | None = None) -> None:
        self.findings = in_order(findings)
        self.sources = dict(sources or {})
        super().__init__(render(self.findings, self.sources))


class UsageError(Exception):
    """A command called wrongly, or an unusable file outside the language: what, why and a remedy. Exit code 2."""


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those findings that forbid use."""
    return tuple(f for f in findings if f.severity == "error")


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors before warnings before infos, each by source, line and column."""
    return tuple(sorted(findings, key=_order))


_RANKS: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}


def _order(finding: Finding) -> tuple[int, str, Span, str]:
    where = finding.where or Location("", NOWHERE)
    return _RANKS[finding.severity], where.source, where.span, finding.code


def render(findings: Iterable[Finding], sources: Mapping[str, str] | None = None) -> str:
    """The findings as text, in order, one block each: place, severity, code, message; the source line with carets;
    help.

    Of very many the first are shown, and the rest is counted by code."""
    ordered = in_order(findings)
    shown, rest = ordered[:_MOST_SHOWN], ordered[_MOST_SHOWN:]
    blocks = [_render_one(finding, sources or {}) for finding in shown]
    if rest:
        counts = Counter(f"{finding.severity} {finding.code} {finding.name}" for finding in rest)
        blocks.append(f"and {len(rest):,} more: " + ", ".join(f"{count:,} × {what}" for what, count in counts.items()))
    return "\n".join(blocks)


_MOST_SHOWN = 100
"""Nobody reads on after so many findings; who counts on all of them reads them from the error or the layout."""


def _render_one(finding: Finding, sources: Mapping[str, str]) -> str:
    tensors = f" ({finding.count} tensors)" if finding.count > 1 else ""
    place = f"{finding.where}: " if finding.where else ""
    lines = [f"{place}{finding.severity} {finding.code} {finding.name}: {finding.message}{tensors}"]
    if finding.where is not None:
        lines += _excerpt(finding.where, sources, finding.note)
    elif finding.note:
        lines.append(f"  {finding.note}")
    for where, what in finding.related:
        lines.append(f"  {where}: {what}")
    if finding.help:
        first, *rest = finding.help.splitlines()
        lines.append(f"  help: {first}")
        lines += [f"        {line}" for line in rest]
    return "\n".join(map(_printable_line, lines))


def printable(text: str) -> str:
    """A message that quotes what others wrote, fit for a terminal: nothing in it acts on one, and what makes a line
    unreadably long is cut out of its middle."""
    return "\n".join(map(_printable_line, text.split("\n")))


def _printable_line(line: str) -> str:
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} … {line[-_LONGEST_LINE // 2 :]}"
    return line.translate(_UNPRINTABLE)


_LONGEST_LINE = 1000

_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029)
_INVISIBLE = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_UNPRINTABLE = {**dict.fromkeys((*_CONTROLS, *_INVISIBLE), "\N{REPLACEMENT CHARACTER}"), ord("\t"): " "}
"""What a quoted text must not do to a terminal: control characters, what else ends a line, and what changes the
direction of a text or hides in it."""


def _columns(text: str) -> int:
    """How many columns of a terminal the text takes: combining characters none, East Asian wide ones and emoji two."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(character) in ("Mn", "Me", "Cf") else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )


@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    """The lines as the parser counts them: they end with LF, CRLF or CR, and with nothing else."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


_WIDEST_EXCERPT = 120
"""Longer source lines are cut around the caret, so that a 10 MB line does not become a 10 MB message."""


_WIDEST_NOTE = 100
"""Columns. A note that does not fit beside the caret stands below it."""


def _excerpt(where: Location, sources: Mapping[str, str], note: str | None) -> list[str]:
    lines = _lines(sources.get(where.source, ""))
    if not 1 <= where.span.line <= len(lines):
        return [f"  {note}"] if note else []
    line = lines[where.span.line - 1]
    start = where.span.column - 1
    end = where.span.end_column - 1 if where.span.end_line == where.span.line else len(line)
    cut = max(0, start - _WIDEST_EXCERPT // 2) if len(line) > _WIDEST_EXCERPT else 0
    shown = line[cut : cut + _WIDEST_EXCERPT].translate(_UNPRINTABLE)
    carets = "^" * max(1, _columns(shown[start - cut : end - cut]))
    margin = len(str(where.span.line))
    marked = f"  {'':{margin}} | {' ' * _columns(shown[: start - cut])}{carets}"
    quoted = [f"  {where.span.line} | {shown}", marked]
    if note and len(marked) + 1 + len(note) <= _WIDEST_NOTE:
        quoted[-1] += f" {note}"
    elif note:
        quoted += [f"  {'':{margin}} | {part}" for part in wrap(note, _WIDEST_NOTE - margin - len("   | "))]
    return quoted
