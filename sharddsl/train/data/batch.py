"""One step's input."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any
"""A numpy array on the host, a jax array once placed, or what a trace has in its place."""

IGNORE = -1
"""A target that does not count towards the loss: on filler, and on the last token of a document."""


class Batch(NamedTuple):
    """Rows of tokens, each of several documents or parts of documents side by side; all int32 of shape (batch, seq).

    `targets` holds the token that follows each one in its document, or `IGNORE`. `segments` numbers the documents of a
    row from 1, in order, and is 0 on filler, where the token is 0: attention stays within a segment, and positions
    count from its start. A layout knows the arrays as `batch.tokens`, `batch.targets` and `batch.segments`.
    """

    tokens: Array
    targets: Array
    segments: Array
