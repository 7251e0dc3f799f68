"""A pytree's keys become tensor paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.tree_util import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    tree_flatten_with_path,
)

from sharddsl.tensors.model import LAYERS, Path


def named_leaves(tree: Any) -> tuple[list[tuple[Path, Any]], Any]:
    """The tree's leaves in order, each with its path, and the tree's structure."""
    leaves, structure = tree_flatten_with_path(tree)
    return [(path_of(keys), leaf) for keys, leaf in leaves], structure


def path_of(keys: Sequence[Any]) -> Path:
    """A leaf's path. The first index right after a `layers` segment is that segment's subscript, every other key is a
    segment: `{"layers": [{"mlp": {"w_in": x}}]}` holds `layers[0].mlp.w_in`. A trailing attribute `value`, the box
    that Flax puts around an array in a `State`, is no segment."""
    if len(keys) > 1 and isinstance(keys[-1], GetAttrKey) and keys[-1].name == "value":
        keys = keys[:-1]
    segments: list[str] = []
    layer, layer_at = None, 0
    for key in map(_plain, keys):
        if layer is None and isinstance(key, int) and segments and segments[-1] == LAYERS:
            layer, layer_at = key, len(segments) - 1
        else:
            segments.append(str(key))
    return Path(tuple(segments), layer, layer_at)


def _plain(key: Any) -> int | str:
    match key:
        case DictKey(key=int(index)) | SequenceKey(idx=index) | FlattenedIndexKey(key=int(index)):
            return index
        case DictKey(key=name) | FlattenedIndexKey(key=name) | GetAttrKey(name=name):
            return str(name)
    return str(key)
