"""`extends`: a file, its base, that one's base, and so on, each read and parsed once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharddsl.findings import Span
from sharddsl.search import SUFFIX, SearchPath, absolute, is_name, read, same_file
from sharddsl.spec.report import Report
from sharddsl.syntax import decode, parse, tree

MOST_BASES = 32
"""The most bases that one file may have, those of its bases included."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One parsed file. `path` is None for a text that lies in no file. `complete`: the whole text was understood."""

    path: Path | None
    report: Report
    file: tree.File
    complete: bool

    @property
    def extends(self) -> tree.Extends | None:
        """The statement that names the base: the first, if there are several."""
        return next((s for s in self.file.statements if isinstance(s, tree.Extends)), None)


def unit_of(text: str, source: str, path: Path | None) -> Unit:
    """A text, parsed; what is wrong with it is in the unit's report."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # the lines that the parser counts
    parsed = parse(text, source)
    complete = not any(finding.severity == "error" for finding in parsed.findings)
    return Unit(path, Report(source, text, list(parsed.findings)), parsed.file, complete)


def unit_from(data: bytes, source: str, path: Path) -> Unit:
    """A file's bytes, decoded and parsed."""
    text, findings = decode(data, source)
    if findings:
        return Unit(path, Report(source, text, list(findings)), tree.File(()), complete=False)
    return unit_of(text, source, path)


def chain(root: Unit, search: SearchPath) -> tuple[list[Unit], bool]:
    """The root and its bases, closest first, and whether the last one has no further base.

    What keeps a base from being had is reported where it is named (SHD004), and ends the chain.
    """
    units = [root]
    while True:
        unit = units[-1]
        _check_place(unit)
        extends = unit.extends
        if extends is None:
            return units, unit.complete
        base = _base(unit, extends, units, search)
        if base is None:
            return units, False
        units.append(base)


def _check_place(unit: Unit) -> None:
    """One `extends`, first in the file."""
    found = [(i, s) for i, s in enumerate(unit.file.statements) if isinstance(s, tree.Extends)]
    for position, (index, statement) in enumerate(found):
        if position > 0:
            related = ((unit.report.at(found[0][1].span), "the first"),)
            message = "a file extends one other; this is a second `extends`"
            unit.report.add("SHD004", statement.span, message, "let the bases extend one another", related=related)
        elif index > 0:
            message = "`extends` must be the first statement: what a file says comes after what its base says"
            unit.report.add("SHD004", statement.span, message, "move it to the top")


def _base(unit: Unit, extends: tree.Extends, units: Sequence[Unit], search: SearchPath) -> Unit | None:
    report, target = unit.report, extends.target
    span = report.find(target, extends.span)
    path = _locate(unit, target, span, search)
    if path is None:
        return None
    if not search.allows(path):
        message = f"`{target}` lies outside the project ({search.project}) and the shipped specs"
        report.add("SHD004", span, message, "copy it into the project, or give its folder a `pyproject.toml`")
        return None
    for earlier in units:
        if earlier.path is not None and same_file(earlier.path, path):
            names = [u.report.source for u in units[units.index(earlier) :]]
            message = "files extend each other in a circle: " + " → ".join([*names, earlier.report.source])
            report.add("SHD004", span, message if len(names) > 1 else "a file cannot extend itself")
            return None
    if len(units) > MOST_BASES:
        report.add("SHD004", span, f"more than {MOST_BASES} files extend one another")
        return None
    data = read(path)
    if isinstance(data, str):
        report.add("SHD004", span, f"cannot read `{target}`: {data}")
        return None
    return unit_from(data, search.shown(path), path)


def _locate(unit: Unit, target: str, span: Span, search: SearchPath) -> Path | None:
    """The file that `extends "target"` means, or None, with a finding."""
    if is_name(target):
        found = search.candidates(target, unit.path)
        if not found:
            unit.report.unknown("SHD004", span, target, "spec", search.names(unit.path))
        return found[0] if found else None
    if not target.endswith(SUFFIX) or not target.isprintable():
        message = f"`{target}` is neither a spec's name (`llama/fsdp`) nor a path that ends in `{SUFFIX}`"
        unit.report.add("SHD004", span, message)
        return None
    folder = unit.path.parent if unit.path is not None else search.cwd
    path = absolute(Path(target), folder)
    if search.allows(path) and not os.path.lexists(path):
        help = f"a path is relative to {search.shown(folder)}; without `{SUFFIX}` it would be a name"
        unit.report.add("SHD004", span, f"there is no file `{search.shown(path)}`", help)
        return None
    return path
