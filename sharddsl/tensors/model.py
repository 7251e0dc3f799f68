"""What a model holds, without a model: every tensor's path, dims, shape and dtype.

An `Inventory` is the only thing a spec is resolved against, whether it comes from a LLaMA's config (`models`), from a
file, or from a pytree of somebody else's (`partition.inventory_of`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from sharddsl.spec.model import Mode, Namespace

ITEMSIZE: Mapping[str, int] = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "bfloat16": 2, "float16": 2, "float32": 4, "float64": 8,
}  # fmt: skip
"""Bytes per element, by numpy's names and ml_dtypes'."""

LAYERS = "layers"
"""The dim that stacks layers, and the path segment that carries a layer's index."""


@dataclass(frozen=True, slots=True)
class Path:
    """A dotted path. A layer's index is a subscript of its segment, not a segment: `layers[3].mlp.w_in`."""

    segments: tuple[str, ...]
    layer: int | None = None
    layer_at: int = 0
    """Which segment carries the subscript; meaningful only with a `layer`."""

    @classmethod
    def parse(cls, text: str) -> Path:
        """From text, at most one subscript. Raises `ValueError` for an empty segment or a second subscript."""
        segments: list[str] = []
        layer, layer_at = None, 0
        for position, segment in enumerate(text.split(".")):
            match = _SEGMENT.fullmatch(segment)
            if match is None or (match["index"] is not None and layer is not None):
                raise ValueError(f"not a tensor's path: {text!r}")
            if match["index"] is not None:
                layer, layer_at = int(match["index"]), position
            segments.append(match["name"])
        return cls(tuple(segments), layer, layer_at)

    def __str__(self) -> str:
        if self.layer is None:
            return ".".join(self.segments)
        at = self.layer_at
        return ".".join((*self.segments[:at], f"{self.segments[at]}[{self.layer}]", *self.segments[at + 1 :]))


_SEGMENT = re.compile(r"(?P<name>[^.\[\]]+)(?:\[(?P<index>\d+)\])?")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One array.

    `shape` has None where a size is not known yet (no batch given); `dims` names each dim, and has the same length. A
    stacked array of layers has a dim called `layers`. For `grad` and `opt`, `param` is the path of the param it belongs
    to and, for `opt`, `path` begins with the leaf (`mu.layers.mlp.w_in`); a step counter has neither dims nor param.
    """

    namespace: Namespace
    path: Path
    dims: tuple[str, ...]
    shape: tuple[int | None, ...]
    dtype: str
    param: Path | None = None
    heads: tuple[tuple[str, int], ...] = ()
    """For each dim that fuses heads and head_dim: its name and the number of heads in it. Splitting such a dim
    more ways than it has heads cuts a head in two, even where the elements divide."""

    @property
    def name(self) -> str:
        """`mlp.w_in` for a param, `act.mlp.hidden` with its namespace for all others."""
        return str(self.path) if self.namespace == "param" else f"{self.namespace}.{self.path}"

    @property
    def size(self) -> int | None:
        """Elements, or None where a dim's size is not known."""
        return None if None in self.shape else prod(self.shape)  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int | None:
        """Bytes of the whole array, or None where a dim's size is not known."""
        return None if self.size is None else self.size * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Inventory:
    """All tensors of one model, in a stable order, with what conditions may ask about it.

    `sizes` gives the model's dims by name (`heads`, `vocab`, `batch`, …), None where not known. `kind` names what the
    tensors are ("llama3_8b"); `tied` is None where the question makes no sense.
    """

    kind: str
    tensors: tuple[Tensor, ...]
    sizes: Mapping[str, int | None] = field(default_factory=dict)
    tied: bool | None = None
    mode: Mode = "train"

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    @cached_property
    def by_name(self) -> Mapping[str, Tensor]:
        return {tensor.name: tensor for tensor in self.tensors}

    def __getitem__(self, name: str) -> Tensor:
        return self.by_name[name]

    def of(self, namespace: Namespace) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.namespace == namespace)
