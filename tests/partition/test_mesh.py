"""Meshes: sizes, order, axis types, and the devices that there are."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh

from sharddsl.findings import ShardError
from sharddsl.layout.model import MeshSizes
from sharddsl.partition import make_mesh
from sharddsl.partition.mesh import arrange


def ids(mesh: Mesh) -> Any:
    return np.vectorize(lambda device: device.id)(mesh.devices)


def test_axes_in_order_major_to_minor() -> None:
    mesh = make_mesh(MeshSizes({"dp": 2, "fsdp": 1, "mp": 4}))
    assert mesh.axis_names == ("dp", "fsdp", "mp")
    assert ids(mesh).tolist() == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]


def test_axis_types_are_auto() -> None:
    assert make_mesh(MeshSizes({"dp": 4, "mp": 2})).axis_types == (AxisType.Auto, AxisType.Auto)


def test_virtual_devices_may_be_left_over() -> None:
    assert ids(make_mesh(MeshSizes({"fsdp": 2, "mp": 3}))).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_too_few_devices() -> None:
    with pytest.raises(ShardError) as raised:
        make_mesh(MeshSizes({"fsdp": 4, "mp": 4}))
    (finding,) = raised.value.findings
    assert finding.code == "SHD103"
    assert finding.message == "the mesh [fsdp=4, mp=4] has 16 places for 8 cpu devices"


def test_hosts_are_contiguous_blocks_of_virtual_devices() -> None:
    # Two hosts of four: dp crosses them whole, and half of fsdp does in the second mesh.
    whole = arrange(MeshSizes({"dp": 2, "mp": 4}, dcn={"dp": 2}))
    assert [[d.id for d in row] for row in whole.devices] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert whole.notes == ("2 hosts are simulated, as contiguous blocks of 4 CPU devices",)
    part = arrange(MeshSizes({"mp": 2, "fsdp": 4}, dcn={"fsdp": 2}))
    assert [[d.id for d in row] for row in part.devices] == [[0, 1, 4, 5], [2, 3, 6, 7]]


@dataclass(frozen=True)
class FakeTpu:
    """As much of a TPU device as JAX's mesh builder looks at."""

    id: int
    coords: tuple[int, int, int]
    slice_index: int = 0
    core_on_chip: int = 0
    process_index: int = 0
    platform: str = "tpu"
    device_kind: str = "TPU v5 lite"


def torus(x: int, y: int, slices: int = 1) -> list[Any]:
    coords = [(s, i, j) for s in range(slices) for j in range(y) for i in range(x)]
    return [FakeTpu(n, (i, j, 0), slice_index=s) for n, (s, i, j) in enumerate(coords)]


def test_neighbours_on_the_torus() -> None:
    arranged = arrange(MeshSizes({"fsdp": 4, "mp": 4}), torus(4, 4))
    for row in arranged.devices:
        assert len({d.coords[0] for d in row}) == 1 or len({d.coords[1] for d in row}) == 1
    assert arranged.notes == ()


def test_a_physical_axis_is_split_only_where_it_must_be_and_it_is_said() -> None:
    arranged = arrange(MeshSizes({"fsdp": 8, "mp": 2}), torus(4, 4))
    assert sorted(d.id for d in arranged.devices.flatten().tolist()) == list(range(16))
    assert arranged.notes == (
        "the mesh [fsdp=8, mp=2] splits a physical axis of the TPU v5 lite torus between mesh axes",
    )


def test_slices_run_along_the_dcn_axis() -> None:
    arranged = arrange(MeshSizes({"dp": 2, "fsdp": 4, "mp": 4}, dcn={"dp": 2}), torus(4, 4, slices=2))
    assert [{d.slice_index for d in half.flat} for half in arranged.devices] == [{0}, {1}]


def test_dcn_factors_must_be_the_slices() -> None:
    with pytest.raises(ShardError) as raised:
        arrange(MeshSizes({"dp": 4, "fsdp": 2, "mp": 4}, dcn={"dp": 4}), torus(4, 4, slices=2))
    (finding,) = raised.value.findings
    assert finding.code == "SHD107"
    assert "its @dcn factors make 4 groups, and the devices are 2 slices, 1 hosts" in finding.message


def test_accelerators_are_left_idle_only_where_that_is_meant() -> None:
    with pytest.raises(ShardError) as raised:
        arrange(MeshSizes({"fsdp": 8}), torus(4, 4))
    assert raised.value.findings[0].code == "SHD103"
    assert arrange(MeshSizes({"fsdp": 8}, devices=16), torus(4, 4)).devices.size == 8


def run_python(code: str) -> str:
    """A program of its own: the backend of this process has started already."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def test_devices_are_made_before_the_backend_starts() -> None:
    code = "from sharddsl.partition import ensure_devices; d = ensure_devices(6); print(len(d), d[0].platform)"
    assert run_python(code) == "6 cpu"


def test_a_backend_that_started_with_fewer_is_a_clear_error() -> None:
    code = """
import jax
from sharddsl.findings import UsageError
from sharddsl.partition import ensure_devices
jax.devices()
try:
    ensure_devices(12)
except UsageError as error:
    print(error)
"""
    assert run_python(code) == (
        "12 CPU devices are needed, and there are 8 cpu devices: JAX's backend started before they could be asked for. "
        "Call sharddsl before the first JAX operation, or set JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES=12."
    )


def test_a_platform_that_there_is_not_is_a_clear_error() -> None:
    code = """
import jax
from sharddsl.findings import UsageError
from sharddsl.partition import ensure_devices
jax.config.update("jax_platforms", "abacus")
try:
    ensure_devices(2)
except UsageError as error:
    print(error)
"""
    said = run_python(code)
    assert said.startswith("JAX cannot start: Unable to initialize backend 'abacus'")
    assert said.endswith("remedy: unset JAX_PLATFORMS, or set JAX_PLATFORMS=cpu")


def test_enough_devices_that_are_there_already_are_used() -> None:
    code = """
import jax
from sharddsl.partition import virtual_devices
assert len(jax.devices()) == 8
print(len(virtual_devices(3)))
"""
    assert run_python(code) == "3"


def test_this_process_has_eight_virtual_devices() -> None:
    assert (jax.device_count(), jax.default_backend()) == (8, "cpu")
