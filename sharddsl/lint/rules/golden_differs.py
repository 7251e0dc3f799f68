"""SHD209 golden-differs (error)

A spec's effective layouts are not those of its golden file, or it has no such file. Golden files hold, as text, where
every tensor lies in each `check` of a spec, and are kept beside the code: whoever changes a rule, or a base that many
specs extend, changes them too, and a review shows what moved. They are compared with `--golden DIR`. With this golden:

```text
case: pair, train, on [fsdp=4]
w  (rows, columns)  [fsdp, None]
```

and these tensors

```json
{"kind": "pair", "tensors": [{"name": "w", "dims": ["rows", "columns"], "shape": [8, 8]}]}
```

Bad, `w` is split along its columns:

```shard
mesh: [fsdp=4]
*: {columns: fsdp}
```

Good, along its rows:

```shard
mesh: [fsdp=4]
*: {rows: fsdp}
```

How to mend it: if the change is meant, `sharddsl lint --golden DIR --write-golden` writes what is so now, to be
committed with the spec; if it is not, the related places say which tensors moved. A golden file whose spec is gone is
deleted by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sharddsl.findings import NOWHERE, Finding, Location, Span
from sharddsl.layout.effective import Kind
from sharddsl.layout.naming import together
from sharddsl.lint.golden import Golden, Section, read
from sharddsl.lint.judge import Judged, Report

CODE = "SHD209"
_WRITE = "if that is meant: sharddsl lint --golden DIR --write-golden"
_MOST_SHOWN = 8


def added(report: Report, golden: Golden, folder: Path) -> Report:
    """The report with SHD209 where the spec's golden file in the folder is not as it should be."""
    found = tuple(Judged(finding) for finding in findings(golden, folder, report.source))
    return replace(report, findings=(*report.findings, *found))


def findings(golden: Golden, folder: Path, source: str) -> Iterator[Finding]:
    """One for a file that is missing, else one for each case that differs, is not there, or is there no more."""
    file = folder / golden.name
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        if golden.sections:
            at = _of_spec(golden, source)
            help = "sharddsl lint --golden DIR --write-golden writes it"
            yield Finding(CODE, "error", f"there is no golden file {file} with its layouts", at, help=help)
        return
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        yield Finding(CODE, "error", f"the golden file {file} cannot be read: {why}", _of_spec(golden, source))
        return
    sections = read(text)
    for title, held in golden.sections.items():
        at = golden.places.get(title, Location(source, NOWHERE))
        if title not in sections:
            yield Finding(CODE, "error", f"the golden file {file} has no `{title}`", at, help=_WRITE)
        elif moves := list(_moves(sections[title], held)):
            yield _moved(title, moves, file, at)
    for title in sections:
        if title not in golden.sections:
            yield _left(title, sections[title], file, _of_spec(golden, source))


def _of_spec(golden: Golden, source: str) -> Location:
    """The place of what is said of the whole spec: its first `check`."""
    return next(iter(golden.places.values()), Location(source, NOWHERE))


class _Move(NamedTuple):
    """A kind of tensor as the golden file has it, in this line, and as it is now; None where it is not there."""

    name: str
    line: int
    was: Kind | None
    now: Kind | None

    @property
    def change(self) -> str:
        was, now = self.was, self.now
        if was is None or now is None:
            return "it is new" if was is None else "it is gone"
        if was.dims != now.dims:
            return f"was {was.dims} {was.layout}, is {now.dims} {now.layout}"
        return f"was {was.layout}, is {now.layout}"


def _moves(section: Section, held: Sequence[Kind]) -> Iterator[_Move]:
    now = {kind.name: kind for kind in held}
    for name in dict.fromkeys([*now, *section.entries]):
        entry = section.entries.get(name)
        was = None if entry is None else entry.kind
        if was != now.get(name):
            yield _Move(name, section.line if entry is None else entry.line, was, now.get(name))


def _moved(title: str, moves: Sequence[_Move], file: Path, at: Location) -> Finding:
    alike: dict[str, list[_Move]] = {}
    for move in moves:
        alike.setdefault(move.change, []).append(move)
    related = [
        (_line(file, several[0].line), f"{change}: {together(move.name for move in several)}")
        for change, several in alike.items()
    ]
    if len(related) > _MOST_SHOWN:
        rest = len(related) - _MOST_SHOWN
        related[_MOST_SHOWN:] = [(related[_MOST_SHOWN][0], f"and {rest} more changes from here on")]
    count = f"{len(moves)} kinds of tensors are" if len(moves) > 1 else "a kind of tensor is"
    message = f"{count} not as {file} has {title}: {together(move.name for move in moves)}"
    return Finding(CODE, "error", message, at, help=_WRITE, related=tuple(related))


def _left(title: str, section: Section, file: Path, at: Location) -> Finding:
    message = f"the golden file {file} has `{title}`, which no `check` of the spec is for"
    return Finding(CODE, "error", message, at, help=_WRITE, related=((_line(file, section.line), "it stands here"),))


def _line(file: Path, line: int) -> Location:
    return Location(str(file), Span(line, 1, line, 2))


def orphaned(file: Path, spec: str) -> Finding:
    """SHD209 of a golden file whose spec is not there."""
    message = f"it is the golden file of {spec}, which is not there"
    return Finding(CODE, "error", message, Location(str(file), NOWHERE), help="delete it, or move it with its spec")
