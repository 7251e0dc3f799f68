"""From a mesh as written to sizes."""

from __future__ import annotations

import pytest

from sharddsl import spec
from sharddsl.layout import MeshSizes, size_mesh
from tests.layout.cases import sized


@pytest.mark.parametrize(
    ("text", "devices", "sizes", "inferred"),
    [
        ("[dp=1, fsdp=-1, mp=2]", 16, {"dp": 1, "fsdp": 8, "mp": 2}, "fsdp"),
        ("[dp=2, fsdp=8]", 16, {"dp": 2, "fsdp": 8}, None),
        ("[dp=2, fsdp=8]", None, {"dp": 2, "fsdp": 8}, None),
        ("[fsdp=-1, mp=8]", 8, {"fsdp": 1, "mp": 8}, "fsdp"),
    ],
)
def test_sizes(text: str, devices: int | None, sizes: dict[str, int], inferred: str | None) -> None:
    found, findings = sized(text, devices)
    assert findings == ()
    assert found == MeshSizes(sizes, {}, devices, inferred)
    assert list(sizes) == list(found.sizes if found else ())


def test_idle_devices_must_be_allowed() -> None:
    found, _ = sized("[fsdp=4] allow_idle", 6)
    assert found is not None
    assert (found.size, found.devices) == (4, 6)
    refused, (finding,) = sized("[fsdp=4]", 6)
    assert refused is None
    assert (finding.code, finding.severity) == ("SHD103", "error")
    assert finding.message == "the mesh takes 4 devices (fsdp=4), and there are 6: 2 would be idle"
    assert finding.help is not None
    assert "[fsdp=6]" in finding.help
    assert "allow_idle" in finding.help


def test_too_few_devices_lists_meshes_that_work() -> None:
    refused, (finding,) = sized("[dp=1, fsdp=16, mp=4] allow_idle", 8)
    assert refused is None
    assert finding.code == "SHD103"
    assert finding.message == "the mesh takes 64 devices (dp=1 * fsdp=16 * mp=4), and there are 8"
    assert finding.help is not None
    assert "[dp=1, fsdp=2, mp=4]" in finding.help


@pytest.mark.parametrize(
    ("text", "devices", "says"),
    [
        ("[fsdp=-1, mp=3]", 8, "8 devices over mp=3 is not a whole number"),
        ("[fsdp=-1, mp=16]", 8, "8 devices over mp=16 is less than one"),
        ("[fsdp=-1]", None, "the number of devices is not known"),
    ],
)
def test_an_axis_that_cannot_be_inferred(text: str, devices: int | None, says: str) -> None:
    refused, (finding,) = sized(text, devices)
    assert refused is None
    assert (finding.code, finding.severity) == ("SHD104", "error")
    assert says in finding.message


def test_the_remedy_for_an_unknown_device_count_is_an_option() -> None:
    _, (finding,) = sized("[fsdp=-1, mp=2]", None)
    assert finding.help == "give it a size: spec.mesh.fsdp=8"


def test_a_command_that_makes_its_own_devices_takes_the_smallest_mesh() -> None:
    made = spec.parse("mesh: [dp=2, fsdp=-1]\n").checked()
    assert made.mesh is not None
    found, findings = size_mesh(made.mesh, smallest=True)
    assert (found, findings) == (MeshSizes({"dp": 2, "fsdp": 1}, {}, None, "fsdp"), ())


@pytest.mark.parametrize(
    ("text", "dcn"),
    [
        ("[dp=2 @dcn, fsdp=8]", {"dp": 2}),
        ("[dp=1, fsdp=32 @dcn(4)]", {"fsdp": 4}),
        ("[dp=1 @dcn, fsdp=32]", {"dp": 1}),
    ],
)
def test_the_factor_that_crosses_hosts(text: str, dcn: dict[str, int]) -> None:
    found, findings = sized(text, None)
    assert findings == ()
    assert found is not None
    assert found.dcn == dcn


def test_two_inferred_axes_are_refused() -> None:
    made = spec.parse("mesh: [dp=2, fsdp=-1]\n").checked()
    assert made.mesh is not None
    both = made.mesh.model_copy(
        update={"axes": (made.mesh.axes[1], made.mesh.axes[1].model_copy(update={"name": "b"}))}
    )
    refused, (finding,) = size_mesh(both, devices=8)
    assert refused is None
    assert (finding.code, finding.message) == (
        "SHD104", "more than one axis is -1 (fsdp, b): only one size can be inferred",
    )  # fmt: skip
