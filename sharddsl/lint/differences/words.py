"""How differences are put in words, whatever the format."""

from __future__ import annotations

from sharddsl.layout.words import bytes_text
from sharddsl.lint.differences.model import Bytes, Change, CheckDifference, Differences

NOT_KNOWN = "not known"


def number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def moved(check: CheckDifference) -> str:
    """What became of a check, in a few words."""
    if check.status != "both":
        return check.status
    count = sum(change.count for change in check.changes)
    said = [f"{number(count, 'tensor')} change{'s' * (count == 1)} layout"] if count else []
    said += ["another mesh"] if check.mesh is not None else []
    return ", ".join(said) or "no layout changes"


def change_text(change: Change) -> tuple[str, str]:
    """The layout before and after."""
    return change.before or "not there", change.after or "not there"


def notes(check: CheckDifference) -> list[str]:
    """What else is to be said of a check."""
    said = [f"mesh {check.mesh[0]} → {check.mesh[1]}"] if check.mesh is not None else []
    if check.renamed:
        said.append("axes under other names: " + ", ".join(f"{old} → {new}" for old, new in check.renamed.items()))
    for when, errors in (("before", check.errors_before), ("now", check.errors_after)):
        if errors:
            said.append(f"errors {when}, which `sharddsl lint` tells: {', '.join(dict.fromkeys(errors))}")
    return said


def bytes_of(check: CheckDifference) -> list[tuple[str, str, str, str]]:
    """Rows of namespace, bytes per device before and after, and the difference."""
    return [
        (namespace, _size(held.before, check, "added"), _size(held.after, check, "removed"), _difference(held))
        for namespace, held in check.bytes.items()
    ]


def _size(count: int | None, check: CheckDifference, not_there: str) -> str:
    if check.status == not_there:
        return "-"
    return NOT_KNOWN if count is None else bytes_text(count)


def _difference(held: Bytes) -> str:
    if held.before is None or held.after is None or held.before == held.after:
        return ""
    more = held.after - held.before
    percent = f" ({more / held.before:+.1%})" if held.before else ""
    return f"{'+' if more > 0 else '-'}{bytes_text(abs(more))}{percent}"


def summary(found: Differences) -> str:
    """`1 of 10 files, 2 of 22 checks: layouts change`."""
    files, checks = found.files, found.checks
    changed = sum(file.changed for file in files), sum(check.changed for check in checks)
    if any(changed):
        text = f"layouts change in {changed[0]} of {number(len(files), 'file')}, {changed[1]} of {_checks(len(checks))}"
    else:
        text = f"no layout changes in {number(len(files), 'file')}, {_checks(len(checks))}"
    others = (
        *((sum(file.status == status for file in files), status, "file") for status in ("new", "gone")),
        *((sum(check.status == status for check in checks), status, "check") for status in ("added", "removed")),
    )
    said = [f"{number(count, what)} {status}" for count, status, what in others if count]
    said += [f"{number(len(found.unreadable), 'file')} not compared, with errors"] if found.unreadable else []
    return "; ".join([text, *said])


def _checks(count: int) -> str:
    return number(count, "check")
