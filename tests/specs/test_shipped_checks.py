"""Every shipped layout resolves without a finding for each model, mesh and batch that its `check` lines name."""

from __future__ import annotations

from math import prod

import pytest

from sharddsl import layout, models, spec
from sharddsl.models.config import Run
from sharddsl.spec.model import Check, Mode, Spec

CASES = [
    pytest.param(shipped, check, id=f"{name} {check.model} {index}")
    for name in spec.list_specs()
    for shipped in [spec.load(name).checked()]
    for index, check in enumerate(shipped.checks)
]


@pytest.mark.parametrize(("shipped", "check"), CASES)
@pytest.mark.parametrize("mode", ["train", "prefill", "decode"])
def test_a_check_of_a_shipped_layout_has_no_findings(shipped: Spec, check: Check, mode: Mode) -> None:
    mesh = {axis.name: axis.size for axis in check.mesh or ()}
    sized = spec.with_mesh(shipped, mesh)
    assert sized.mesh is not None
    sizes, complaints = layout.size_mesh(sized.mesh, devices=prod(mesh.values()))
    assert sizes is not None
    run = Run(mode=mode, batch=check.batch, seq=check.seq)
    placed = layout.resolve(sized, models.inventory(models.preset(check.model), run), sizes)
    assert [f"{f.code} {f.message}" for f in (*complaints, *placed.findings)] == []
    assert placed.unknown == ()


def test_every_shipped_layout_checks_a_large_model_and_the_demo_s() -> None:
    for name in spec.list_specs():
        named = {check.model for check in spec.load(name).checked().checks}
        assert "smollm2_135m" in named
        assert any(models.parameter_count(models.preset(model)) > 1e9 for model in named), name
