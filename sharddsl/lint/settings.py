"""What a project wants of the linter: `[tool.sharddsl.lint]` of the nearest `pyproject.toml`, and the command line.

The nearest file upward from a spec that has the table wins, and nothing is taken from those above it but by `extend`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError

from sharddsl.findings import NAMES, Severity, UsageError
from sharddsl.lint.codes import code_of, codes_of
from sharddsl.lint.subject import LARGE
from sharddsl.spec.expressions import UNITS
from sharddsl.spec.mesh import LARGEST
from sharddsl.spec.model import Model

FILE = "pyproject.toml"
TABLE = "tool.sharddsl.lint"
ALWAYS = frozenset({"SHD001"})
"""Codes that cannot be left out: of a text that is not understood nothing else can be said."""

Size = Annotated[int, Field(ge=1, le=LARGEST)]


class Table(Model):
    """The table as it is written; keys with a hyphen."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    extend: str | None = None
    """A TOML file with such a table, relative to this one: what is not said here is taken from there."""
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    severity: dict[str, Severity] = Field(default_factory=dict)
    per_file_ignores: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    large: str | Size | None = None
    """From how many bytes on a param is large (SHD304): a number, or `64 MiB`."""
    model: str | None = None
    """The model of specs without `check` lines; `run`, `mesh`, `batch`, `seq` and `devices` go with it."""
    run: str | None = None
    mesh: dict[str, Annotated[int, Field(ge=-1, le=LARGEST)]] = Field(default_factory=dict)
    batch: Size | None = None
    seq: Size | None = None
    devices: Size | None = None
    fail_on: Severity | None = None


@dataclass(frozen=True)
class Settings:
    """The settings of one spec. `overrides` are those of the command line's form that name the model and mesh of a
    spec without checks; `ignored_in` has a folder, a glob below it and what is left out in files that match."""

    select: frozenset[str] = frozenset(NAMES)
    ignore: frozenset[str] = frozenset()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    ignored_in: tuple[tuple[Path, str, frozenset[str]], ...] = ()
    large: int = LARGE
    overrides: tuple[str, ...] = ()
    devices: int | None = None
    fail_on: Severity = "error"

    def codes(self, file: Path | None) -> frozenset[str]:
        """The codes that are told of a file; None is a text that lies in no file."""
        left_out = set(self.ignore)
        for folder, glob, codes in self.ignored_in:
            if file is not None and _matches(file, folder, glob):
                left_out |= codes
        return (self.select - left_out) | ALWAYS


def settings_for(folder: Path) -> Settings:
    """The settings of specs in this folder. Raises `UsageError` for a table that is wrong."""
    for above in (folder, *folder.parents):
        table = _table_in(above / FILE)
        if table is not None:
            return _settings(above / FILE, table, ())
    return Settings()


def settings_in(file: Path) -> Settings:
    """The settings in this very file. Raises `UsageError` where it has no table."""
    table = _table_in(file)
    if table is None:
        raise UsageError(f"{file}: there is no such file, or no [{TABLE}] in it")
    return _settings(file, table, ())


def narrowed(
    settings: Settings, select: Sequence[str], ignore: Sequence[str], severity: Mapping[str, Severity]
) -> Settings:
    """The settings as the command line changes them: `--select` replaces the file's, `--ignore` adds to it."""
    return replace(
        settings,
        select=codes_of(select) if select else settings.select,
        ignore=settings.ignore | codes_of(ignore),
        severity={**settings.severity, **severity},
    )


@cache
def _table_in(file: Path) -> Table | None:
    """The table of a TOML file, or None where there is no such file or table."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if b"sharddsl" not in data:
        return None
    import tomllib

    try:
        tree: Any = tomllib.loads(data.decode())
    except ValueError as error:
        raise UsageError(f"{file}: it is not TOML: {error}") from None
    for name in TABLE.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    if tree is None:
        return None
    try:
        return Table.model_validate(tree)
    except ValidationError as error:
        problems = "\n".join(_described(problem) for problem in error.errors(include_url=False))
        raise UsageError(f"{file} [{TABLE}]:\n{problems}") from None


def _described(problem: Any) -> str:
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        from difflib import get_close_matches

        known = [name.replace("_", "-") for name in Table.model_fields]
        near = get_close_matches(key, known, n=1)
        return f"  {key}: unknown key; " + (f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}")
    return f"  {key}: {problem['msg'][0].lower()}{problem['msg'][1:]}, not {problem['input']!r}"


def _settings(file: Path, table: Table, seen: tuple[Path, ...]) -> Settings:
    """What the table says, over what the one says that it extends."""
    if file in seen:
        raise UsageError(f"{file} [{TABLE}]: files extend each other in a circle")
    base = Settings()
    if table.extend is not None:
        target = Path(os.path.normpath(file.parent / Path(table.extend).expanduser()))
        above = _table_in(target)
        if above is None:
            raise UsageError(f"{file} [{TABLE}] extend: there is no file {target}, or no [{TABLE}] in it")
        base = _settings(target, above, (*seen, file))
    try:
        ignored_in = tuple((file.parent, glob, codes_of(words)) for glob, words in table.per_file_ignores.items())
        return Settings(
            select=base.select if table.select is None else codes_of(table.select),
            ignore=base.ignore | codes_of(table.ignore),
            severity={**base.severity, **{code_of(word): grade for word, grade in table.severity.items()}},
            ignored_in=(*base.ignored_in, *ignored_in),
            large=base.large if table.large is None else _bytes(table.large),
            overrides=(*base.overrides, *_overrides(table)),
            devices=base.devices if table.devices is None else table.devices,
            fail_on=table.fail_on or base.fail_on,
        )
    except UsageError as error:
        raise UsageError(f"{file} [{TABLE}]: {error}") from None


def _overrides(table: Table) -> tuple[str, ...]:
    named = {"model": table.model, "run": table.run, "run.batch": table.batch, "run.seq": table.seq}
    sizes = {f"spec.mesh.{axis}": size for axis, size in table.mesh.items()}
    return tuple(f"{key}={value}" for key, value in {**named, **sizes}.items() if value is not None)


def _bytes(text: str | int) -> int:
    if isinstance(text, int):
        return text
    number, _, unit = text.strip().partition(" ")
    if number.isdigit() and unit.strip() in UNITS:
        return int(number) * UNITS[unit.strip()]
    raise UsageError(f'large = "{text}": it is a number of bytes, or a number with a unit: "64 MiB"')


def _matches(file: Path, folder: Path, glob: str) -> bool:
    """Whether the file's path from the folder on matches; a glob without a slash matches a name in any folder."""
    from fnmatch import fnmatchcase

    if not file.is_relative_to(folder):
        return False
    below = file.relative_to(folder).as_posix()
    return fnmatchcase(below, glob) or ("/" not in glob and fnmatchcase(file.name, glob))
