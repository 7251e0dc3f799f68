"""Token files: ids that somebody made before, read from the disk as they are needed.

A `.npy` file holds a one-dimensional array of any integer dtype; any other file holds raw little-endian integers of a
dtype that the configuration gives. Documents end after the tokenizer's end token and begin at its begin token; without
either the whole file is one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharddsl.llama.tokenizer import Tokenizer
from sharddsl.train.data.files import DataFile

_CHUNK = 1 << 22
"""Ids that are looked at at once."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """`size` ids of `dtype` from byte `offset` of a file on, all of them below `vocab`."""

    file: DataFile
    dtype: np.dtype[Any]
    offset: int
    size: int
    vocab: int

    def read(self, start: int, stop: int) -> NDArray[np.int32]:
        """The ids from `start` to `stop`, exclusive. The file is opened anew, so that no number of them is too many.

        Raises `UsageError` for a file that is gone, that has become shorter, or that has an id outside the vocab.
        """
        with self.file.reading(), open(self.file.path, "rb") as opened:
            opened.seek(self.offset + start * self.dtype.itemsize)
            content = opened.read((stop - start) * self.dtype.itemsize)
        if len(content) < (stop - start) * self.dtype.itemsize:
            raise self.file.refusal("it has become shorter since the run began")
        ids = np.frombuffer(content, self.dtype)
        wrong = np.flatnonzero((ids < 0) | (ids >= self.vocab))
        if wrong.size:
            raise self.file.refusal(
                f"token {start + int(wrong[0]):,} has id {ids[wrong[0]]}, and the model's vocab is {self.vocab}",
                "use the model whose tokenizer made the file"
                + ("" if self.offset else "; for ids of another size data.dtype=uint16, uint32 or int32"),
            )
        return ids.astype(np.int32)


def open_tokens(file: DataFile, dtype: str, vocab: int) -> TokenFile:
    """The ids in the file, none of them read. Raises `UsageError` for a size or a header that does not fit."""
    if file.path.suffix == ".npy":
        return _numpy_file(file, vocab)
    raw = np.dtype(dtype).newbyteorder("<")
    with file.reading():
        size = file.path.stat().st_size
    if size % raw.itemsize:
        raise file.refusal(
            f"its {size:,} bytes are no whole number of {dtype}, {raw.itemsize} bytes each",
            "data.dtype=uint16, uint32 or int32",
        )
    return TokenFile(file, raw, 0, size // raw.itemsize, vocab)


def starts(tokens: TokenFile, tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Where each document begins, the first at 0. Reads the whole file, and so finds every id outside the vocab."""
    return np.unique(np.concatenate([np.zeros(1, np.int64), *_starts(tokens, tokenizer)]))


def _starts(tokens: TokenFile, tokenizer: Tokenizer) -> Iterator[NDArray[np.int64]]:
    for at in range(0, tokens.size, _CHUNK):
        ids = tokens.read(at, min(at + _CHUNK, tokens.size))
        if tokenizer.begin is not None:
            yield at + np.flatnonzero(ids == tokenizer.begin)
        if tokenizer.end not in (None, tokenizer.begin):  # a token that does both stands before its document
            after = at + 1 + np.flatnonzero(ids == tokenizer.end)
            yield after[after < tokens.size]


def _numpy_file(file: DataFile, vocab: int) -> TokenFile:
    with file.reading(), open(file.path, "rb") as opened:
        try:
            shape, dtype = _header(opened)
        except OSError:
            raise
        except Exception as error:  # numpy reads the header as Python, and lets through what comes of that
            raise file.refusal(f"it is not a .npy file ({str(error).partition(chr(10))[0]})") from error
        offset = opened.tell()
        size = file.path.stat().st_size - offset
    if dtype.kind not in "iu" or len(shape) != 1:
        raise file.refusal(
            f"it holds {dtype} of shape {shape}; token ids are one dimension of integers",
            "flatten the array and give it an integer dtype: numpy.save(path, ids.reshape(-1).astype('uint32'))",
        )
    if shape[0] <= 0:
        raise file.refusal("it holds no tokens")
    if size < shape[0] * dtype.itemsize:
        raise file.refusal(f"it is cut off: its header tells of {shape[0]:,} tokens, and there are {size:,} bytes")
    return TokenFile(file, dtype, offset, shape[0], vocab)


def _header(opened: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype; for what is no such file, whatever numpy raises. Nothing is unpickled."""
    version = np.lib.format.read_magic(opened)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version[0]}.{version[1]} of the format")
    shape, _, dtype = readers[version](opened)
    return shape, dtype
