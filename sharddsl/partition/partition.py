"""A layout on real devices: the mesh, the shardings, and the constraints. Only this module builds a PartitionSpec."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from math import lcm
from typing import Any, TypeVar

import jax
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import tree_unflatten

from sharddsl.findings import Finding, ShardError, UsageError
from sharddsl.layout.model import OPEN, DimAxes, Layout, Placement
from sharddsl.partition.mesh import arrange, mesh_of
from sharddsl.partition.paths import named_leaves
from sharddsl.partition.shapes import axes_by_dim
from sharddsl.spec.model import Namespace
from sharddsl.tensors.model import Path, Tensor

Tree = TypeVar("Tree")

_MOST_NAMES = 5
"""How many tensors an error about many of them names."""


@dataclass(frozen=True)
class Partition:
    """A layout on a mesh of devices. `notes` say what was done to place them that a user should know."""

    layout: Layout
    mesh: Mesh
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, layout: Layout, devices: Sequence[jax.Device] | None = None) -> Partition:
        """On these devices (default: all there are).

        Raises `ShardError`: SHD103 and SHD107 as for `make_mesh`, SHD309 for a memory kind that they do not have, or
        that is asked for what does not outlive a program.
        """
        arrangement = arrange(layout.mesh, devices)
        partition = cls(layout, mesh_of(layout.mesh, arrangement), arrangement.notes)
        if findings := [*_restless(layout), *_missing_memory(layout, arrangement.devices.flat[0])]:
            raise ShardError(findings, layout.sources)
        return partition

    @property
    def platform(self) -> str:
        """`cpu`, `gpu` or `tpu`."""
        return str(self.mesh.devices.flat[0].platform)

    # ------------------------------------------------------------------------------------------------------- shardings

    def spec(self, name: str) -> PartitionSpec:
        """The tensor's PartitionSpec, an entry per dim. Raises `UsageError` for a name that the layout lacks."""
        placement = self._placement(name)
        return PartitionSpec(*(_entry(axes) for axes in _axes(placement)))

    def sharding(self, name: str) -> NamedSharding:
        """The tensor's sharding, with its memory kind. Raises `UsageError` as `spec` does."""
        return NamedSharding(self.mesh, self.spec(name), memory_kind=self._placement(name).memory)

    def along(self, name: str, *dims: str) -> NamedSharding:
        """The sharding of an array that has only these dims of a tensor, in this order, split as the tensor is: of a
        vector with an item per row of the batch, say. Raises `UsageError` for an unknown tensor or dim."""
        placement = self._placement(name)
        by_dim = dict(zip(placement.tensor.dims, _axes(placement), strict=True))
        if unknown := [dim for dim in dims if dim not in by_dim]:
            raise UsageError(f"{name} has no dim {unknown[0]}: its dims are {', '.join(by_dim)}")
        return NamedSharding(self.mesh, PartitionSpec(*(_entry(by_dim[dim]) for dim in dims)))

    @cached_property
    def replicated(self) -> NamedSharding:
        """Whole on every device of the mesh."""
        return NamedSharding(self.mesh, PartitionSpec())

    def shardings(self, tree: Tree, namespace: Namespace = "param") -> Tree:
        """A tree of the same structure with each leaf's `NamedSharding`.

        `tree` is any pytree of arrays (or `ShapeDtypeStruct`s) whose keys spell the namespace's paths. Raises
        `UsageError` for leaves that the inventory lacks, tensors that the tree lacks, and shapes that differ.
        """
        leaves, structure = named_leaves(tree)
        named = [(_name(path, namespace), leaf) for path, leaf in leaves]
        self._check_leaves(named, namespace)
        shardings: Tree = tree_unflatten(structure, [self.sharding(name) for name, _ in named])
        return shardings

    def fetch(self, tree: Tree, namespace: Namespace = "param") -> Tree:
        """Inside jit: the tree with the arrays that lie in another memory (`pinned_host`) brought into the device's
        own, split as before. JAX computes with operands of one memory only.

        `tree` holds any of the namespace's tensors, of any sizes. Raises `UsageError` for a name that the layout lacks.
        """

        def near(x: Array, name: str) -> Array:
            at = self.sharding(name)
            return x if at.memory_kind in (None, "device") else jax.device_put(x, at.with_memory_kind("device"))

        leaves, structure = named_leaves(tree)
        fetched: Tree = tree_unflatten(structure, [near(leaf, _name(path, namespace)) for path, leaf in leaves])
        return fetched

    def multiple_of(self, dim: str, *namespaces: Namespace) -> int:
        """The smallest number of which this dim's size must be a multiple for every tensor of these namespaces to be
        split evenly: 8 for a batch split over `(dp=2, fsdp=4)`."""
        mesh = self.layout.mesh
        return lcm(
            *(
                mesh.ways(axes)
                for placement in self.layout
                if placement.tensor.namespace in namespaces
                for name, axes in zip(placement.tensor.dims, _axes(placement), strict=True)
                if name == dim and axes != OPEN
            )
        )

    # ----------------------------------------------------------------------------------------------------- constraints

    def constrain(self, x: Array, name: str) -> Array:
        """Pin a value inside jit to its tensor's sharding, within a named scope of that name, by which the compiled
        program's collectives are told apart. Where no rule matched, only the scope remains.

        A per-layer slice of a stacked tensor may be given: it has every dim but `layers`. Raises `UsageError` for an
        unknown name, a wrong rank or size, and rows of the batch that the axes do not divide; another dim that they do
        not divide is a `UserWarning`, since XLA pads it.
        """
        placement = self._placement(name)
        axes = axes_by_dim(placement, x.shape, self.layout.mesh)
        with jax.named_scope(name):
            if placement.axes is None:
                return x
            # The memory is where an array rests between programs, not where this one computes with it.
            sharding = NamedSharding(self.mesh, PartitionSpec(*map(_entry, axes)))
            constrained: Array = jax.lax.with_sharding_constraint(x, sharding)
            return constrained

    def constrain_tree(self, tree: Tree, namespace: Namespace) -> Tree:
        """Inside jit: the tree with every leaf pinned to its tensor's sharding. `tree` holds any of the namespace's
        tensors. Raises `UsageError` as `constrain` does."""
        leaves, structure = named_leaves(tree)
        pinned = [self.constrain(leaf, _name(path, namespace)) for path, leaf in leaves]
        constrained: Tree = tree_unflatten(structure, pinned)
        return constrained

    @contextmanager
    def bound(self) -> Iterator[Partition]:
        """While this is open, the module's `constrain` uses this partition. It is read when a function is traced, so
        open it around the first call of a jitted function, or inside the function."""
        token = _BOUND.set(self)
        try:
            yield self
        finally:
            _BOUND.reset(token)

    # ----------------------------------------------------------------------------------------------------------- parts

    def _placement(self, name: str) -> Placement:
        placement = self.layout.by_name.get(name)
        if placement is None:
            raise UsageError(f"there is no tensor {name}{_nearest(name, self.layout.by_name)}")
        return placement

    def _check_leaves(self, named: Sequence[tuple[str, Any]], namespace: Namespace) -> None:
        inventory = {tensor.name: tensor for tensor in self.layout.inventory.of(namespace)}
        if named and not inventory:
            raise UsageError(
                f"{self.layout.inventory.kind} has no tensors of {namespace}: make the inventory of the whole state, "
                '`{"params": …, "opt_state": …}`, and ask for the shardings of that'
            )
        given = {name for name, _ in named}
        kind = self.layout.inventory.kind
        problems = [
            f"the tree has {name}, which {kind} has not{_nearest(name, inventory)}"
            for name, _ in named
            if name not in inventory
        ]
        problems += [f"the tree lacks {name}" for name in inventory if name not in given]
        problems += [
            f"{name} is {tuple(leaf.shape)}, and {kind} has ({_shape(inventory[name])})"
            for name, leaf in named
            if name in inventory and not _fits(tuple(leaf.shape), inventory[name].shape)
        ]
        if problems:
            more = f"; and {len(problems) - _MOST_NAMES} more" if len(problems) > _MOST_NAMES else ""
            raise UsageError("the tree is not the one that was laid out: " + "; ".join(problems[:_MOST_NAMES]) + more)


