"""The Python API: a spec, resolved for a model on a mesh, as shardings and constraints for anybody's jitted function.

Nothing here imports jax until a mesh or a sharding is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from sharddsl.findings import Finding, ShardError, UsageError, errors
from sharddsl.layout import model, resolve, size_mesh
from sharddsl.models import LlamaConfig, Run, preset
from sharddsl.models import inventory as llama_inventory
from sharddsl.spec import Loaded, mesh_of, with_mesh
from sharddsl.spec import load as load_spec
from sharddsl.spec import parse as parse_spec
from sharddsl.spec.model import Namespace
from sharddsl.tensors.model import Inventory

__all__ = ["Layout", "Run", "ShardError", "Spec", "UsageError", "constrain", "inventory", "load", "parse"]

if TYPE_CHECKING:
    import jax
    from jax.sharding import Mesh, NamedSharding

    from sharddsl.partition import Partition

Tree = TypeVar("Tree")


def load(ref: str | os.PathLike[str], *, rules: Sequence[str] = ()) -> Spec:
    """The spec that `ref` names (`llama/fsdp_tp`) or the `.shard` file that it is the path of; `rules` are rules' texts
    that come after the file's own.

    Raises `ShardError` with everything that is wrong in the text, `UsageError` where there is no such spec.
    """
    return Spec(load_spec(ref if isinstance(ref, str) else Path(ref), rules=_texts(rules)))


def parse(text: str, *, source: str = "<text>", rules: Sequence[str] = ()) -> Spec:
    """The spec that a text states; `source` names it in messages. Otherwise as `load`."""
    return Spec(parse_spec(text, source, rules=_texts(rules)))


def inventory(
    tree: Any,
    dims: Mapping[str, Sequence[str]] | None = None,
    activations: Mapping[str, Sequence[str]] | None = None,
) -> Inventory:
    """What a pytree of arrays or `jax.ShapeDtypeStruct`s holds, to resolve a spec against.

    `dims` gives dims their names: a pattern that a path ends in (`attn.wq`, `*.kernel`), and the names of all dims of
    the arrays it matches. `activations` gives values in a function of your own a name, and their dims: with
    `{"hidden": ("batch", "ffn")}` a spec may place `act.hidden`, and `constrain(h, "act.hidden")` pins one. Of its
    dims, those that are called like dims of the tree must have their size, `batch` and `seq` apart.

    Raises `UsageError` for a pattern that matches nothing or gives the wrong number of names, and for what cannot be
    an activation's name.
    """
    from sharddsl.partition import inventory_of

    return inventory_of(tree, dims, activations)


def constrain(x: jax.Array, name: str) -> jax.Array:
    """Pin a value inside jit to the layout of the activation `name`, by the layout that is bound where the function is
    traced (`with layout.bound():`). Raises `UsageError` where none is."""
    from sharddsl.partition import constrain as constrain_bound

    return constrain_bound(x, name)


class Spec:
    """A validated spec. `value` is its content, `findings` are warnings about its text."""

    def __init__(self, loaded: Loaded) -> None:
        self.value = loaded.checked()
        self.findings: tuple[Finding, ...] = loaded.findings
        self._sources = loaded.sources

    def __repr__(self) -> str:
        axes = ", ".join(self.value.mesh.names) if self.value.mesh else "no mesh"
        return f"<sharddsl.Spec {self.value.name}: {len(self.value.rules)} rules, mesh [{axes}]>"

    def resolve(
        self,
        what: Inventory | LlamaConfig | str,
        *,
        mesh: Mapping[str, int] | None = None,
        devices: int | None = None,
        run: Run | None = None,
        hosts: int | None = None,
    ) -> Layout:
        """Where every tensor of `what` lies: an inventory, a LLaMA's config, or a preset's name.

        `mesh` gives axes another size than the file's; `devices` is the number from which an axis of size -1 is
        inferred; `run` (for a LLaMA) decides about dtypes, batch and mode; `hosts` is the number of processes that feed
        the mesh (`jax.process_count()`), for conditions and the rows that each one loads. Raises `ShardError` with
        everything that does not fit, `UsageError` for an unknown model.
        """
        sizes = {axis: _whole(size, f"mesh: the size of {axis}", least=None) for axis, size in (mesh or {}).items()}
        spec = with_mesh(self.value, sizes)
        fixed, findings = size_mesh(mesh_of(spec), devices=None if devices is None else _whole(devices, "devices"))
        if fixed is None:
            raise ShardError(findings, self._sources)
        processes = None if hosts is None else _whole(hosts, "hosts")
        layout = resolve(spec, _inventory(what, run), fixed, hosts=processes)
        if errors((*findings, *layout.findings)):
            raise ShardError((*findings, *layout.findings), self._sources)
        return Layout(layout)


class Layout:
    """Where every tensor lies. Prints as a table; `table` is the value behind it, a placement per tensor."""

    def __init__(self, table: model.Layout) -> None:
        self.table = table

    def __str__(self) -> str:
        from sharddsl.layout import report

        return report.to_text(self.table, width=120)

    def __repr__(self) -> str:
        return f"<sharddsl.Layout of {self.table.inventory.kind} on {self.table.mesh}>"

    def mesh(self) -> Mesh:
        """The mesh, over the machine's accelerators, or over as many virtual CPU devices where it has none.

        Raises `ShardError` where the number of accelerators is another, and `UsageError` where jax already runs with
        fewer CPU devices: call this before the first jax operation.
        """
        return self._partition.mesh

    def shardings(self, tree: Tree, namespace: Namespace = "param") -> Tree:
        """A tree like `tree`, with a `NamedSharding` for each array. Raises `UsageError` where it is another tree than
        the one that was laid out."""
        return self._partition.shardings(tree, namespace)

    def sharding(self, name: str) -> NamedSharding:
        """One tensor's sharding: `layers.mlp.w_in`, `batch.tokens`. Raises `UsageError` for an unknown name."""
        return self._partition.sharding(name)

    def constrain(self, x: jax.Array, name: str) -> jax.Array:
        """Pin a value inside jit to the layout of the activation `name` (`act.mlp.hidden`).

        Raises `UsageError` for an unknown name, a wrong rank or size, and rows of the batch that the axes do not
        divide; another dim that they do not divide is a `UserWarning`, since XLA pads it.
        """
        return self._partition.constrain(x, name)

    @contextmanager
    def bound(self) -> Iterator[Layout]:
        """Within this, `sharddsl.constrain` uses this layout in the functions that are traced."""
        with self._partition.bound():
            yield self

    @cached_property
    def _partition(self) -> Partition:
        from sharddsl.partition import Partition, ensure_devices

        return Partition.of(self.table, ensure_devices(self.table.mesh.size))


def _inventory(what: Inventory | LlamaConfig | str, run: Run | None) -> Inventory:
    if isinstance(what, Inventory):
        if run is not None:
            raise UsageError("`run` says how a LLaMA is run; an inventory already has its shapes and dtypes")
        return what
    config = preset(what) if isinstance(what, str) else what
    if not isinstance(config, LlamaConfig):
        raise UsageError(
            f"resolve takes an inventory, a LlamaConfig or a model's name, not {type(config).__name__}: the inventory "
            "of a pytree of arrays is `sharddsl.inventory(tree)`"
        )
    return llama_inventory(config, run or Run())


def _texts(rules: Sequence[str]) -> Sequence[str]:
    if isinstance(rules, str):  # a sequence too, of characters
        raise UsageError("`rules` are several texts: write [text] for one")
    return rules


def _whole(value: SupportsIndex, what: str, least: int | None = 1) -> int:
    """The number, numpy's integers included. (True is an integer to Python; nobody means a size by it.)"""
    number = None if isinstance(value, bool) or not hasattr(value, "__index__") else index(value)
    if number is None or (least is not None and number < least):
        raise UsageError(f"{what} is a whole number{f' from {least} on' if least is not None else ''}, not {value!r}")
    return number
