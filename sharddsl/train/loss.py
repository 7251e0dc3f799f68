"""The next-token loss."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from sharddsl.train.data.batch import IGNORE


def token_losses(logits: Array, targets: Array) -> Array:
    """Each token's cross-entropy in nats, float32 (batch, seq), 0 where the target is `IGNORE`.

    `logits` is (batch, seq, vocab), `targets` (batch, seq) int32.
    """
    logits = logits.astype(jnp.float32)
    # The target's logit by comparison and sum, not by a lookup: over a split vocabulary each device sums its own part,
    # where a lookup would have the logits gathered.
    ids = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    of_target = jnp.sum(jnp.where(ids == targets[..., None], logits, 0.0), axis=-1)
    losses = jax.nn.logsumexp(logits, axis=-1) - of_target
    return jnp.where(targets == IGNORE, 0.0, losses)


def counted(targets: Array) -> Array:
    """How many targets count, int32."""
    return jnp.sum(targets != IGNORE, dtype=jnp.int32)
