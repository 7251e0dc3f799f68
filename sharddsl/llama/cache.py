"""The KV cache: keys and values of the tokens so far, as arrays that are updated in place when donated.

A scanned model's cache is one stacked array per kind, `{"k": (layers, batch, seq, kv_heads, head_dim), "v": …}`, an
unrolled model's one per layer and kind, `{"layers": {0: {"k": (batch, seq, kv_heads, head_dim), "v": …}, …}}`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from sharddsl.models.config import LlamaConfig, Run

Cache = dict[str, Any]


@dataclass(frozen=True)
class LayerCache:
    """One layer's part of the cache while it runs. `index` is the slot of the first token to write. `layer` is the
    traced position in stacked arrays, or the plain number of the layer whose own the arrays are."""

    k: Array
    v: Array
    index: Array | int
    layer: Array | int

    def name(self, kind: str) -> str:
        """What a layout calls the keys (`k`) or values (`v`)."""
        return f"cache.layers[{self.layer}].{kind}" if isinstance(self.layer, int) else f"cache.{kind}"

    def write(self, k: Array, v: Array) -> LayerCache:
        """With k and v (batch, seq, kv_heads, head_dim) in the slots from `index` on."""
        return replace(self, k=self._write(self.k, k), v=self._write(self.v, v))

    def read(self) -> tuple[Array, Array]:
        """This layer's keys and values: (batch, seq, kv_heads, head_dim)."""
        if isinstance(self.layer, int):
            return self.k, self.v
        k, v = (jax.lax.dynamic_index_in_dim(part, self.layer, 0, keepdims=False) for part in (self.k, self.v))
        return k, v

    def _write(self, all_slots: Array, new: Array) -> Array:
        new = new.astype(all_slots.dtype)
        if isinstance(self.layer, int):
            return jax.lax.dynamic_update_slice(all_slots, new, (0, self.index, 0, 0))
        return jax.lax.dynamic_update_slice(all_slots, new[None], (self.layer, 0, self.index, 0, 0))


def abstract_cache(config: LlamaConfig, run: Run, batch: int, seq: int) -> Cache:
    """The cache's shapes and dtypes, for `batch` rows of `seq` slots."""
    shape = (batch, seq, config.kv_heads, config.head_dim)
    if run.scan:
        return _kv((config.layers, *shape), run)
    return {"layers": {layer: _kv(shape, run) for layer in range(config.layers)}}


def empty_cache(config: LlamaConfig, run: Run, batch: int, seq: int) -> Cache:
    """A cache of zeros."""
    zeros: Cache = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), abstract_cache(config, run, batch, seq))
    return zeros


def cache_names(config: LlamaConfig, run: Run) -> Cache:
    """The name that a layout has for each array of the cache, in a tree of the same structure."""
    if run.scan:
        return {kind: f"cache.{kind}" for kind in ("k", "v")}
    return {"layers": {n: {kind: f"cache.layers[{n}].{kind}" for kind in ("k", "v")} for n in range(config.layers)}}


def _kv(shape: tuple[int, ...], run: Run) -> dict[str, jax.ShapeDtypeStruct]:
    return {name: jax.ShapeDtypeStruct(shape, jnp.dtype(run.compute_dtype)) for name in ("k", "v")}
