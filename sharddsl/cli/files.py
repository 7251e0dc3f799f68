"""The specs that a command line names: files, folders, names on the search path, stdin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sharddsl.findings import UsageError
from sharddsl.search import SUFFIX, is_name

STDIN = "-"
_OVERRIDE = re.compile(r"[A-Za-z_][\w.-]*=.*", re.DOTALL)


def is_override(word: str) -> bool:
    """Whether a word of the command line is an override (`model=llama3_8b`) and names no spec."""
    return _OVERRIDE.fullmatch(word) is not None


def specs(command: str, places: Sequence[str]) -> Iterator[str | Path]:
    """The specs that are named, each once: a `Path` for a file, text for a name or stdin. Folders are searched."""
    told: set[str | Path] = set()
    for place in places:
        for ref in _found(command, place):
            if ref not in told:
                told.add(ref)
                yield ref


def _found(command: str, place: str) -> Iterator[str | Path]:
    path = Path(place)
    if place == STDIN:
        yield place
    elif path.is_dir():
        files = sorted(walk(path))
        if not files:
            raise UsageError(f"{command}: there is no *{SUFFIX} file in {place}")
        yield from files
    elif is_name(place) and path.suffix != SUFFIX:
        yield place
    else:
        yield path


def walk(folder: Path) -> Iterator[Path]:
    """The specs in a folder and below it, but for what is hidden."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(root, name) for name in files if name.endswith(SUFFIX) and not name.startswith("."))
