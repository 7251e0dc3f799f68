"""An inventory from somebody else's pytree, and the activations of the function that uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from sharddsl.findings import UsageError
from sharddsl.partition.paths import named_leaves
from sharddsl.partition.shapes import OF_THE_CALL
from sharddsl.tensors.model import Inventory, Path, Tensor

DimNames = Mapping[str, Sequence[str]]
"""The names of all dims of an array, or of those that a pattern matches."""


def inventory_of(
    tree: Any,
    dims: DimNames | None = None,
    activations: DimNames | None = None,
    *,
    kind: str = "pytree",
) -> Inventory:
    """The params of any pytree of arrays or `ShapeDtypeStruct`s, ready to resolve a spec against.

    `dims` names the dims: a pattern that a path ends in (`attn.wq`, `*.kernel`; globs within a segment) gives the
    names of all dims of the leaves that it matches, the last one that matches wins. The dims of other leaves are
    called `dim0`, `dim1`, …

    `activations` names values within the function that uses the tree, and their dims: `{"hidden": ("batch", "ffn")}`
    is what a spec calls `act.hidden`. A dim is as large as the leaves' dims of its name; where they differ, where
    there are none, and for `batch` and `seq`, its size is not known. Their dtype counts as the leaves' most common.

    Raises `UsageError` for a pattern that matches no leaf, or gives a leaf another number of names than it has dims,
    and for what is no activation's name.
    """
    leaves, _ = named_leaves(tree)
    names = _tuples("dims", dims or {})
    for pattern in names:
        if not any(_ends_in(path, pattern) for path, _ in leaves):
            raise UsageError(f"dims: {pattern!r} matches no leaf of the tree; its first: {_first(leaves)}")
    params = tuple(_tensor(path, leaf, names) for path, leaf in leaves)
    return Inventory(kind, (*params, *_activations(_tuples("activations", activations or {}), params)))


def _tuples(what: str, given: DimNames) -> dict[str, tuple[str, ...]]:
    """The same, of tuples. A text is refused: it is a sequence too, of letters."""
    for key, names in given.items():
        if isinstance(names, str):
            raise UsageError(f"{what}: {key!r} gives {names!r}: write the names as a tuple, ({names!r},) for one")
    return {key: tuple(names) for key, names in given.items()}


def _activations(named: Mapping[str, tuple[str, ...]], params: Sequence[Tensor]) -> Iterator[Tensor]:
    sizes: dict[str, set[int | None]] = {}
    for dim, size in (pair for tensor in params for pair in zip(tensor.dims, tensor.shape, strict=True)):
        sizes.setdefault(dim, set()).add(size)
    known = {dim: next(iter(found)) for dim, found in sizes.items() if len(found) == 1 and dim not in OF_THE_CALL}
    dtypes = Counter(tensor.dtype for tensor in params).most_common(1)
    for name, dims in named.items():
        if name.startswith("act."):
            raise UsageError(f"activations: write {name.removeprefix('act.')!r} for {name!r}: `act.` is understood")
        try:
            path = Path.parse(name)
        except ValueError as error:
            raise UsageError(f"activations: {name!r} is no name: segments with dots between them are") from error
        yield Tensor("act", path, dims, tuple(map(known.get, dims)), dtypes[0][0] if dtypes else "float32")


def _tensor(path: Path, leaf: Any, names: DimNames) -> Tensor:
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
