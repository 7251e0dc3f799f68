"""Documents cut into pieces that fit a row, and pieces packed into rows.

A piece of a document that goes on has `seq` tokens, and its last target is the next piece's first token: every token of
a document but the first is a target exactly once an epoch. What would be a piece of one token, with nothing to predict,
is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sharddsl.train.data.batch import IGNORE, Batch

_OPEN_ROWS = 32
"""Rows that are filled at the same time."""

Piece = Mapping[str, NDArray[np.int32]]
"""`tokens` and `targets`, equally long and at most `seq`."""


class Pieces(Protocol):
    """Pieces in any order."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Piece: ...


def spans(starts: NDArray[np.int64], size: int, seq: int) -> NDArray[np.int64]:
    """(pieces, 2): from where to where (exclusive) each piece's tokens are read, at most `seq + 1` of them.

    `starts` are the positions of the documents in `size` tokens, ascending from 0.
    """
    ends = np.append(starts, size)[1:]
    pieces = np.maximum(ends - starts - 1 + seq - 1, 0) // seq
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = np.repeat(starts, pieces) + (np.arange(pieces.sum()) - first) * seq
    return np.stack([begin, np.minimum(begin + seq + 1, np.repeat(ends, pieces))], axis=1)


def piece(ids: NDArray[np.int32], seq: int) -> Piece:
    """What is read of a span as a piece: of `seq + 1` ids the last one is a target only."""
    if len(ids) > seq:
        return {"tokens": ids[:-1], "targets": ids[1:]}
    return {"tokens": ids, "targets": np.append(ids[1:], np.int32(IGNORE))}


def shuffled_rows(pieces: Pieces, *, batch: int, seq: int, seed: int) -> Iterator[Batch]:
    """Batches without end. Each epoch takes every piece once, in an order of its own that `seed` fixes.

    A piece goes into the first row that has room for it among those that are open; if none has, all of them are done.
    So no row is without a target, and the rows are the same ones for every batch size. Data of less than a batch is
    repeated within it.
    """
    from grain import MapDataset, ReadOptions
    from grain.experimental import FirstFitPackIterDataset

    endless = MapDataset.source(pieces).shuffle(seed).repeat()
    # Pieces are read when they are asked for: a thread that reads ahead would outlive an interrupted run.
    read = endless.to_iter_dataset(ReadOptions(num_threads=0, prefetch_buffer_size=0))
    lengths = {"tokens": seq, "targets": seq}
    rows = FirstFitPackIterDataset(read, length_struct=lengths, num_packing_bins=_OPEN_ROWS, shuffle_bins=False)
    for packed in rows.batch(batch):
        segments = packed["tokens_segment_ids"]
        yield Batch(packed["tokens"], np.where(segments == 0, IGNORE, packed["targets"]).astype(np.int32), segments)
