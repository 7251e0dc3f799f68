"""The findings that a repository has already, kept in a file: only what is new is told.

An entry is known by its file, code, tensor, dim and the text of its line, not by the line's number: a baseline survives
that lines move.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sharddsl.findings import Finding, UsageError
from sharddsl.lint.judge import Judged, Report

VERSION = 1


class Entry(NamedTuple):
    """What a finding is known by. `file` is relative to the baseline's folder, with forward slashes."""

    file: str
    code: str
    tensor: str
    dim: str
    text: str


@dataclass
class Baseline:
    """How many findings of each entry are known. `met` holds how many of them a report has had at most, and `files` the
    files that were looked at."""

    folder: Path
    known: Counter[Entry]
    met: Counter[Entry] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)

    def split(self, report: Report, findings: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
        """The findings that are new, and those that are known."""
        new: list[Judged] = []
        old: list[Judged] = []
        left = self.known.copy()
        for judged in findings:
            entry = entry_of(judged.finding, report, self.folder)
            (old if left[entry] > 0 else new).append(judged)
            left[entry] -= 1
        self.met |= self.known - left
        self.files.add(_relative(report.source, self.folder))
        return new, old

    @property
    def gone(self) -> int:
        """How many known findings of the files that were looked at were not met."""
        return sum(n for entry, n in (self.known - self.met).items() if entry.file in self.files)


def entry_of(finding: Finding, report: Report, folder: Path) -> Entry:
    """What this finding is known by."""
    source = report.source if finding.where is None else finding.where.source
    lines = report.sources.get(source, "").split("\n")
    number = 0 if finding.where is None else finding.where.span.line
    text = lines[number - 1].strip() if 1 <= number <= len(lines) else ""
    return Entry(_relative(source, folder), finding.code, finding.tensor or "", finding.dim or "", text)


def _relative(source: str, folder: Path) -> str:
    if source.startswith(("<", "-")):  # no file: stdin, a shipped spec, an override
        return source
    return Path(os.path.relpath(os.path.abspath(source), folder)).as_posix()


def read(file: Path) -> Baseline:
    """The baseline in a file. Raises `UsageError` where it cannot be read or is none."""
    import json

    try:
        data = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"--baseline {file}: there is no such file; --write-baseline makes it") from None
    except OSError as error:
        raise UsageError(f"--baseline {file}: it cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"--baseline {file}: it is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION or not isinstance(data.get("findings"), list):
        raise UsageError(f"--baseline {file}: it is no baseline of version {VERSION}; --write-baseline makes one anew")
    known: Counter[Entry] = Counter()
    for number, item in enumerate(data["findings"]):
        entry, count = _entry(item)
        if entry is None:
            raise UsageError(f"--baseline {file}: findings[{number}] is no entry: {item!r}")
        known[entry] += count
    return Baseline(file.absolute().parent, known)


def _entry(item: Any) -> tuple[Entry | None, int]:
    if not isinstance(item, dict) or not set(item) <= {*Entry._fields, "count"}:
        return None, 0
    values = [item.get(name, "") for name in Entry._fields]
    count = item.get("count", 1)
    if not all(isinstance(value, str) for value in values) or not isinstance(count, int) or count < 1:
        return None, 0
    return Entry(*values), count


def written(reports: Iterable[Report], file: Path) -> str:
    """The text of a baseline of all that these reports tell, in an order that makes for small diffs."""
    import json

    folder = file.absolute().parent
    counts = Counter(entry_of(judged.finding, report, folder) for report in reports for judged in report.findings)
    findings = [
        {name: value for name, value in entry._asdict().items() if value} | ({"count": count} if count > 1 else {})
        for entry, count in sorted(counts.items())
    ]
    return json.dumps({"version": VERSION, "findings": findings}, indent=1, ensure_ascii=False) + "\n"
