"""`llama_tiny` fits every shipped layout on every mesh of eight devices that its axes can make."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import pytest

from sharddsl import layout, models, spec
from sharddsl.models.config import Run

SIZES = (1, 2, 4, 8)

MESHES = {
    "dp": 1, "zero1": 1, "zero2": 1, "fsdp": 1, "tp": 1, "sp": 1, "hsdp": 4, "fsdp_tp": 10, "easylm": 10, "maxtext": 10,
}  # fmt: skip
"""How many ordered ways there are to write 8 as a product of one, two or three sizes."""


def meshes(axes: tuple[str, ...]) -> Iterator[dict[str, int]]:
    for sizes in product(SIZES, repeat=len(axes)):
        if prod(sizes) == 8:
            yield dict(zip(axes, sizes, strict=True))


RUNS = [{"mode": "train"}, {"mode": "prefill"}, {"mode": "decode"}, {"mode": "train", "optimizer": "adafactor"}]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: "-".join(run.values()))
@pytest.mark.parametrize("name", spec.list_specs())
def test_every_mesh_of_eight(name: str, run: dict[str, str]) -> None:
    shipped = spec.load(name).checked()
    tensors = models.inventory(models.preset("llama_tiny"), Run.model_validate({"batch": 8, "seq": 64, **run}))
    assert shipped.mesh is not None
    tried = 0
    for mesh in meshes(shipped.mesh.names):
        sized = spec.with_mesh(shipped, mesh)
        assert sized.mesh is not None
        sizes, complaints = layout.size_mesh(sized.mesh, devices=8)
        assert sizes is not None
        placed = layout.resolve(sized, tensors, sizes)
        found = [f"{mesh}: {finding.code} {finding.message}" for finding in (*complaints, *placed.findings)]
        assert found == []
        tried += 1
    assert tried == MESHES[name.removeprefix("llama/")]
