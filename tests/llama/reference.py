"""LLaMA in plain numpy, float64, one sequence and one head at a time: slow, and short enough to check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np

from sharddsl.models.config import LlamaConfig

F64 = np.ndarray[Any, np.dtype[np.float64]]


def logits(config: LlamaConfig, params: dict[str, Any], tokens: Sequence[int]) -> F64:
    """(seq, vocab), from params of which `layers` is a dict or list of layers."""
    params = _float64(params)
    x = np.stack([params["embed"]["w"][token] for token in tokens])
    for number in range(config.layers):
        layer = params["layers"][number]
        x = x + attention(config, layer["attn"], norm(config, x, layer["attn_norm"]["scale"]))
        x = x + mlp(layer["mlp"], norm(config, x, layer["mlp_norm"]["scale"]))
    x = norm(config, x, params["norm"]["scale"])
    head: F64 = params["embed"]["w"].T if config.tied else params["lm_head"]["w"]
    return x @ head


def norm(config: LlamaConfig, x: F64, scale: F64) -> F64:
    return np.stack([row / np.sqrt((row**2).mean() + config.norm_eps) * scale for row in x])


def mlp(weights: dict[str, F64], x: F64) -> F64:
    gate = x @ weights["w_gate"]
    hidden: F64 = gate / (1 + np.exp(-gate)) * (x @ weights["w_in"])
    return hidden @ weights["w_out"]


def attention(config: LlamaConfig, weights: dict[str, F64], x: F64) -> F64:
    out = np.zeros_like(x)
    for head in range(config.heads):
        shared = head // (config.heads // config.kv_heads)
        q = turn(config, x @ weights["wq"][:, head])
        k = turn(config, x @ weights["wk"][:, shared])
        v = x @ weights["wv"][:, shared]
        for i in range(len(x)):
            scores = np.array([q[i] @ k[j] for j in range(i + 1)]) / np.sqrt(config.head_dim)
            chances = np.exp(scores - scores.max())
            out[i] += (chances / chances.sum()) @ v[: i + 1] @ weights["wo"][head]
    return out


def turn(config: LlamaConfig, x: F64) -> F64:
    """Each pair (j, j + half) as a complex number, times e^(i · position · frequency)."""
    half = config.head_dim // 2
    angles = np.array([[p * frequency(config, j) for j in range(half)] for p in range(len(x))])
    turned = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=1)


def frequency(config: LlamaConfig, pair: int) -> float:
    """Radians per token, by the published description of Llama 3.1's scaling, in terms of wavelengths."""
    plain: float = config.rope_theta ** (-2 * pair / config.head_dim)
    scaling = config.rope_scaling
    if scaling is None:
        return plain
    wavelength = 2 * pi / plain
    if wavelength < scaling.original_seq / scaling.high_freq_factor:
        return plain
    if wavelength > scaling.original_seq / scaling.low_freq_factor:
        return plain / scaling.factor
    smooth = (scaling.original_seq / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    return (1 - smooth) * plain / scaling.factor + smooth * plain


def _float64(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _float64(value) for key, value in tree.items()}
    return np.asarray(tree, np.float64)
