"""Grouped-query attention (arXiv 2305.13245) by `jax.nn.dot_product_attention`: masks, and which kernel computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from sharddsl.models.config import LlamaConfig, Run
from sharddsl.partition import Partition

Kernel = Literal["xla", "cudnn"]


@dataclass(frozen=True)
class Mask:
    """Which keys each query sees.

    `causal`: those not after it. `allowed` is boolean, (batch, 1, queries, keys), or None for all. `cached`: the keys
    are those in the cache rather than the queries' own.
    """

    allowed: Array | None = None
    causal: bool = True
    cached: bool = False


def over_segments(segments: Array | None) -> Mask:
    """Tokens see those before them, and where `segments` (batch, seq) is given only those of their own segment.

    Padding is a segment like any other, so that every query sees at least itself: a row of a softmax with nothing in
    it is a NaN in some kernels, and would spread through the values.
    """
    if segments is None:
        return Mask()
    return Mask(allowed=(segments[:, None, :, None] == segments[:, None, None, :]))


def over_cache(starts: Array, index: Array, length: int) -> Mask:
    """One query per row, in slot `index` of a cache of `length` slots. Row b's tokens begin in slot `starts[b]`."""
    slots = jnp.arange(length)
    seen = (slots[None, :] >= starts[:, None]) & (slots <= index)[None, :]
    return Mask(allowed=seen[:, None, None, :], causal=False, cached=True)


def attend(q: Array, k: Array, v: Array, mask: Mask, kernel: Kernel) -> Array:
    """Softmax attention, scaled by 1/sqrt(head_dim), the softmax in float32.

    q is (batch, queries, heads, head_dim); k and v are (batch, keys, kv_heads, head_dim), each shared by
    heads / kv_heads neighbouring query heads. Returns q's shape and dtype.
    """
    context: Array = jax.nn.dot_product_attention(
        q, k, v, mask=mask.allowed, is_causal=mask.causal, implementation=kernel
    )
    return context


def choose_kernel(partition: Partition, config: LlamaConfig, run: Run) -> Kernel:
    """cuDNN's flash attention where it can be used, XLA's attention elsewhere.

    cuDNN wants an NVIDIA GPU, 16-bit inputs and a head_dim that is a multiple of 8 up to 128; partitioned, it wants q,
    k and v split alike, and only over batch and heads. Decoding reads the cache once for one query, which XLA does as
    well.
    """
    nvidia = partition.platform == "gpu" and "nvidia" in partition.mesh.devices.flat[0].device_kind.lower()
    fits = run.compute_dtype == "bfloat16" and config.head_dim % 8 == 0 and config.head_dim <= 128
    return "cudnn" if nvidia and fits and run.mode != "decode" and _split_alike(partition) else "xla"


def _split_alike(partition: Partition) -> bool:
    q, k, v = (partition.layout[f"act.attn.{name}"].axes for name in ("q", "k", "v"))
    return q is not None and q == k == v and q[1] == () and q[3] == ()
