"""Differences as Markdown: the text of a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from sharddsl.findings import printable
from sharddsl.layout.naming import together
from sharddsl.lint.differences.model import CheckDifference, Differences, FileDifference
from sharddsl.lint.differences.words import bytes_of, change_text, moved, notes, number, summary

_MANY_CHECKS = 2
_MANY_ROWS = 6
"""Beyond that many, in the whole comment or in one table, a reader opens what is of interest."""

_LONGEST = 60_000
"""Characters. GitHub takes 65,536 for a comment."""


def to_markdown(found: Differences) -> str:
    """A line that sums up, and for each check that changes the tensors that moved and the bytes per device. What would
    make the comment longer than one may be is left out, and counted."""
    head = f"**Layouts, {_code(found.before)} → {_code(found.after)}**: {summary(found)}\n"
    told = [check for check in found.checks if not check.quiet]
    parts = [part for file in found.files if not file.quiet for part in _file(file, folded=len(told) > _MANY_CHECKS)]
    parts += [
        f"{_code(file.name)} has errors ({_plain(file.version)}): `sharddsl lint` tells them.\n"
        for file in found.unreadable
    ]
    kept, length = [head], len(head)
    for position, part in enumerate(parts):
        length += len(part) + 1
        if length > _LONGEST:
            rest = number(len(parts) - position, "part")
            kept.append(f"{rest} more would be too long for a comment: `sharddsl diff` tells all.\n")
            break
        kept.append(part)
    return "\n".join(kept).rstrip("\n")


def _file(file: FileDifference, folded: bool) -> Iterator[str]:
    yield f"### {_code(file.name)}{'' if file.status == 'both' else f': {file.status}'}\n"
    same = [check for check in file.checks if check.quiet]
    for check in file.checks:
        if not check.quiet:
            yield _check(check, folded or len(check.changes) > _MANY_ROWS)
    if same:
        yield f"No layout changes in {number(len(same), 'check')}: {', '.join(_code(check.label) for check in same)}\n"
    yield from (f"Not compared: {_plain(text)}\n" for text in file.unchecked)


def _check(check: CheckDifference, folded: bool) -> str:
    title = f"<code>{escape(printable(check.label))}</code>: {moved(check)}"
    body = "\n\n".join(_tables(check))
    if not body:
        return f"{title}\n"
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>\n" if folded else f"{title}\n\n{body}\n"


def _tables(check: CheckDifference) -> Iterator[str]:
    yield from (_plain(note) for note in notes(check))
    if check.changes:
        rows = [
            (*map(_cell, change_text(change)), f"{change.count:,}", _cell(together(change.names)))
            for change in check.changes
        ]
        yield _table(("before", "after", "tensors", ""), ("---", "---", "---:", "---"), rows)
    if check.changed or check.status != "both":
        yield _table(("per device", "before", "after", ""), ("---", "---:", "---:", "---"), bytes_of(check))


def _table(titles: tuple[str, ...], rule: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, rule, *rows))


def _code(text: str) -> str:
    """Text of others as code: nothing in it is Markdown."""
    return f"`{printable(text).replace('`', chr(39))}`"


def _cell(text: str) -> str:
    """The same within a table, whose cells a bar would end."""
    return _code(text).replace("|", r"\|")


def _plain(text: str) -> str:
    return escape(printable(text), quote=False)
