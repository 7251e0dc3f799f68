"""The two versions of each spec that `sharddsl diff` compares: of two paths, or of a revision and the working tree."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sharddsl.cli.files import walk
from sharddsl.cli.revisions import Revision, revision
from sharddsl.findings import UsageError
from sharddsl.search import SUFFIX, is_name, search_path


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a spec: its name or file, and, for one that lies elsewhere than it did, the project that it is
    part of and the folder that stands for the working one."""

    ref: str | Path
    project: Path | None = None
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A spec as it was and as it is; None where it is new, or gone."""

    name: str
    before: Version | None
    after: Version | None


@dataclass(frozen=True, slots=True)
class Versions:
    """What is compared: `before` and `after` say what they are called. `copy` is the folder with a revision's files."""

    before: str
    after: str
    pairs: tuple[Pair, ...]
    copy: Path | None = None


def of_paths(old: str, new: str) -> Versions:
    """Two specs, or two folders whose specs go together by their paths. Raises `UsageError` for one of each."""
    if Path(old).is_dir() != Path(new).is_dir():
        raise UsageError(f"diff: {old if Path(old).is_dir() else new} is a folder, and the other is not")
    if not Path(old).is_dir():
        return Versions(old, new, (Pair(new, _version(old), _version(new)),))
    was, now = _below(Path(old)), _below(Path(new))
    if not was and not now:
        raise UsageError(f"diff: there is no *{SUFFIX} file in {old} or {new}")
    pairs = (
        Pair(
            name,
            Version(Path(old, name)) if name in was else None,
            Version(Path(new, name)) if name in now else None,
        )
        for name in sorted(was | now)
    )
    return Versions(old, new, tuple(pairs))


def _version(place: str) -> Version:
    return Version(place if is_name(place) and not place.endswith(SUFFIX) else Path(place))


def _below(folder: Path) -> set[str]:
    """The paths of the specs in a folder, from there on."""
    return {file.relative_to(folder).as_posix() for file in walk(folder)} if folder.is_dir() else set()


@contextmanager
def of_revision(places: Sequence[str], name: str) -> Iterator[Versions]:
    """The specs in these places as they were at a revision, and as they are."""
    with revision(name, _standing(_meant(places[0])[0])) as held:
        pairs: dict[Path, Pair] = {}
        for place in places:
            for pair_of in _pairs(place, held):
                pairs.setdefault(*pair_of)
        yield Versions(name, "the working tree", tuple(pairs.values()), held.copy)


def _meant(place: str) -> list[Path]:
    """The files and folders that may be meant: a name's file, and where it would be in the project, and a folder that
    is there no more."""
    path = Path(place)
    if path.suffix == SUFFIX or path.is_dir() or not is_name(place):
        return [path]
    search = search_path(None, None, None)
    return [*search.candidates(place)[:1], search.project / "specs" / f"{place}{SUFFIX}", path]


def _standing(path: Path) -> Path:
    """The nearest folder above that is there: the file itself may be gone, and its folder with it."""
    path = Path(os.path.abspath(path))
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _pairs(place: str, held: Revision) -> Iterator[tuple[Path, Pair]]:
    meant = [(path, held.at(Path(os.path.abspath(path)))) for path in _meant(place)]
    path, then = next((both for both in meant if any(map(os.path.lexists, both))), meant[0])
    if not path.is_dir() and not then.is_dir():
        was, now = os.path.lexists(then), os.path.lexists(path)
        if not was and not now:
            raise UsageError(f"diff --against {held.name}: there is no {place}, and there was none")
        yield (
            then,
            _pair(str(path) if place == str(path) else place, path if now else None, then if was else None, held),
        )
        return
    was_below, now_below = _below(then), _below(path)
    if not was_below and not now_below:
        raise UsageError(f"diff --against {held.name}: there is no *{SUFFIX} file in {place}, and there was none")
    for name in sorted(was_below | now_below):
        now_at = path / name if name in now_below else None
        yield then / name, _pair(str(path / name), now_at, then / name if name in was_below else None, held)


def _pair(name: str, now: Path | None, then: Path | None, held: Revision) -> Pair:
    before = (
        None if then is None else Version(then, held.project_of(then) or _todays(then, held), _working_folder(held))
    )
    return Pair(name, before, None if now is None else Version(now))


def _todays(then: Path, held: Revision) -> Path:
    """In the copy, the folder that is the file's project in the working tree: what marks it may be new."""
    folder = held.root / then.parent.relative_to(held.copy)
    project = search_path(folder, None, None).project
    return held.copy / project.relative_to(held.root) if project.is_relative_to(held.root) else held.copy


def _working_folder(held: Revision) -> Path:
    """The folder of the copy that the working one is, so that its files go by the names that they have here."""
    here = Path(os.path.realpath(os.getcwd()))
    return held.copy / here.relative_to(held.root) if here.is_relative_to(held.root) else held.copy
