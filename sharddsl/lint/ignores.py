"""`# shd: ignore[SHD304] reason`: what a comment silences on its line, or on the next line of text below it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sharddsl.findings import Edit, Finding, Location, Span, UsageError
from sharddsl.lint.codes import code_of
from sharddsl.lint.judge import Judged
from sharddsl.syntax.places import comments

_IGNORE = re.compile(r"#\s*shd:\s*ignore\b(?P<list>\s*\[(?P<codes>[^\]]*)\])?(?P<reason>.*)", re.DOTALL)


@dataclass(frozen=True)
class Ignore:
    """A comment that silences `codes` on `line`. It does so only if it has a reason, and `wrong` says what else keeps
    it from that."""

    where: Location
    own_line: bool
    line: int
    codes: tuple[str, ...]
    reason: str
    wrong: str | None = None

    def covers(self, finding: Finding) -> bool:
        where = finding.where
        if self.wrong is not None or where is None or where.source != self.where.source:
            return False
        return finding.code in self.codes and where.span.line <= self.line <= max(where.span.end_line, where.span.line)


def ignores_in(source: str, text: str) -> Iterator[Ignore]:
    """The comments of a text that silence something."""
    if "shd:" not in text:
        return
    lines = text.split("\n")
    for comment in comments(text):
        match = _IGNORE.match(comment.text)
        if match is None:
            continue
        line = comment.span.line
        if comment.own_line:
            line = next((n for n in range(line + 1, len(lines) + 1) if _says_something(lines[n - 1])), line)
        yield _ignore(match, Location(source, comment.span), comment.own_line, line)


def _says_something(line: str) -> bool:
    return not line.lstrip().startswith("#") and bool(line.strip())


def _ignore(match: re.Match[str], where: Location, own_line: bool, line: int) -> Ignore:
    words = [word.strip() for word in (match["codes"] or "").split(",") if word.strip()]
    reason = match["reason"].strip(" \t:-–—")
    codes: list[str] = []
    wrong = None if words else "it names no code: `# shd: ignore[SHD304] reason`"
    for word in words:
        try:
            codes.append(code_of(word))
        except UsageError as error:
            wrong = wrong or str(error)
    if wrong is None and not reason:
        wrong = f"it gives no reason: `# shd: ignore[{', '.join(words)}] why`"
    return Ignore(where, own_line, line, tuple(codes), reason, wrong)


def silenced_by(
    ignores: Sequence[Ignore], findings: Sequence[Judged]
) -> tuple[list[Judged], list[Judged], set[tuple[Ignore, str]]]:
    """The findings that are told, those that are not, and which code of which comment silenced something."""
    told: list[Judged] = []
    silent: list[Judged] = []
    used: set[tuple[Ignore, str]] = set()
    for judged in findings:
        by = [ignore for ignore in ignores if ignore.covers(judged.finding)]
        (silent if by else told).append(judged)
        used |= {(ignore, judged.finding.code) for ignore in by}
    return told, silent, used


def useless(
    ignores: Sequence[Ignore],
    used: Collection[tuple[Ignore, str]],
    judged: Collection[str],
    sources: Mapping[str, str],
) -> Iterator[Finding]:
    """SHD005, for comments that are not understood, and for those that silence nothing though their codes, `judged`,
    were looked for."""
    for ignore in ignores:
        if ignore.wrong is not None:
            yield Finding(
                "SHD005",
                "warning",
                f"this ignore silences nothing: {ignore.wrong}",
                ignore.where,
                help="an ignore has codes and a reason: `# shd: ignore[SHD304] the table is small`",
            )
            continue
        idle = [code for code in ignore.codes if (ignore, code) not in used]
        if idle and set(idle) <= set(judged):
            rest = [code for code in ignore.codes if code not in idle]
            yield Finding(
                "SHD005",
                "warning",
                f"this ignore silences nothing: there is no {' or '.join(idle)} on line {ignore.line}",
                ignore.where,
                help="remove it" if not rest else f"leave {', '.join(rest)} alone in it",
                fix=(_without(ignore, rest, sources.get(ignore.where.source, "")),),
            )


def _without(ignore: Ignore, rest: Sequence[str], text: str) -> Edit:
    """The comment gone, with its line if it has one for itself; or with no other codes in it than these."""
    source, span = ignore.where.source, ignore.where.span
    if rest:
        return Edit(ignore.where, f"# shd: ignore[{', '.join(rest)}] {ignore.reason}")
    if ignore.own_line:
        return Edit(Location(source, Span(span.line, 1, span.line + 1, 1)), "")
    before = text.split("\n")[span.line - 1][: span.column - 1]
    return Edit(Location(source, Span(span.line, len(before.rstrip()) + 1, span.end_line, span.end_column)), "")
