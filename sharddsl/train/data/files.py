"""The files of `Sources`: which they are, what each holds, and how they are read. No numpy here."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from sharddsl.findings import UsageError
from sharddsl.train.data.config import Format, Sources

_FORMATS: dict[str, Format] = {
    ".txt": "text",
    ".md": "text",
    ".jsonl": "jsonl",
    ".npy": "tokens",
    ".bin": "tokens",
}
"""What `auto` takes a file for, by its suffix."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that was there when it was looked for. `name` is its path as the user wrote it, for messages."""

    name: str
    path: Path
    format: Format

    def refusal(self, why: str, remedy: str | None = None) -> UsageError:
        """The error that the file cannot be used."""
        return UsageError(f"data file {self.name}: {why}" + (f"\n  remedy: {remedy}" if remedy else ""))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around whatever reads the file: what the system refuses is a `UsageError`."""
        try:
            yield
        except FileNotFoundError:
            raise self.refusal("it is not there any more") from None
        except OSError as error:
            raise self.refusal(f"it cannot be read ({error.strerror or error})") from error


def find(sources: Sources) -> tuple[DataFile, ...]:
    """The files, in order. A file's content is not looked at: this is for before anything slow begins.

    Raises `UsageError` if there are none, and for one that is missing, no regular file, empty, or of unknown format.
    """
    if not sources.files:
        raise UsageError("there is no data to train on\n  remedy: data=demo, or a file: data=./my.txt")
    return tuple(_find(name, sources) for name in sources.files)


def is_path(choice: str) -> bool:
    """Whether what stands after `data=` is a file (`./x.txt`, `x.jsonl`), not the name of a choice."""
    return "/" in choice or Path(choice).suffix in _FORMATS


def _find(name: str, sources: Sources) -> DataFile:
    path = Path(name).expanduser()
    file = DataFile(name, path, _format(name, path) if sources.format == "auto" else sources.format)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise file.refusal("there is no such file") from None
    except OSError as error:
        raise file.refusal(f"it cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise file.refusal("its name has a null character, which no path has") from error
    if stat.S_ISDIR(status.st_mode):
        raise file.refusal("it is a folder", f"name the files in it: 'data.files=[{name}/a.txt,{name}/b.txt]'")
    if not stat.S_ISREG(status.st_mode):
        raise file.refusal("it is not a regular file, which is read more than once", "copy its content to a file")
    if status.st_size == 0:
        raise file.refusal("it is empty")
    return file


def _format(name: str, path: Path) -> Format:
    known = _FORMATS.get(path.suffix)
    if known is None:
        raise UsageError(
            f"data file {name}: what it holds cannot be told from its suffix ({', '.join(_FORMATS)} are known)\n"
            f"  remedy: data.format=…, one of {', '.join(get_args(Format))}"
        )
    return known