_BOUND: ContextVar[Partition | None] = ContextVar("sharddsl_partition", default=None)


def constrain(x: Array, name: str) -> Array:
    """`Partition.constrain` of the partition that is bound here.

    Raises `UsageError` where none is: a constraint without a mesh would do nothing, and nobody would notice.
    """
    partition = _BOUND.get()
    if partition is None:
        raise UsageError(
            f"constrain(x, {name!r}) was traced with no layout bound: it would do nothing. Trace the function "
            f"inside `with layout.bound():`, or call `layout.constrain` itself."
        )
    return partition.constrain(x, name)


def born_sharded(init: Callable[..., Tree], shardings: Tree, *args: Any) -> Tree:
    """`init(*args)`, computed under jit straight into these shardings: each device makes its own shards only.

    The shardings are needed even where the arguments are sharded: `zeros_like` does not depend on its argument's data,
    and its result would lie whole on the first device.
    """
    # It runs once: on CPUs LLVM's full optimization would take several times as long as what it saves.
    on_cpu = all(device.platform == "cpu" for at in jax.tree.leaves(shardings) for device in at.device_set)
    options = {"xla_backend_optimization_level": 1} if on_cpu else None
    born: Tree = jax.jit(init, out_shardings=shardings, compiler_options=options)(*args)
    return born


