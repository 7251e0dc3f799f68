"""An inventory as data: what a JSON file says about a model that this project has no config for.

```json
{"version": 1, "kind": "gemma_2b", "sizes": {"heads": 8},
 "tensors": [{"name": "attn.wq", "dims": ["heads", "embed", "head_dim"], "shape": [8, 2048, 256]}]}
```

A name carries its namespace (`act.resid`) unless it is a param's; a layer's index is a subscript (`layers[3].attn.wq`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from sharddsl.findings import UsageError
from sharddsl.spec.model import NAMESPACES, Mode, Model, Namespace
from sharddsl.tensors.model import ITEMSIZE, Inventory, Path, Tensor

Size = Annotated[int, Field(ge=0)]


class TensorData(Model):
    """One array. `dims` may be left out: they are then called `d0`, `d1`, … by position. `shape` has null where a size
    is not known. `param` names the param that a `grad` or `opt` tensor belongs to; `heads` gives, for each dim that
    fuses heads and head_dim, the number of heads in it."""

    name: str
    shape: tuple[Size | None, ...]
    dims: tuple[str, ...] | None = None
    dtype: str = "float32"
    param: str | None = None
    heads: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> TensorData:
        if self.dims is not None and len(self.dims) != len(self.shape):
            raise ValueError(f"{self.name}: {len(self.dims)} dims for a shape of {len(self.shape)}")
        if self.dtype not in ITEMSIZE:
            raise ValueError(f"{self.name}: unknown dtype {self.dtype!r}; known are {', '.join(ITEMSIZE)}")
        if unknown := sorted(set(self.heads) - set(self.dims or ())):
            raise ValueError(f"{self.name}: heads of {', '.join(unknown)}, which is not a dim of it")
        _split(self.name)
        if self.param is not None:
            Path.parse(self.param)
        return self


class InventoryData(Model):
    """All tensors of one model, and the sizes that conditions may ask about."""

    version: Literal[1] = 1
    kind: str = "inventory"
    tensors: tuple[TensorData, ...]
    sizes: dict[str, Size | None] = Field(default_factory=dict)
    tied: bool | None = None
    mode: Mode = "train"

    @model_validator(mode="after")
    def _no_name_twice(self) -> InventoryData:
        seen: set[tuple[Namespace, Path]] = set()
        for tensor in self.tensors:
            named = _split(tensor.name)
            if named in seen:
                raise ValueError(f"{tensor.name} is there twice")
            seen.add(named)
        return self


def from_data(data: Mapping[str, Any]) -> Inventory:
    """The inventory that this mapping (as `json.load` gives it) describes. Raises `UsageError` naming each wrong
    field."""
    try:
        checked = InventoryData.model_validate(data)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc'])) or 'top level'}: {e['msg']}" for e in error.errors()[:10]]
        raise UsageError("not an inventory:\n" + "\n".join(lines)) from None
    tensors = tuple(_tensor(item) for item in checked.tensors)
    return Inventory(checked.kind, tensors, checked.sizes, checked.tied, checked.mode)


def to_data(inventory: Inventory) -> dict[str, Any]:
    """The inverse of `from_data`: a mapping that `json.dump` takes."""
    data = InventoryData(
        kind=inventory.kind,
        tensors=tuple(
            TensorData(
                name=t.name if t.path.segments[0] not in NAMESPACES else f"{t.namespace}.{t.path}",
                shape=t.shape,
                dims=t.dims,
                dtype=t.dtype,
                param=None if t.param is None else str(t.param),
                heads=dict(t.heads),
            )
            for t in inventory
        ),
        sizes=dict(inventory.sizes),
        tied=inventory.tied,
        mode=inventory.mode,
    )
    return data.model_dump(mode="json")


def _tensor(data: TensorData) -> Tensor:
    namespace, path = _split(data.name)
    dims = data.dims if data.dims is not None else tuple(f"d{i}" for i in range(len(data.shape)))
    param = None if data.param is None else Path.parse(data.param)
    if param is None and namespace == "grad":
        param = path
    return Tensor(namespace, path, dims, data.shape, data.dtype, param, tuple(data.heads.items()))


def _split(name: str) -> tuple[Namespace, Path]:
    """`act.mlp.hidden` is `mlp.hidden` in `act`; a name without a namespace is a param's, and `param.` may be written.
    Raises `ValueError` for a malformed path."""
    head, _, rest = name.partition(".")
    for namespace in NAMESPACES:
        if head == namespace and rest:
            return namespace, Path.parse(rest)
    return "param", Path.parse(name)
