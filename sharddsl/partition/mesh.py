"""Mesh sizes become a `jax.sharding.Mesh`: which device stands where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh

from sharddsl.findings import Finding, ShardError
from sharddsl.layout.model import MeshSizes

Devices = np.ndarray[Any, np.dtype[np.object_]]
"""An array of devices, one dim per mesh axis."""


@dataclass(frozen=True)
class Arrangement:
    """Devices in the mesh's shape, and what was done to place them that a user should know."""

    devices: Devices
    notes: tuple[str, ...] = ()


def make_mesh(sizes: MeshSizes, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """The mesh of these sizes over `devices` (default: all there are), every axis of type Auto.

    Raises `ShardError`: SHD103 where the number of devices differs from the product, SHD107 where the sizes cannot be
    laid on their topology.
    """
    return mesh_of(sizes, arrange(sizes, devices))


def mesh_of(sizes: MeshSizes, arrangement: Arrangement) -> Mesh:
    """The mesh over devices already arranged."""
    # The type is said outright: `jax.make_mesh` defaults to Explicit axes and `Mesh` to Auto, and
    # `with_sharding_constraint` refuses Explicit ones.
    return Mesh(arrangement.devices, tuple(sizes.sizes), axis_types=(AxisType.Auto,) * len(sizes.sizes))


def arrange(sizes: MeshSizes, devices: Sequence[Any] | None = None) -> Arrangement:
    """Place devices so that neighbours along an axis are close in the network. Errors as for `make_mesh`."""
    chosen = _choose(sizes, list(jax.devices() if devices is None else devices))
    shape = tuple(sizes.sizes.values())
    if prod(sizes.dcn.values()) > 1:
        return _across_hosts(sizes, chosen)
    if chosen[0].platform == "cpu":
        return Arrangement(_array(chosen).reshape(shape))
    return _on_topology(sizes, shape, chosen)


def _choose(sizes: MeshSizes, devices: list[Any]) -> list[Any]:
    """As many of the devices as the mesh takes. Only CPU devices, which are virtual, may be left over unasked."""
    enough = len(devices) >= sizes.size
    idle_is_meant = sizes.devices is not None and sizes.devices > sizes.size
    if enough and (len(devices) == sizes.size or idle_is_meant or devices[0].platform == "cpu"):
        return devices[: sizes.size]
    kind = f"{devices[0].platform} devices" if devices else "devices"
    remedy = (
        "`allow_idle` after the mesh, if fewer are meant, or an axis of size -1, which takes what is there"
        if enough
        else "a smaller axis, or -1 for one axis, which takes what is there"
    )
    message = f"the mesh {sizes} has {sizes.size} places for {len(devices)} {kind}"
    raise ShardError([Finding("SHD103", "error", message, help=remedy)])


def _on_topology(sizes: MeshSizes, shape: tuple[int, ...], devices: list[Any]) -> Arrangement:
    try:
        return Arrangement(mesh_utils.create_device_mesh(shape, devices))
    except NotImplementedError:
        # Some sizes fit a torus only when one of its physical axes is split between two of the mesh's.
        note = f"the mesh {sizes} splits a physical axis of the {devices[0].device_kind} torus between mesh axes"
        try:
            return Arrangement(mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True), (note,))
        except (NotImplementedError, ValueError) as error:
            raise _does_not_fit(sizes, str(error)) from error
    except ValueError as error:
        raise _does_not_fit(sizes, str(error)) from error


def _across_hosts(sizes: MeshSizes, devices: list[Any]) -> Arrangement:
    """A mesh whose `@dcn` factors run across slices or hosts and whose other factors stay within one."""
    outer = tuple(sizes.dcn.get(axis, 1) for axis in sizes.sizes)
    inner = tuple(size // factor for size, factor in zip(sizes.sizes.values(), outer, strict=True))
    hosts = prod(outer)
    if devices[0].platform == "cpu":
        # `create_hybrid_device_mesh` refuses virtual CPU devices, which belong to no slice.
        note = f"{hosts} hosts are simulated, as contiguous blocks of {prod(inner)} CPU devices"
        return Arrangement(interleave(_array(devices).reshape(outer + inner)), (note,))
    by_process = _granules(devices, "slice_index") != hosts
    if by_process and (processes := _granules(devices, "process_index")) != hosts:
        slices = _granules(devices, "slice_index")
        raise _does_not_fit(
            sizes, f"its @dcn factors make {hosts} groups, and the devices are {slices} slices, {processes} hosts"
        )
    try:
        return Arrangement(mesh_utils.create_hybrid_device_mesh(inner, outer, devices, process_is_granule=by_process))
    except (NotImplementedError, ValueError) as error:
        raise _does_not_fit(sizes, str(error)) from error


def interleave(blocks: Devices) -> Devices:
    """From dims (outer₀ … outerₙ, inner₀ … innerₙ) to (outer₀·inner₀, …, outerₙ·innerₙ): on each axis the slow
    network's factor is the major one, as `create_hybrid_device_mesh` has it."""
    rank = blocks.ndim // 2
    order = [dim for axis in range(rank) for dim in (axis, rank + axis)]
    shape = [blocks.shape[axis] * blocks.shape[rank + axis] for axis in range(rank)]
    return blocks.transpose(order).reshape(shape)


def _granules(devices: list[Any], attribute: str) -> int:
    return len({getattr(device, attribute, 0) for device in devices})


def _array(devices: list[Any]) -> Devices:
    array = np.empty(len(devices), dtype=object)
    array[:] = devices
    return array


def _does_not_fit(sizes: MeshSizes, why: str) -> ShardError:
    return ShardError([Finding("SHD107", "error", f"the mesh {sizes} cannot be laid on these devices: {why}")])
