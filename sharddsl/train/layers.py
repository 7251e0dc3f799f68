"""What each layer's params and gradients look like: for a loss that is not a number, where it began."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from sharddsl.llama.forward import Params
from sharddsl.partition.paths import named_leaves
from sharddsl.tensors.model import LAYERS, Path


def layer_statistics(params: Params, grads: Params) -> dict[str, Any]:
    """By the param's name: `param` and `grad`, the root mean square of each, float32, and `finite`, whether all of both
    is. A stacked param has one value per layer, (layers,)."""
    return {
        str(path): {"param": _rms(param, path), "grad": _rms(grad, path), "finite": _finite(param, grad, path)}
        for (path, param), (_, grad) in zip(named_leaves(params)[0], named_leaves(grads)[0], strict=True)
    }


def _rms(x: Array, path: Path) -> Array:
    return jnp.sqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), axis=_within_layer(x, path)))


def _finite(param: Array, grad: Array, path: Path) -> Array:
    axis = _within_layer(param, path)
    return jnp.all(jnp.isfinite(param), axis=axis) & jnp.all(jnp.isfinite(grad), axis=axis)


def _within_layer(x: Array, path: Path) -> tuple[int, ...]:
    stacked = path.segments[0] == LAYERS and path.layer is None
    return tuple(range(int(stacked), x.ndim))
