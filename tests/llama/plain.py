"""LLaMA's forward pass in numpy, float64, one sequence, no cache: an oracle for weights, short enough to read.

It takes params by path and layer, (input dims, output dims), and knows nothing of files, meshes or jit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sharddsl.models.config import LlamaConfig

Array = np.ndarray[Any, Any]
Params = Callable[[str, int], Array]
"""A param's array by its path and layer (0 outside the layers)."""


def logits(params: Params, config: LlamaConfig, ids: Sequence[int]) -> Array:
    """(tokens, vocab) float64."""
    x = params("embed.w", 0).astype(np.float64)[list(ids)]
    angles = np.outer(np.arange(len(ids)), frequencies(config))
    for layer in range(config.layers):

        def w(name: str, layer: int = layer) -> Array:
            return params(f"layers.{name}", layer).astype(np.float64)

        y = _normed(x, w("attn_norm.scale"), config.norm_eps)
        q, k, v = (np.einsum("te,ehd->htd", y, w(f"attn.{name}")) for name in ("wq", "wk", "wv"))
        k, v = (np.repeat(part, config.heads // config.kv_heads, axis=0) for part in (k, v))
        scores = np.einsum("hqd,hkd->hqk", _turned(q, angles), _turned(k, angles)) / math.sqrt(config.head_dim)
        scores = np.where(np.tri(len(ids), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        x = x + np.einsum("hqk,hkd,hde->qe", weights, v, w("attn.wo"), optimize=True)
        y = _normed(x, w("mlp_norm.scale"), config.norm_eps)
        gate = y @ w("mlp.w_gate")
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w("mlp.w_in"))) @ w("mlp.w_out")
    head = params("embed.w", 0).T if config.tied else params("lm_head.w", 0)
    result: Array = _normed(x, params("norm.scale", 0), config.norm_eps) @ head.astype(np.float64)
    return result


def frequencies(config: LlamaConfig) -> Array:
    """Radians per position of each rotary pair, (head_dim/2,), one at a time as Llama 3.1's reference code has it."""
    result = []
    for i in range(config.head_dim // 2):
        frequency = config.rope_theta ** (-2 * i / config.head_dim)
        if (scaling := config.rope_scaling) is not None:
            turns = scaling.original_seq * frequency / (2 * math.pi)
            if turns < scaling.low_freq_factor:
                frequency /= scaling.factor
            elif turns <= scaling.high_freq_factor:
                kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
                frequency = (1 - kept) * frequency / scaling.factor + kept * frequency
        result.append(frequency)
    return np.array(result)


def _normed(x: Array, scale: Array, eps: float) -> Array:
    result: Array = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * scale
    return result


def _turned(x: Array, angles: Array) -> Array:
    """Rotary embedding of (heads, tokens, head_dim): the pairs are half a head apart."""
    first, second = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