# -------------------------------------------------------------------------------------------------------------- helpers


def _name(path: Path, namespace: Namespace) -> str:
    """What a layout calls the tensor of this path."""
    return str(path) if namespace == "param" else f"{namespace}.{path}"


def _entry(axes: DimAxes) -> Any:
    """One dim's entry in a PartitionSpec."""
    if axes == OPEN:
        return PartitionSpec.UNCONSTRAINED
    return axes[0] if len(axes) == 1 else (axes or None)


def _axes(placement: Placement) -> tuple[DimAxes, ...]:
    """The axes of each dim; all dims are open where nothing constrains the tensor."""
    return (OPEN,) * len(placement.tensor.dims) if placement.axes is None else placement.axes


def _nearest(name: str, names: Any) -> str:
    close = get_close_matches(name, list(names), n=3)
    return f" (nearest: {', '.join(close)})" if close else ""


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    """Whether a shape is the expected one, in which None stands for a size not known yet."""
    return len(shape) == len(expected) and all(
        size in (want, None) or want is None for size, want in zip(shape, expected, strict=True)
    )


def _shape(tensor: Tensor) -> str:
    return ", ".join(
        f"{dim} {'?' if size is None else size}" for dim, size in zip(tensor.dims, tensor.shape, strict=True)
    )


def _restless(layout: Layout) -> list[Finding]:
    """A finding where activations are to rest in a memory: they live within one program."""
    asked = [p for p in layout if p.tensor.namespace == "act" and p.memory not in (None, "device")]
    if not asked:
        return []
    first = asked[0]
    return [
        Finding(
            "SHD309",
            "error",
            f"{first.tensor.name} cannot lie in {first.memory}: an activation does not outlive its program",
            where=first.rule.layout_at if first.rule else None,
            help="a memory kind is for what is kept between programs: params, opt, cache and batch",
            tensor=first.tensor.name,
            count=len(asked),
        )
    ]


def _missing_memory(layout: Layout, device: Any) -> list[Finding]:
    """A finding for each memory kind that the layout names and the device lacks. Devices that are only described (a
    topology to compile for) list none, and are not judged."""
    wanted: dict[str, list[Placement]] = {}
    for placement in layout:
        if placement.memory is not None:
            wanted.setdefault(placement.memory, []).append(placement)
    if not wanted:
        return []
    try:
        available = sorted(memory.kind for memory in device.addressable_memories())
    except (NotImplementedError, RuntimeError):
        return []
    return [
        Finding(
            "SHD309",
            "error",
            f"{placements[0].tensor.name} is to lie in {kind}, which a {device.platform} device does not have",
            where=placements[0].rule.layout_at if placements[0].rule else None,
            help=f"the memory kinds of this device: {', '.join(available)}",
            tensor=placements[0].tensor.name,
            count=len(placements),
        )
        for kind, placements in wanted.items()
        if kind not in available
    ]
