"""Batches out of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer import Tokenizer
from sharddsl.train.data.batch import Batch
from sharddsl.train.data.config import Sources
from sharddsl.train.data.files import DataFile, find
from sharddsl.train.data.packing import Piece, piece, shuffled_rows, spans
from sharddsl.train.data.texts import documents
from sharddsl.train.data.tokens import open_tokens, starts


def batches(sources: Sources, tokenizer: Tokenizer, *, batch: int, seq: int, seed: int, vocab: int) -> Iterator[Batch]:
    """Batches of `sources` without end: numpy int32, each array (batch, seq), the same ones for the same arguments.

    The work is done here, not at the first batch: texts are encoded and kept (4 bytes a token), token files are read
    through once. So whatever is wrong with a file is told by a `UsageError` before a model is compiled; an iterator
    raises one only for a token file that changes or vanishes during the run. `vocab` is the model's.
    """
    files = find(sources)
    pieces = PiecesOf([_part(file, sources, tokenizer, seq, vocab) for file in files], seq)
    if len(pieces) == 0:
        raise UsageError(
            f"the data holds no document of two tokens, so there is nothing to predict: {', '.join(sources.files)}"
        )
    return shuffled_rows(pieces, batch=batch, seq=seq, seed=seed)


class _Tokens(Protocol):
    def read(self, start: int, stop: int, /) -> NDArray[np.int32]: ...


@dataclass(frozen=True, slots=True)
class _Kept:
    ids: NDArray[np.int32]

    def read(self, start: int, stop: int, /) -> NDArray[np.int32]:
        return self.ids[start:stop]


@dataclass(frozen=True, slots=True)
class Part:
    """The tokens of one file, and the spans of them that are pieces."""

    tokens: _Tokens
    spans: NDArray[np.int64]


class PiecesOf:
    """The pieces of all parts, one part after the other, read when they are asked for."""

    def __init__(self, parts: Sequence[Part], seq: int) -> None:
        self._parts = tuple(parts)
        self._ends = np.cumsum([len(part.spans) for part in parts])
        self._seq = seq

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Piece:
        at = int(np.searchsorted(self._ends, index, side="right"))
        part = self._parts[at]
        start, stop = part.spans[index - int(self._ends[at])]  # counted from the part's end
        return piece(part.tokens.read(int(start), int(stop)), self._seq)


def _part(file: DataFile, sources: Sources, tokenizer: Tokenizer, seq: int, vocab: int) -> Part:
    if file.format == "tokens":
        tokens = open_tokens(file, sources.dtype, vocab)
        return Part(tokens, spans(starts(tokens, tokenizer), tokens.size, seq))
    found = list(documents(file, sources.key, tokenizer, vocab))
    lengths = np.array([len(ids) for ids in found], np.int64)
    kept = _Kept(np.concatenate([np.empty(0, np.int32), *found]))
    return Part(kept, spans(np.cumsum(lengths) - lengths, len(kept.ids), seq))
