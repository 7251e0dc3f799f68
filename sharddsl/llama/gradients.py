"""Gradients pinned where they form, by the `grad` layouts.

A gradient that is split only once it is whole has been all-reduced; one that is split where the backward pass makes it,
layer by layer, is reduce-scattered (ZeRO stage 2, arXiv 1910.02054, section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import jax
from jax import Array
from jax.tree_util import tree_unflatten

from sharddsl.partition.paths import named_leaves

Tree = TypeVar("Tree")


class Constrain(Protocol):
    """Pins a named value to its sharding: `Partition.constrain`, or a test's own."""

    def __call__(self, x: Array, name: str, /) -> Array: ...


def pin_gradients(params: Tree, constrain: Constrain, prefix: str = "") -> Tree:
    """The params as they are; the gradient of each is pinned as `grad.<prefix><path>` as soon as all of its uses have
    been gone back through. `params` may be one layer of stacked arrays, with the prefix `layers.`.

    Only reverse mode can differentiate through this.
    """
    leaves, structure = named_leaves(params)

    def pinned(x: Any, name: str) -> Any:
        return with_gradient(x, lambda gradient: constrain(gradient, name))

    same: Tree = tree_unflatten(structure, [pinned(x, f"grad.{prefix}{path}") for path, x in leaves])
    return same


def with_gradient(x: Any, change: Callable[[Array], Array]) -> Any:
    """x itself, whose gradient goes through `change` on its way back."""

    @jax.custom_vjp
    def same(x: Array) -> Array:
        return x

    same.defvjp(lambda x: (x, None), lambda _, gradient: (change(gradient),))
    return same(x)
