"""Configurations that failed people come out right here: the finding, its place in the model, and its advice."""

from __future__ import annotations

from typing import Any

import pytest

from sharddsl import spec
from sharddsl.layout import Layout
from sharddsl.layout.totals import totals
from sharddsl.models import Run, inventory, preset
from tests.layout.cases import resolved, sized, tensors
from tests.layout.reports.cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_report(case: Case) -> None:
    held = tensors(*case.tensors, dtype=case.dtype, **{k: v for k, v in case.about.items() if k != "sizes"})
    if sizes := case.about.get("sizes"):
        held = type(held)(held.kind, held.tensors, dict(held.sizes) | sizes, held.tied, held.mode)
    layout = resolved(case.text, held, devices=case.devices, hosts=case.hosts, rules=case.rules)

    unmatched = [f for f in layout.findings if f.code != "SHD207"]
    for expected in case.expect:
        found = [f for f in unmatched if (f.code, f.tensor) == (expected.code, expected.tensor)]
        assert len(found) == 1, (expected, layout.findings)
        (finding,) = found
        unmatched.remove(finding)
        assert (finding.severity, finding.dim) == (expected.severity, expected.dim)
        for part in expected.says:
            assert part in finding.message
        for part in expected.helps:
            assert part in (finding.help or "")
    assert unmatched == []
    for name, axes in case.axes.items():
        assert layout[name].axes == axes


def test_an_override_is_blamed_and_not_the_file() -> None:
    (case,) = (c for c in CASES if c.rules)
    layout = resolved(case.text, tensors(*case.tensors), rules=case.rules)
    (finding,) = (f for f in layout.findings if f.code == "SHD102")
    assert finding.where is not None
    assert finding.where.source == "--rule 1"


@pytest.mark.parametrize("devices", [1, 2])
def test_22_a_mesh_of_eight_on_a_small_machine(devices: int) -> None:
    refused, (finding,) = sized("[data=1, model=8]", devices)
    assert refused is None
    assert (finding.code, finding.severity) == ("SHD103", "error")
    verb = "is" if devices == 1 else "are"
    assert finding.message == f"the mesh takes 8 devices (data=1 * model=8), and there {verb} {devices}"
    assert finding.help is not None
    assert f"[data=1, model={devices}]" in finding.help
    assert "run on 8 devices" in finding.help


def test_22_idle_devices_are_no_accident() -> None:
    refused, (finding,) = sized("[data=1, model=8]", 16)
    assert refused is None
    assert "8 would be idle" in finding.message
    assert sized("[data=4, model=8]", 16)[0] is None


def test_24_two_inferred_axes() -> None:
    loaded = spec.parse("mesh: [dp=-1, mp=-1]\n")
    assert [f.code for f in loaded.findings] == ["SHD104"]


def test_26_an_axis_smaller_than_the_slices_that_it_crosses() -> None:
    refused, (finding,) = sized("[data=-1 @dcn(4), fsdp=32, model=1]", 32)
    assert refused is None
    assert (finding.code, finding.severity) == ("SHD107", "error")
    assert finding.message.startswith("@dcn(4) does not divide data=1")
    assert finding.help is not None
    assert "fsdp=32 @dcn(4)" in finding.help
    assert sized("[data=1, fsdp=32 @dcn(4), model=1]", 32)[1] == ()


def trained(model: str, devices: int, **run: Any) -> Layout:
    """Everything of a training step, split over all devices."""
    text = f"mesh: [fsdp={devices}]\n*: {{embed: fsdp}}\nact: {{batch: fsdp}}\n"
    return resolved(text, inventory(preset(model), Run.model_validate({"batch": devices, "seq": 512, **run})))


def test_44_microbatches_of_a_row_per_device() -> None:
    """Eight rows, two microbatches, four devices: a row each. With four microbatches it would be half a row."""
    assert trained("llama_tiny", 4, batch=8, accum=2).findings == ()
    (finding,) = trained("llama_tiny", 4, batch=8, accum=4).findings
    assert (finding.code, finding.severity) == ("SHD308", "error")
    assert "batch 8 in 4 microbatches of 2 over fsdp=4 is not a whole number of rows per device" in finding.message


@pytest.mark.parametrize(
    ("run", "persistent", "gradients"),
    [
        ({"precision": "f32"}, 12, 4),
        ({"precision": "bf16_compute"}, 12, 4),  # what the person had: weights and two moments in float32
        ({"precision": "bf16_compute", "accum": 2}, 12, 4),
        ({"precision": "bf16_master"}, 14, 2),
        ({"precision": "bf16_master", "accum": 2}, 14, 4),
    ],
)
def test_48_twelve_bytes_per_param_persist(run: dict[str, Any], persistent: int, gradients: int) -> None:
    """LLaMA 7B has 6,738,415,616 params (the paper: 6.7B): 80.9 GB persist, 20.2 on each of four chips of 32 GiB. The
    twenty bytes of the paper count 16-bit copies of weights and gradients besides."""
    held = totals(trained("llama_7b", 4, **run))
    state = [held["param"], held["opt"]]
    step = 4  # the step counter, which every device has
    assert sum(total.nbytes or 0 for total in state) == persistent * 6_738_415_616 + step
    assert sum(total.local_bytes or 0 for total in state) == persistent * 6_738_415_616 // 4 + step
    assert held["grad"].nbytes == gradients * 6_738_415_616


@pytest.mark.parametrize(
    ("precision", "weights", "master"), [("f32", 4, 0), ("bf16_compute", 4, 0), ("bf16_master", 2, 4)]
)
def test_48_factored_moments_persist_in_next_to_nothing(precision: str, weights: int, master: int) -> None:
    """LLaMA 7B under Adafactor. Of a matrix that is split into rows and columns, as many means as it has of both."""
    attention = 4 * (32 * 128 + 32 * 4096)  # embed 4096 and head_dim 128 are the largest dims, and 32 heads are in both
    mlp = 3 * (4096 + 11_008)
    norms = 2 * 4096  # vectors have no factors
    means = 32 * (attention + mlp + norms) + 2 * (32_000 + 4096) + 4096  # 32 layers, embedding and head, last norm
    assert means == 19_089_920
    held = totals(trained("llama_7b", 4, optimizer="adafactor", precision=precision))
    assert held["param"].nbytes == weights * 6_738_415_616
    assert held["opt"].nbytes == master * 6_738_415_616 + 4 * means + 4


def test_48_thirty_billion_on_128_gib_are_hopeless_on_any_mesh() -> None:
    """LLaMA 33B: 32,528,943,616 params, 390 GB."""
    held = totals(trained("llama_33b", 4))
    persistent = (held["param"].nbytes or 0) + (held["opt"].nbytes or 0)
    assert persistent == 12 * 32_528_943_616 + 4
    assert persistent > 128 * 2**30


def test_50_a_file_has_one_mesh() -> None:
    loaded = spec.parse("mesh: [x=2, y=2]\nmesh: [x=4]\narr: [x]\n")
    assert "SHD003" in [f.code for f in loaded.findings]
