"""Which second moments Adafactor keeps in factors (arXiv 1804.04235, section 3): of which dims, and of what shape."""

from __future__ import annotations

from collections.abc import Sequence

LEAST = 128
"""Elements: a matrix is worth factors if both of its dims have as many. It is optax's default."""


def factored_dims(shape: Sequence[int]) -> tuple[int, int] | None:
    """The two largest dims of one layer's weight, the largest last; None where they are too small to factor. Of dims
    of one size the later counts as the larger."""
    largest = sorted(range(len(shape)), key=lambda dim: shape[dim])[-2:]
    return (largest[0], largest[1]) if len(largest) == 2 and shape[largest[0]] >= LEAST else None
