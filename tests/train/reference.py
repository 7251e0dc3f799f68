"""The loss of a LLaMA written once more, a document at a time and without masks, to be differentiated in float64.

It shares no code with the model: documents are cut out of their rows, rotations are complex numbers, attention is a
triangle of scores.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from sharddsl.models.config import LlamaConfig
from sharddsl.train.data.batch import IGNORE, Batch
from tests.llama.reference import frequency


def loss(config: LlamaConfig, params: Any, batch: Batch) -> Array:
    """The mean cross-entropy of the targets that count. `params["layers"]` is a list of layers."""
    total, count = jnp.zeros(()), 0
    for row, wanted, parts in zip(*map(np.asarray, batch), strict=True):
        for document in np.unique(parts):
            here = parts == document
            chances = log_chances(config, params, row[here])
            for position, target in enumerate(wanted[here]):
                if target != IGNORE:
                    total = total - chances[position, target]
                    count += 1
    return total / count


def log_chances(config: LlamaConfig, params: Any, tokens: Any) -> Array:
    x = params["embed"]["w"][tokens]
    for layer in params["layers"]:
        x = x + attention(config, layer["attn"], norm(config, x, layer["attn_norm"]["scale"]))
        weights, normed = layer["mlp"], norm(config, x, layer["mlp_norm"]["scale"])
        gate = normed @ weights["w_gate"]
        x = x + (gate / (1 + jnp.exp(-gate)) * (normed @ weights["w_in"])) @ weights["w_out"]
    x = norm(config, x, params["norm"]["scale"])
    logits = x @ (params["embed"]["w"].T if config.tied else params["lm_head"]["w"])
    chances: Array = logits - jnp.log(jnp.exp(logits).sum(axis=-1, keepdims=True))
    return chances


def norm(config: LlamaConfig, x: Array, scale: Array) -> Array:
    return x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + config.norm_eps) * scale


def attention(config: LlamaConfig, weights: Any, x: Array) -> Array:
    out = jnp.zeros_like(x)
    earlier = np.tri(len(x), dtype=bool)
    for head in range(config.heads):
        shared = head // (config.heads // config.kv_heads)
        q = turn(config, x @ weights["wq"][:, head])
        k = turn(config, x @ weights["wk"][:, shared])
        scores = jnp.where(earlier, jnp.exp(q @ k.T / config.head_dim**0.5), 0)
        out = out + scores / scores.sum(axis=-1, keepdims=True) @ (x @ weights["wv"][:, shared]) @ weights["wo"][head]
    return out


def turn(config: LlamaConfig, x: Array) -> Array:
    """Each pair (j, j + half) as a complex number, times e^(i · position · frequency)."""
    half = config.head_dim // 2
    angles = np.outer(np.arange(len(x)), [frequency(config, pair) for pair in range(half)])
    turned = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angles)
    return jnp.concatenate([turned.real, turned.imag], axis=1)
