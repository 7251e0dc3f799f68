"""Tensors in a file, read piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sharddsl.findings import UsageError

Array = np.ndarray[Any, np.dtype[Any]]


class TensorStore(Protocol):
    """A weights file, or several that belong together: named vectors and matrices, each read when asked for."""

    @property
    def path(self) -> Path:
        """What the user named: the file, its index or its folder."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor's shape, outermost dim first."""

    @property
    def stored_bytes(self) -> Mapping[str, int]:
        """Every tensor's size in the file, in bytes."""

    def read(self, name: str, rows: slice, columns: slice | None) -> Array:
        """Rows (and columns, for a matrix) of one tensor, both with start and stop: float32, bfloat16 or float16.

        Reads no other rows. May return a read-only view of the file.
        """


def file_size(path: Path) -> int:
    """A file's size in bytes; UsageError if it is not there or not a file."""
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            raise UsageError(f"weights file {path} {what}\n  remedy: give the path of a .gguf or .safetensors file")
        return path.stat().st_size
    except OSError as error:
        raise UsageError(f"weights file {path} cannot be read: {error.strerror or error}") from error


def mapped(path: Path) -> np.memmap[Any, np.dtype[np.uint8]]:
    """The file's bytes, mapped read-only; UsageError if it is missing, empty or unreadable."""
    if file_size(path) == 0:
        raise UsageError(f"weights file {path} is empty\n  remedy: download or copy it again")
    try:
        return np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        raise UsageError(f"weights file {path} cannot be read: {error.strerror or error}") from error
