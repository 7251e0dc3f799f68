"""Which token comes next."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from sharddsl.findings import UsageError

_COLDEST, _HOTTEST = 1e-6, 1e6
"""Temperatures beyond these turn logits into infinities, or all into the same number."""


@dataclass(frozen=True)
class Sampling:
    """How to choose from the logits. `temperature` 0 is greedy, and the other two say nothing then. `top_k` keeps the
    k most likely tokens, `top_p` (arXiv 1904.09751) then the fewest of them whose probabilities reach p.

    Raises `UsageError` for a value out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if self.temperature != 0 and not _COLDEST <= self.temperature <= _HOTTEST:
            raise UsageError(
                f"temperature={self.temperature}: it is 0 (greedy), or from {_COLDEST:f} to {_HOTTEST:,.0f}"
            )
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top_k={self.top_k}: at least one token must be kept")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(f"top_p={self.top_p}: it is a probability over 0 and up to 1")


GREEDY = Sampling()


def row_keys(key: Array, positions: Array) -> Array:
    """A key per row, (batch,), from the run's key and each row's position (batch,) of the token to come.

    A row's draws depend on the seed, its number and its position: not on the rows beside it, filler rows included, nor
    on how far its prompt was padded, so a seed gives the same text under every layout.
    """
    rows = jnp.arange(positions.shape[0])
    return jax.vmap(lambda row, position: jax.random.fold_in(jax.random.fold_in(key, row), position))(rows, positions)


def sample(logits: Array, keys: Array, how: Sampling) -> Array:
    """A token per row, (batch,) int32, from logits (batch, vocab) float32 and a key per row (`row_keys`). Of equal
    logits, greedy takes the first."""
    if how.temperature == 0:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    return jax.vmap(jax.random.categorical)(keys, likely(logits, how)).astype(jnp.int32)


def likely(logits: Array, how: Sampling) -> Array:
    """The logits over the temperature, with -inf for the tokens that `top_k` and `top_p` leave out. Tokens as likely
    as the last one kept are kept too, so that the order of the vocabulary decides nothing."""
    logits = logits / how.temperature
    if how.top_k is not None and how.top_k < logits.shape[-1]:
        least = jax.lax.top_k(logits, how.top_k)[0][:, -1:]
        logits = jnp.where(logits < least, -jnp.inf, logits)
    if how.top_p is not None and how.top_p < 1:
        ordered = jnp.sort(logits, axis=-1, descending=True)
        chances = jax.nn.softmax(ordered, axis=-1)
        before = jnp.cumsum(chances, axis=-1) - chances
        least = jnp.min(jnp.where(before < how.top_p, ordered, jnp.inf), axis=-1, keepdims=True)
        logits = jnp.where(logits < least, -jnp.inf, logits)
    return logits
