"""Differences as data, for programs: `--format json`, whose schema is `docs/schema/diff.schema.json`."""

from __future__ import annotations

from typing import Any

from sharddsl.lint.differences.model import CheckDifference, Differences

VERSION = 1
"""It changes when a reader of the former would misread it."""


def to_data(found: Differences) -> dict[str, Any]:
    """Every file with all its checks, whether they change or not. Bytes are null where they are not known."""
    return {
        "version": VERSION,
        "before": found.before,
        "after": found.after,
        "changed": found.changed,
        "files": [
            {
                "file": file.name,
                "status": file.status,
                "changed": file.changed,
                "checks": [_check(check) for check in file.checks],
                "unchecked": list(file.unchecked),
            }
            for file in found.files
        ],
        "unreadable": [
            {"file": file.name, "version": file.version, "findings": file.told} for file in found.unreadable
        ],
    }


def _check(check: CheckDifference) -> dict[str, Any]:
    return {
        "check": check.label,
        "status": check.status,
        "changed": check.changed,
        "mesh": None if check.mesh is None else {"before": check.mesh[0], "after": check.mesh[1]},
        "renamed": dict(check.renamed),
        "changes": [
            {"before": change.before, "after": change.after, "count": change.count, "tensors": list(change.names)}
            for change in check.changes
        ],
        "bytes_per_device": {
            namespace: {"before": held.before, "after": held.after} for namespace, held in check.bytes.items()
        },
        "errors": {"before": list(check.errors_before), "after": list(check.errors_after)},
    }
