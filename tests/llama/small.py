"""Small models with weights large enough to matter, made without the code under test."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array

from sharddsl.llama.forward import Params, abstract_params
from sharddsl.models.config import LlamaConfig, RopeScaling, Run

UNTIED = LlamaConfig(
    name="untied", vocab=64, embed=16, layers=3, heads=4, kv_heads=2, head_dim=6, ffn=32, rope_theta=100.0, max_seq=64
)
TIED = UNTIED.model_copy(
    update={
        "name": "tied",
        "tied": True,
        "kv_heads": 4,
        "rope_scaling": RopeScaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_seq=64),
    }
)
F32 = Run(precision="f32")
UNROLLED = Run(precision="f32", scan=False)


def free(x: Array, _name: str) -> Array:
    """No constraint."""
    return x


def random_params(config: LlamaConfig, run: Run = F32, seed: int = 0) -> Params:
    """Numpy's random weights; norm scales are about 1."""
    rng = np.random.default_rng(seed)

    def draw(path: Any, leaf: Any) -> Any:
        centre = 1.0 if path[-1].key == "scale" else 0.0
        return jax.numpy.asarray(rng.normal(centre, 0.3, leaf.shape), leaf.dtype)

    params: Params = jax.tree_util.tree_map_with_path(draw, abstract_params(config, run))
    return params


def unstacked(params: Params, layers: int) -> Params:
    """A scanned model's params as an unrolled one's."""
    return {**params, "layers": {n: jax.tree.map(lambda x, n=n: x[n], params["layers"]) for n in range(layers)}}


def some_tokens(config: LlamaConfig, batch: int, seq: int, seed: int = 1) -> Array:
    return jax.numpy.asarray(np.random.default_rng(seed).integers(0, config.vocab, (batch, seq)), jax.numpy.int32)
