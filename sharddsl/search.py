"""Where specs are looked up by name: the project's `specs/` folder, then the ones that come with the package.

Only what lies in the project or in the shipped folder, links followed, may be extended: a spec file from somewhere else
cannot make the tool read what its author could not point at anyway.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sharddsl import resources
from sharddsl.findings import UsageError

SUFFIX = ".shard"
_LARGEST_FILE = 64 * 2**20
"""Bytes. A larger file is no spec but, most likely, a path to weights."""


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The folders that names are looked up in. `project` and `cwd` are absolute."""

    project: Path
    cwd: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        return self.project / "specs", resources.shipped_specs()

    def of(self, file: Path | None) -> tuple[Path, ...]:
        """The folders for names in `file`: a shipped spec means shipped ones, whatever the project has."""
        shipped = self.folders[-1]
        return (shipped,) if file is not None and _within(file, shipped) else self.folders

    def candidates(self, name: str, file: Path | None = None) -> list[Path]:
        """The files that the name may mean in `file`, first choice first; the file itself is none of them."""
        if not is_name(name):
            return []
        paths = (folder / f"{name}{SUFFIX}" for folder in self.of(file))
        return [path for path in paths if os.path.isfile(path) and not (file is not None and same_file(path, file))]

    def names(self, file: Path | None = None) -> list[str]:
        """Every name that `candidates` would find something for, sorted."""
        return sorted({name for folder in self.of(file) for name in _names_in(folder)})

    def allows(self, path: Path) -> bool:
        """Whether the file lies, links followed, in the project or among the shipped specs."""
        return _within(path, self.project) or _within(path, resources.shipped_specs())

    def shown(self, path: Path) -> str:
        """The path as messages show it: relative where it lies below the working folder."""
        for folder, prefix in ((self.cwd, ""), (resources.shipped_specs(), "<shipped>/")):
            if path.is_relative_to(folder):
                return prefix + path.relative_to(folder).as_posix()
        return str(path)


def search_path(start: Path | None, project: Path | None, cwd: Path | None) -> SearchPath:
    """The search path of a file in `start` (the working folder if None): its project is the nearest folder upward with
    a `pyproject.toml`, or else `start` itself."""
    here = _working_folder() if cwd is None else absolute(cwd, _working_folder())
    if project is not None:
        return SearchPath(absolute(project, here), here)
    start = start or here
    for folder in (start, *start.parents):
        if os.path.isfile(folder / "pyproject.toml"):
            return SearchPath(folder, here)
    return SearchPath(start, here)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working folder does not exist any more: change to another") from None


def list_specs(project: Path | None = None, cwd: Path | None = None) -> tuple[str, ...]:
    """The names that can be loaded from here: the project's specs and the shipped ones."""
    return tuple(search_path(None, project, cwd).names())


def is_name(ref: str) -> bool:
    """Whether this is a spec's name (`llama/fsdp`), not a path (`./x.shard`, `x.shard`, `/a/b.shard`)."""
    parts = ref.split("/")
    return (
        not ref.endswith(SUFFIX)
        and not any(part in ("", ".", "..", "~") or "\\" in part or not part.isprintable() for part in parts)
        and not os.path.isabs(ref)
    )


def absolute(path: Path, folder: Path) -> Path:
    """The path from `folder` on, without `..`; links are left as they are."""
    return Path(os.path.normpath(folder / path))


def same_file(a: Path, b: Path) -> bool:
    return os.path.realpath(a) == os.path.realpath(b)


def read(path: Path) -> bytes | str:
    """The file's bytes, or, as text, why they cannot be had."""
    try:
        if not path.exists():
            return "it is a link that leads nowhere" if path.is_symlink() else "there is no such file"
        if not path.is_file():
            return "it is a folder" if path.is_dir() else "it is not a regular file"
        if (size := path.stat().st_size) > _LARGEST_FILE:
            return f"it has {size:,} bytes, and a spec at most {_LARGEST_FILE:,}"
        return path.read_bytes()
    except OSError as problem:
        return problem.strerror or str(problem)


def _within(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _names_in(folder: Path) -> list[str]:
    names = []
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(where).relative_to(folder)
        found = (file for file in files if file.endswith(SUFFIX) and os.path.isfile(os.path.join(where, file)))
        names += [(below / file).as_posix().removesuffix(SUFFIX) for file in found]
    return [name for name in names if is_name(name)]
