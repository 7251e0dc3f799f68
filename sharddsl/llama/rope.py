"""Rotary position embeddings (RoFormer, arXiv 2104.09864), with Llama 3's frequency scaling.

A head's first half holds the real parts and its second half the imaginary ones, as in Hugging Face's checkpoints
(Meta's own interleave them).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from sharddsl.models.config import LlamaConfig, RopeScaling

Frequencies = np.ndarray[Any, np.dtype[np.float64]]
"""Radians per position: (head_dim/2,), float64."""


class Rotation(NamedTuple):
    """The cosine and sine of each position's angles: (batch, seq, 1, head_dim/2), float32."""

    cos: Array
    sin: Array


def inverse_frequencies(config: LlamaConfig) -> Frequencies:
    """Radians per position for each pair of a head's elements: (head_dim/2,), float64."""
    inverse = plain_frequencies(config.rope_theta, config.head_dim)
    return inverse if config.rope_scaling is None else stretch(inverse, config.rope_scaling)


def plain_frequencies(theta: float, head_dim: int) -> Frequencies:
    """Those without scaling (arXiv 2104.09864, section 3.2.2): theta^(-2i/head_dim) for pair i."""
    inverse: Frequencies = theta ** -(np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    return inverse


def stretch(inverse: Frequencies, scaling: RopeScaling) -> Frequencies:
    """Llama 3.1's scaling for contexts longer than it was first trained on (`rope_type: llama3`): waves that turn less
    than `low_freq_factor` times within the original context are stretched by `factor`, those that turn more than
    `high_freq_factor` times are kept, and those between are blended linearly in the number of turns."""
    turns = scaling.original_seq * inverse / (2 * np.pi)
    keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    keep = np.clip(keep, 0.0, 1.0)
    return keep * inverse + (1.0 - keep) * inverse / scaling.factor


def rotation(config: LlamaConfig, positions: Array) -> Rotation:
    """The rotation of each of `positions` (batch, seq)."""
    inverse = jnp.asarray(inverse_frequencies(config), jnp.float32)
    angles = positions.astype(jnp.float32)[:, :, None, None] * inverse
    return Rotation(jnp.cos(angles), jnp.sin(angles))


def rotate(x: Array, by: Rotation) -> Array:
    """Turn each head of x (batch, seq, heads, head_dim). Computed in float32, returned in x's dtype."""
    real, imaginary = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = (real * by.cos - imaginary * by.sin, imaginary * by.cos + real * by.sin)
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)
