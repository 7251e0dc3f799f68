"""The tensors of one or several safetensors files, read from a memory map.

The format (huggingface/safetensors, README): a little-endian uint64 with the header's length, a JSON header
`{name: {dtype, shape, data_offsets}}`, then the data. It is read here rather than through the library so that bfloat16
works on every supported version of it and a damaged file can be told apart from a foreign one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from sharddsl.findings import UsageError
from sharddsl.llama.weights.store import Array, mapped

_DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype(ml_dtypes.bfloat16)}
_LONGEST_HEADER = 100_000_000
"""The format's own limit, in bytes."""


@dataclass(frozen=True, slots=True)
class _Entry:
    file: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


class SafetensorsStore:
    """The tensors of the given files. Making one checks that all of them can be read; it reads none."""

    def __init__(self, path: Path, files: tuple[Path, ...]) -> None:
        self.path = path
        self._data = {file: mapped(file) for file in files}
        self._entries: dict[str, _Entry] = {}
        for file, data in self._data.items():
            for name, entry in _entries(file, data).items():
                if name in self._entries:
                    other = self._entries[name].file.name
                    raise UsageError(f"weights {path}: tensor {name!r} lies both in {other} and in {file.name}")
                self._entries[name] = entry

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: entry.shape for name, entry in self._entries.items()}

    @property
    def stored_bytes(self) -> Mapping[str, int]:
        return {name: entry.end - entry.start for name, entry in self._entries.items()}

    def file_of(self, name: str) -> Path | None:
        """The file that holds a tensor, None if none does."""
        entry = self._entries.get(name)
        return entry.file if entry else None

    def read(self, name: str, rows: slice, columns: slice | None) -> Array:
        """A view of the file in the file's dtype, or a copy where the data is not aligned."""
        entry = self._entries[name]
        raw = self._data[entry.file][entry.start : entry.end]
        table: Array = raw.view(entry.dtype).reshape(entry.shape)
        return table[rows] if columns is None else table[rows, columns]


def _entries(file: Path, data: Array) -> dict[str, _Entry]:
    length = int.from_bytes(data[:8].tobytes(), "little") if data.size >= 8 else -1
    if not 2 <= length <= _LONGEST_HEADER or bytes(data[8:9]) != b"{":
        raise UsageError(
            f"weights file {file} is not a safetensors file: its header is not JSON\n"
            "  remedy: give the path of a .gguf or .safetensors file (a Git LFS pointer is not one)"
        )
    if 8 + length > data.size:
        raise _cut_short(file, f"its header ends at byte {8 + length:,} of {data.size:,}")
    try:
        header = json.loads(data[8 : 8 + length].tobytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"weights file {file} is not a safetensors file: its header is not JSON ({error})") from error
    header.pop("__metadata__", None)
    return {name: _entry(file, name, fields, 8 + length, data.size) for name, fields in header.items()}


def _entry(file: Path, name: str, fields: Any, base: int, size: int) -> _Entry:
    try:
        dtype_name, shape = str(fields["dtype"]), _integers(fields["shape"])
        start, end = (base + offset for offset in _integers(fields["data_offsets"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"weights file {file}: the header's entry for tensor {name!r} is malformed") from error
    if dtype_name not in _DTYPES:
        known = ", ".join(_DTYPES)
        raise UsageError(
            f"weights file {file}: tensor {name!r} has dtype {dtype_name}; {known} can be read\n"
            "  remedy: use the unquantized checkpoint"
        )
    dtype = _DTYPES[dtype_name]
    count = 1
    for extent in shape:
        count *= extent
    if start < base or min(shape, default=1) < 0 or end - start != count * dtype.itemsize:
        raise UsageError(f"weights file {file}: the header's entry for tensor {name!r} is malformed")
    if end > size:
        raise _cut_short(file, f"tensor {name!r} ends at byte {end:,} of {size:,}")
    return _Entry(file, dtype, shape, start, end)


def _integers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(isinstance(value, int) for value in values):
        raise TypeError("not a list of integers")
    return tuple(values)


def _cut_short(file: Path, why: str) -> UsageError:
    return UsageError(f"weights file {file} is cut short: {why}\n  remedy: download or copy it again")
