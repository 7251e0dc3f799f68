"""Differences as text for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from sharddsl.findings import printable
from sharddsl.layout.naming import together
from sharddsl.lint.differences.model import Change, CheckDifference, Differences, FileDifference
from sharddsl.lint.differences.words import bytes_of, change_text, moved, notes, number, summary

_WIDTH = 80


def to_text(found: Differences) -> str:
    """Each file with something to tell, each of its checks with the tensors that moved and the bytes, and the sums."""
    lines = [line for file in found.files if not file.quiet for line in _file(file)]
    return printable("\n".join([*lines, summary(found)]))


def _file(file: FileDifference) -> Iterator[str]:
    yield file.name if file.status == "both" else f"{file.name}: {file.status}"
    for check in file.checks:
        yield from _check(check)
    yield from (line for text in file.unchecked for line in _wrapped(f"not compared: {text}", "  "))
    yield ""


def _check(check: CheckDifference) -> Iterator[str]:
    yield from _wrapped(f"{check.label}: {moved(check)}", "  ")
    for note in notes(check):
        yield from _wrapped(note, "    ")
    for change in check.changes:
        yield from _change(change)
    if check.changed or check.status != "both":
        yield from _bytes(check)


def _change(change: Change) -> Iterator[str]:
    before, after = change_text(change)
    line = f"    {before} → {after}: {number(change.count, 'tensor')}"
    yield line
    yield from _wrapped(together(change.names), "      ")


def _bytes(check: CheckDifference) -> Iterator[str]:
    rows = [("bytes per device", "before", "after", ""), *bytes_of(check)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for namespace, before, after, difference in rows:
        indent = "    " if namespace == rows[0][0] else "      "
        line = f"{indent}{namespace:<{widths[0] + 4 - len(indent)}}  {before:>{widths[1]}}  {after:>{widths[2]}}"
        yield f"{line}  {difference}".rstrip()


def _wrapped(text: str, indent: str) -> Iterator[str]:
    yield from wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
