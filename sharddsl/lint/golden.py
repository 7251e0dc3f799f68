"""Golden files: the effective layouts of a spec's cases as text, kept beside the code, so that a change of the spec
shows what it moves.

A file holds a section for each case, `case: llama3_8b, train, on [fsdp=64], batch 64, seq 8192`, and in it a line for
each kind of tensor: its path, its dims, its layout.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharddsl import resources
from sharddsl.findings import Location
from sharddsl.layout.effective import Kind, headline, kinds
from sharddsl.layout.model import Layout
from sharddsl.lint.cases import Case
from sharddsl.search import SUFFIX, search_path

GOLDEN = ".golden"
"""What the name of a golden file ends with, where that of its spec ends with `.shard`."""

_MARK = "case: "
_LINE = re.compile(r"(?P<name>\S.*?)\s{2,}(?P<dims>\(.*?\))\s{2,}(?P<layout>\S.*?)\s*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A kind of tensor in a golden file, and its line there, from 1."""

    kind: Kind
    line: int


@dataclass(frozen=True, slots=True)
class Section:
    """The case that a headline names, as a golden file has it."""

    line: int
    entries: Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Golden:
    """A spec's golden file as it should be: where it lies below its folder, and what it holds under each headline.
    `places` are those of the `check` lines that the sections are of."""

    name: str
    spec: str
    sections: Mapping[str, tuple[Kind, ...]]
    places: Mapping[str, Location]

    @property
    def text(self) -> str:
        head = (
            f"# The effective layouts of {self.spec}; axes of size 1 are left out.\n"
            "# Written by `sharddsl lint --golden DIR --write-golden`.\n"
        )
        return "\n".join([head, *(section_text(title, held) for title, held in self.sections.items())])


def golden_of(file: Path, cases: Iterable[Case]) -> Golden:
    """The golden of the spec in this file, resolved for these cases. Those that are alike in all are one section."""
    sections: dict[str, tuple[Kind, ...]] = {}
    places: dict[str, Location] = {}
    for case in cases:
        if case.layout is not None:
            title, held = headline(case.layout), tuple(kinds(case.layout))
            while sections.get(title, held) != held:
                title += ", again"
            sections[title] = held
            if case.where is not None:
                places.setdefault(title, case.where)
    spec = spec_path(file)
    return Golden(name_for(spec), spec, sections, places)


def section_text(title: str, held: Sequence[Kind]) -> str:
    """The section as its lines: columns are as wide as the tensors' names and dims need, whatever the layouts."""
    widest = max((len(kind.name) for kind in held), default=0), max((len(kind.dims) for kind in held), default=0)
    lines = [f"{kind.name:<{widest[0]}}  {kind.dims:<{widest[1]}}  {kind.layout}" for kind in held]
    return "\n".join([_MARK + title, *lines, ""])


def layout_section(layout: Layout) -> str:
    """The section of one layout."""
    return section_text(headline(layout), tuple(kinds(layout)))


def agrees(golden: Golden, text: str) -> bool:
    """Whether a golden file says the same as it should; spaces, comments and the order do not count."""
    held = {title: {e.kind for e in section.entries.values()} for title, section in read(text).items()}
    return held == {title: set(kinds) for title, kinds in golden.sections.items()}


def read(text: str) -> dict[str, Section]:
    """The sections of a golden file by their headlines. Lines that are none say nothing."""
    sections: dict[str, Section] = {}
    entries: dict[str, Entry] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(_MARK):
            entries = {}
            sections[line.removeprefix(_MARK).strip()] = Section(number, entries)
        elif (said := _LINE.fullmatch(line)) and not line.startswith("#"):
            entries[said["name"]] = Entry(Kind(**said.groupdict()), number)
    return sections


# ------------------------------------------------------------------------------------------------------------ the names


def spec_path(file: Path) -> str:
    """The spec's path from its project's folder on, with forward slashes: the same wherever the program is started. A
    shipped spec is in `specs/`; a file in no project is named from the working folder on, or is its name alone."""
    shipped = resources.shipped_specs()
    if file.is_relative_to(shipped):
        return f"specs/{file.relative_to(shipped).as_posix()}"
    return file.relative_to(root_of(file)).as_posix()


def root_of(file: Path) -> Path:
    """The folder from which a spec's path counts."""
    search = search_path(file.parent, None, None)
    in_project = search.project != file.parent or (search.project / "pyproject.toml").is_file()
    return search.project if in_project or not file.is_relative_to(search.cwd) else search.cwd


def name_for(spec: str) -> str:
    """The path of a spec's golden file below the folder of golden files."""
    return spec.removesuffix(SUFFIX) + GOLDEN


def orphans(folder: Path, roots: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The golden files in the folder whose specs are not there, each with its spec's path. `roots` are the folders from
    which paths of specs count."""
    tops = [*dict.fromkeys(roots)]
    for file in sorted(_walk(folder)):
        spec = file.relative_to(folder).as_posix().removesuffix(GOLDEN) + SUFFIX
        shipped = resources.shipped_specs() / spec.removeprefix("specs/")
        places = [top / spec for top in tops] + ([shipped] if spec.startswith("specs/") else [])
        if not any(place.is_file() for place in places):
            yield file, spec


def _walk(folder: Path) -> Iterator[Path]:
    for root, _, files in os.walk(folder):
        yield from (Path(root, name) for name in files if name.endswith(GOLDEN))
