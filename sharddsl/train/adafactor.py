"""Adafactor (arXiv 1804.04235) from optax's parts, layer by layer: stacked params are updated as unrolled ones are.

Its state holds no first moment. Of the second it has, for a matrix that is large enough, the means over the two largest
dims, `v_row`, which lacks the largest, and `v_col`, which lacks the second; for any other param `v`, of the param's own
shape. A param has either the two or the one.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.tree_util import tree_flatten_with_path, tree_unflatten
from optax import FactoredState

from sharddsl.llama.forward import Params
from sharddsl.models.factored import LEAST, factored_dims
from sharddsl.partition.paths import path_of
from sharddsl.tensors.model import LAYERS

LEAVES = ("v_row", "v_col", "v")
_UNUSED = (1,)
"""The shape that optax gives to what a param does not have. It is not kept here."""


def init(weights: Params) -> dict[str, Params]:
    """The state's trees before the first step."""
    trees: dict[str, Params] = {leaf: {} for leaf in LEAVES}
    for keys, weight, stacked in _leaves(weights):
        shape = weight.shape[1:] if stacked else weight.shape
        for leaf, size in _shapes(shape).items():
            _put(trees[leaf], keys, jnp.zeros((weight.shape[0], *size) if stacked else size, jnp.float32))
    return trees


def update(grads: Params, trees: dict[str, Params], count: Array, weights: Params) -> tuple[Params, dict[str, Params]]:
    """The steps, to be multiplied by the learning rate, and the state's trees after. All is float32. A step is as large
    as the weights are (root mean square), times at most one: the learning rate is relative."""
    after: dict[str, Params] = {leaf: {} for leaf in LEAVES}
    steps = []
    of_grads, structure = tree_flatten_with_path(grads)
    for (keys, weight, stacked), (_, grad) in zip(_leaves(weights), of_grads, strict=True):
        before = {leaf: found for leaf in LEAVES if (found := _get(trees[leaf], keys)) is not None}
        layer = jax.vmap(_layer, in_axes=(0, 0, None, 0)) if stacked else _layer
        step, moments = layer(grad, before, count, weight)
        steps.append(step)
        for leaf, value in moments.items():
            _put(after[leaf], keys, value)
    return tree_unflatten(structure, steps), after


def _layer(grad: Array, before: dict[str, Array], count: Array, weight: Array) -> tuple[Array, dict[str, Array]]:
    """One param of one layer, by optax."""
    rms = optax.scale_by_factored_rms(min_dim_size_to_factor=LEAST)
    none = jnp.zeros(_UNUSED, jnp.float32)
    step, after = rms.update(grad, FactoredState(count, *(before.get(leaf, none) for leaf in LEAVES)), weight)
    step, _ = optax.clip_by_block_rms(1.0).update(step, optax.EmptyState())
    step, _ = optax.scale_by_param_block_rms().update(step, optax.EmptyState(), weight)
    return step, {leaf: getattr(after, leaf) for leaf in before}


def _shapes(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The shape of each leaf that one layer's param has."""
    dims = factored_dims(shape)
    if dims is None:
        return {"v": shape}
    second, largest = dims
    return {"v_row": _without(shape, largest), "v_col": _without(shape, second)}


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], *shape[dim + 1 :])


def _leaves(tree: Params) -> list[tuple[tuple[Any, ...], Array, bool]]:
    """Each leaf's keys, the leaf, and whether its first dim stacks layers."""
    found = []
    for keys, leaf in tree_flatten_with_path(tree)[0]:
        path = path_of(keys)
        found.append((tuple(key.key for key in keys), leaf, path.segments[0] == LAYERS and path.layer is None))
    return found


def _put(tree: dict[Any, Any], keys: tuple[Any, ...], leaf: Array) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = leaf


def _get(tree: dict[Any, Any], keys: tuple[Any, ...]) -> Any:
    for key in keys:
        if key not in tree:
            return None
        tree = tree[key]
    return tree
