"""Weights from a source into a sharded params tree, each shard read by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sharddsl.llama.weights.params import Param, params_of
from sharddsl.llama.weights.source import WeightSource
from sharddsl.llama.weights.store import Array
from sharddsl.models.config import LlamaConfig

Tree = dict[Any, Any]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many bytes are done, and how many there are."""


def load_params(
    source: WeightSource,
    config: LlamaConfig,
    shardings_of: Callable[[Tree], Tree],
    *,
    dtype: str = "float32",
    scan: bool = True,
    progress: Progress | None = None,
) -> Tree:
    """The source's params, as `jax.Array`s in the shardings that `shardings_of` gives them.

    The tree is the nested dict that `sharddsl.llama.forward` takes. With `scan`, what lies in `layers` is stacked along
    a leading dim; without, `layers` is a dict from the layer's number to its params. `shardings_of` maps a tree of
    `jax.ShapeDtypeStruct`s to one of the same structure whose leaves are `jax.sharding.Sharding`s.
    Each shard is read from the file, put on every device that holds it and forgotten, so that no device ever holds
    more than its own part, and the host not more than one shard of one tensor. UsageError if the weights are not those
    of `config`, or damaged.
    """
    source.check(config)
    shardings = shardings_of(_abstract(config, dtype, scan))
    stored = source.store.stored_bytes
    total, done = sum(stored.values()), 0
    params: Tree = {}
    for leaf in _leaves(config, scan):
        if progress:
            progress(f"loading {leaf.param.path}", done, total)
        read = partial(_read, source, config, leaf, jnp.dtype(dtype))
        _put(params, leaf.where, _assemble(leaf.shape(config), _get(shardings, leaf.where), read))
        done += sum(stored[source.name_of(leaf.param, layer)] for layer in leaf.layers)
    if progress:
        progress("loaded the weights", total, total)
    return params


def _abstract(config: LlamaConfig, dtype: str, scan: bool) -> Tree:
    """The params' shapes and dtypes, as `sharddsl.llama.forward` names them; nothing of the model is built."""
    tree: Tree = {}
    for leaf in _leaves(config, scan):
        _put(tree, leaf.where, jax.ShapeDtypeStruct(leaf.shape(config), jnp.dtype(dtype)))
    return tree


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One array of the tree: where it lies there, the param, and the layers that it holds, stacked or the only one."""

    where: tuple[str | int, ...]
    param: Param
    layers: range
    stacked: bool

    def shape(self, config: LlamaConfig) -> tuple[int, ...]:
        shape = self.param.shape(config)
        return (len(self.layers), *shape) if self.stacked else shape


def _leaves(config: LlamaConfig, scan: bool) -> Iterator[_Leaf]:
    for param in params_of(config):
        where: tuple[str | int, ...] = tuple(param.path.split("."))
        if not param.stacked:
            yield _Leaf(where, param, range(1), stacked=False)
        elif scan:
            yield _Leaf(where, param, range(config.layers), stacked=True)
        else:
            for layer in range(config.layers):
                yield _Leaf((where[0], layer, *where[1:]), param, range(layer, layer + 1), stacked=False)


def _assemble(
    shape: tuple[int, ...], sharding: jax.sharding.Sharding, read: Callable[[tuple[slice, ...]], Array]
) -> jax.Array:
    """One array, shard by shard. Devices that hold the same part share one read of it."""
    holders: dict[tuple[tuple[int, int], ...], list[jax.Device]] = defaultdict(list)
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        cut = index if index is not None else (slice(None),) * len(shape)
        bounds = [part.indices(size) for part, size in zip(cut, shape, strict=True)]
        holders[tuple((start, stop) for start, stop, _ in bounds)].append(device)
    shards: list[jax.Array] = []
    for held, devices in holders.items():
        host = read(tuple(slice(start, stop) for start, stop in held))
        places = [jax.sharding.SingleDeviceSharding(device, memory_kind=sharding.memory_kind) for device in devices]
        shards += jax.block_until_ready([jax.device_put(host, place) for place in places])
    return jax.make_array_from_single_device_arrays(shape, sharding, shards)


def _read(source: WeightSource, config: LlamaConfig, leaf: _Leaf, dtype: Any, index: tuple[slice, ...]) -> Array:
    host = np.empty([part.stop - part.start for part in index], dtype)
    if leaf.stacked:
        for place, layer in enumerate(leaf.layers[index[0]]):
            source.read(leaf.param, layer, index[1:], config, host[place])
    else:
        source.read(leaf.param, leaf.layers.start, index, config, host)
    return host


def _put(tree: Tree, where: tuple[str | int, ...], leaf: object) -> None:
    for segment in where[:-1]:
        tree = tree.setdefault(segment, {})
    tree[where[-1]] = leaf


def _get(tree: Any, where: tuple[str | int, ...]) -> Any:
    for segment in where:
        tree = tree[segment]
    return tree
