"""The header of a GGUF file: its metadata, and where its tensors lie.

Written from the published format (ggml, docs/gguf.md, version 3). The `gguf` package has a reader of its own; it makes
an array object for every element of a vocabulary, which takes seconds, and does not notice a file that ends early.
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from sharddsl.findings import UsageError
from sharddsl.llama.weights.store import file_size

_T = TypeVar("_T")
Scalar = int | float | bool | str
Value = Scalar | list[Scalar]

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_FLOAT32, _STRING, _ARRAY = 6, 8, 9
_MOST_DIMS = 4
"""ggml's own limit (GGML_MAX_DIMS)."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file. `shape` has the outermost dim first (the file has it last); `offset` counts from the
    file's first byte; `type` is the number of a ggml type."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int


@dataclass(frozen=True, slots=True)
class Header:
    """Everything of a GGUF file but its data."""

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorInfo]


class _Cursor:
    """Reads on from a position, and says so when the file ends too early."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data = data
        self.path = path
        self.at = 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise truncated(self.path, f"its header needs byte {end:,} of {len(self.data):,}")
        self.at, start = end, self.at
        return self.data[start:end]

    def number(self, form: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(value)

    def string(self) -> str:
        return self.take(self.number("<Q")).decode("utf-8", "strict")

    def value(self) -> Value:
        kind = self.number("<I")
        if kind != _ARRAY:
            return self.scalar(kind)
        kind, count = self.number("<I"), self.number("<Q")
        if kind == _ARRAY:
            raise malformed(self.path, "an array of arrays in its metadata")
        if kind == _STRING:
            return [self.string() for _ in range(count)]
        form = np.dtype(_form(kind, self.path))
        numbers: list[Scalar] = np.frombuffer(self.take(count * form.itemsize), form).tolist()
        return numbers

    def scalar(self, kind: int) -> Scalar:
        if kind == _STRING:
            return self.string()
        form = _form(kind, self.path)
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        # the shortest decimal that is this float32: 1e-05, not 9.999999747378752e-06
        number: Scalar = float(str(np.float32(value))) if kind == _FLOAT32 else value
        return number

    def tensor(self) -> TensorInfo:
        name, rank = self.string(), self.number("<I")
        if not 1 <= rank <= _MOST_DIMS:
            raise malformed(self.path, f"tensor {name!r} has {rank} dims")
        shape = tuple(self.number("<Q") for _ in range(rank))[::-1]
        return TensorInfo(name, shape, self.number("<I"), self.number("<Q"))


def _form(kind: int, path: Path) -> str:
    if kind not in _SCALARS:
        raise malformed(path, f"a metadata value of unknown type {kind}")
    return _SCALARS[kind]


def truncated(path: Path, why: str) -> UsageError:
    """The error for a file that ends too early."""
    return UsageError(f"weights file {path} is cut short: {why}\n  remedy: download or copy it again")


def malformed(path: Path, why: str) -> UsageError:
    """The error for a file that is not what its first bytes promise."""
    return UsageError(f"weights file {path} is not a valid GGUF file: {why}\n  remedy: download or convert it again")


def read_header(path: Path) -> Header:
    """Parses a GGUF file's header; the data is not touched. UsageError for anything but a whole GGUF header."""
    if file_size(path) < len(MAGIC):
        raise truncated(path, "it has no header")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data, path)
        if cursor.take(4) != MAGIC:
            raise malformed(path, "it does not begin with 'GGUF'")
        _check_version(cursor)
        tensor_count, value_count = cursor.number("<Q"), cursor.number("<Q")
        try:
            metadata = _unique(path, [(cursor.string(), cursor.value()) for _ in range(value_count)])
            infos = [cursor.tensor() for _ in range(tensor_count)]
        except UnicodeDecodeError as error:
            raise malformed(path, "a name or text in its header is not UTF-8") from error
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise malformed(path, f"general.alignment is {alignment!r}, not a power of two")
        start = -(-cursor.at // alignment) * alignment
        placed = [TensorInfo(info.name, info.shape, info.type, start + info.offset) for info in infos]
        return Header(path, metadata, _unique(path, [(info.name, info) for info in placed]))


def _check_version(cursor: _Cursor) -> None:
    version = cursor.number("<I")
    if version & 0xFFFF == 0:
        raise UsageError(f"weights file {cursor.path} is a big-endian GGUF file\n  remedy: convert it to little-endian")
    if version not in _VERSIONS:
        known = " and ".join(map(str, _VERSIONS))
        raise UsageError(f"weights file {cursor.path} has GGUF version {version}; versions {known} can be read")


def _unique(path: Path, pairs: list[tuple[str, _T]]) -> dict[str, _T]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise malformed(path, f"{twice!r} stands in its header twice")
    return result
