"""`sharddsl lint --fix` and `--diff`: what findings offer, made in a spec's text until there is nothing to mend."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sharddsl.cli.files import STDIN
from sharddsl.cli.linting import Linted, Wanted, content_of, fixes_of, lint
from sharddsl.cli.writing import write_whole
from sharddsl.findings import Finding, UsageError, printable
from sharddsl.lint import Case
from sharddsl.lint.fixes import SAFE, fixed

_MOST_PASSES = 20
"""One fix may make room for another; a chain so long is no progress."""

_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Mended:
    """A spec's text before and after, the findings that were mended, and what is left."""

    before: str
    after: str
    mended: tuple[Finding, ...]
    left: Linted


def mend(ref: str | Path, wanted: Wanted, *, every: bool) -> Mended:
    """Make the fixes of what is told of a spec: those that change no layout, or `every` one."""
    content = content_of(ref)
    linted = lint(ref, wanted, content)
    if content is None and linted.file is not None:
        content = linted.file.read_bytes()
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError:  # a finding already
        return Mended("", "", (), linted)
    mark, before = (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)
    after, mended = before, tuple[Finding, ...]()
    for _ in range(_MOST_PASSES):
        offered = [finding for finding in fixes_of(linted) if every or finding.code in SAFE]
        made = fixed(offered, {linted.report.source: after})
        if not made.texts:
            break
        changed = made.texts[linted.report.source]
        again = lint(ref, wanted, (mark + changed).encode())
        if linted.report.complete and not again.report.complete:
            raise AssertionError(f"a fix of {_codes(made.mended)} in {linted.report.name} breaks its text")
        if not every and _places(again.cases) != _places(linted.cases):
            raise AssertionError(f"a fix of {_codes(made.mended)} in {linted.report.name} changes a layout")
        after, linted, mended = changed, again, (*mended, *made.mended)
    return Mended(mark + before, mark + after, mended, linted)


def keep(mended: Mended) -> None:
    """Write the mended text where it came from, and say what was done. Of stdin it goes to stdout, changed or not."""
    linted = mended.left
    if linted.ref == STDIN:
        sys.stdout.write(mended.after)
    elif mended.after != mended.before:
        assert linted.file is not None
        try:
            write_whole(linted.file, mended.after.encode())
        except OSError as error:
            raise UsageError(f"lint --fix: {linted.report.name} cannot be written ({error.strerror})") from None
    for finding in mended.mended:
        print(printable(f"{finding.where}: mended {finding.code} {finding.name}: {finding.message}"), file=sys.stderr)


def show(mended: Mended) -> None:
    """Print what would change, as a diff."""
    from difflib import unified_diff

    name = mended.left.report.name
    before, after = (text.splitlines(keepends=True) for text in (mended.before, mended.after))
    for line in unified_diff(before, after, name, name):
        sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")


def _places(cases: Iterable[Case]) -> list[object]:
    """Where every tensor lies in every case and mode: what a safe fix leaves as it is."""
    return [
        [
            (tensor.name, decision.assigned and decision.assigned.axes, decision.wish and decision.wish.memory)
            for tensor, decision in zip(resolution.inventory.tensors, resolution.decisions, strict=True)
        ]
        for case in cases
        for resolution in case.resolutions
    ]


def _codes(findings: Iterable[Finding]) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in findings))
