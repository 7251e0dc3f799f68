"""An inventory from somebody else's pytree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from sharddsl.findings import UsageError
from sharddsl.partition.paths import named_leaves
from sharddsl.tensors.model import Inventory, Path, Tensor


def inventory_of(tree: Any, dims: Mapping[str, Sequence[str]] | None = None, *, kind: str = "pytree") -> Inventory:
    """The params of any pytree of arrays or `ShapeDtypeStruct`s, ready to resolve a spec against.

    `dims` names the dims: a pattern that a path ends in (`attn.wq`, `*.kernel`; globs within a segment) gives the
    names of all dims of the leaves that it matches, the last one that matches wins. The dims of other leaves are
    called `dim0`, `dim1`, …

    Raises `UsageError` for a pattern that matches no leaf, or gives a leaf another number of names than it has dims.
    """
    leaves, _ = named_leaves(tree)
    names = dict(dims or {})
    for pattern, given in names.items():
        if isinstance(given, str):  # a sequence too, of letters
            raise UsageError(f"dims: {pattern!r} gives {given!r}: write the names as a tuple, ({given!r},) for one")
        if not any(_ends_in(path, pattern) for path, _ in leaves):
            raise UsageError(f"dims: {pattern!r} matches no leaf of the tree; its first: {_first(leaves)}")
    return Inventory(kind, tuple(_tensor(path, leaf, names) for path, leaf in leaves))


def _tensor(path: Path, leaf: Any, names: Mapping[str, Sequence[str]]) -> Tensor:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        raise UsageError(f"{path} is no array but {leaf!r}: only arrays and jax.ShapeDtypeStruct can be placed")
    shape = tuple(leaf.shape)
    matching = [pattern for pattern in names if _ends_in(path, pattern)]
    dims = tuple(names[matching[-1]]) if matching else tuple(f"dim{i}" for i in range(len(shape)))
    if len(dims) != len(shape):
        raise UsageError(f"dims: {matching[-1]!r} names {len(dims)} dims ({', '.join(dims)}), and {path} is {shape}")
    return Tensor("param", path, dims, shape, str(leaf.dtype))


def _ends_in(path: Path, pattern: str) -> bool:
    globs = pattern.split(".")
    tail = path.segments[-len(globs) :]
    return len(tail) == len(globs) and all(map(fnmatchcase, tail, globs))


def _first(leaves: Sequence[tuple[Path, Any]]) -> str:
    return ", ".join(str(path) for path, _ in leaves[:3]) or "none"
