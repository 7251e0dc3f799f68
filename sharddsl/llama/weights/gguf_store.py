"""The tensors of a GGUF file, dequantized a few rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

from sharddsl.findings import UsageError
from sharddsl.llama.weights.gguf_header import Header, TensorInfo, malformed, truncated
from sharddsl.llama.weights.store import Array, mapped

_PLAIN = {gguf.GGMLQuantizationType.F32: "<f4", gguf.GGMLQuantizationType.F16: "<f2"}


class GgufStore:
    """A GGUF file's tensors. Making one checks that all of them can be read; it reads none."""

    def __init__(self, header: Header) -> None:
        self.path: Path = header.path
        self._data = mapped(header.path)
        self._infos = header.tensors
        for info in header.tensors.values():
            _check(info, self.path, self._data.size)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: info.shape for name, info in self._infos.items()}

    @property
    def stored_bytes(self) -> Mapping[str, int]:
        return {name: _bytes(info) for name, info in self._infos.items()}

    def read(self, name: str, rows: slice, columns: slice | None) -> Array:
        """Rows (and columns) of one tensor as float32, or as float16 where the file has that."""
        info = self._infos[name]
        if columns is None:  # a vector is a matrix of one row
            return self._matrix(info, slice(0, 1), rows).reshape(-1)
        return self._matrix(info, rows, columns)

    def _matrix(self, info: TensorInfo, rows: slice, columns: slice) -> Array:
        kind = gguf.GGMLQuantizationType(info.type)
        if kind not in _PLAIN:
            return self._dequantized(info, kind, rows, columns)
        stored: Array = self._data[info.offset : info.offset + _bytes(info)].view(_PLAIN[kind])
        part: Array = stored.reshape(-1, info.shape[-1])[rows, columns]
        return part

    def _dequantized(self, info: TensorInfo, kind: gguf.GGMLQuantizationType, rows: slice, columns: slice) -> Array:
        """Whole blocks that cover the columns are dequantized, and what is beside them is cut off."""
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks_per_row = info.shape[-1] // block
        first, last = columns.start // block, -(-columns.stop // block)
        table = self._data[info.offset : info.offset + _bytes(info)].reshape(-1, blocks_per_row * block_bytes)
        raw = np.ascontiguousarray(table[rows, first * block_bytes : last * block_bytes])
        # blocks do not depend on each other: as one long row they are done in one go, not sixteen rows at a time
        with np.errstate(all="ignore"):  # a scale that is not finite gives values that are not: the reader's to report
            values: Array = gguf.quants.dequantize(raw.reshape(1, -1), kind).reshape(len(raw), -1)
        return values[:, columns.start - first * block : columns.stop - first * block]


def _check(info: TensorInfo, path: Path, size: int) -> None:
    """UsageError if the tensor's type is unknown or cannot be dequantized, or its data is not all in the file."""
    try:
        kind = gguf.GGMLQuantizationType(info.type)
    except ValueError:
        raise UsageError(
            f"weights file {path}: tensor {info.name!r} has ggml type {info.type}, which this version of the gguf "
            "package does not know\n  remedy: pip install --upgrade gguf, or use a file quantized to Q8_0 or Q4_K"
        ) from None
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    if info.shape[-1] % block or 0 in info.shape:
        raise malformed(path, f"tensor {info.name!r} of shape {info.shape} is not made of whole {kind.name} blocks")
    if kind not in _PLAIN and not _can_dequantize(kind, block_bytes):
        raise UsageError(
            f"weights file {path}: tensor {info.name!r} has type {kind.name}, which cannot be dequantized\n"
            "  remedy: use a file quantized to another type, such as Q8_0 or Q4_K"
        )
    if info.offset + _bytes(info) > size:
        raise truncated(path, f"tensor {info.name!r} ends at byte {info.offset + _bytes(info):,} of {size:,}")


def _can_dequantize(kind: gguf.GGMLQuantizationType, block_bytes: int) -> bool:
    try:
        gguf.quants.dequantize(np.zeros((1, block_bytes), np.uint8), kind)
    except NotImplementedError:
        return False
    return True


def _bytes(info: TensorInfo) -> int:
    block, block_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(info.type)]
    count = 1
    for size in info.shape:
        count *= size
    return int(count // block * block_bytes)
