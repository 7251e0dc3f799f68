"""What `sharddsl bench` prints, of figures written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sharddsl.cli import plot
from sharddsl.cli.benching import labels
from sharddsl.cli.comparison import Measured, to_json, to_text
from sharddsl.config.jobs import Job
from sharddsl.config.schema import Config, SpecChoice
from sharddsl.findings import UsageError
from sharddsl.layout.model import MeshSizes
from sharddsl.models import PRESETS
from sharddsl.train.config import Training
from sharddsl.train.loop import Record
from sharddsl.train.metrics import Gauge

CPU: Any = type("Device", (), {"device_kind": "cpu", "memory_stats": lambda self: None})()


def config(**run: Any) -> Config:
    return Config(
        model=PRESETS["llama_tiny"], spec=SpecChoice(ref="llama/dp"), run=Training(batch=8, seq=100, steps=5, **run)
    )


def measured(label: str, axis: str, seconds: list[float], losses: list[float], of: Config | None = None) -> Measured:
    of = of or config()
    return Measured(
        label=label,
        config=of,
        mesh=MeshSizes({axis: 4}),
        trace_seconds=0.61,
        compile_seconds=3.7,
        state_bytes=2**20,
        gauge=Gauge(of.model, of.run, [CPU], planned_bytes=3 * 2**20),
        steps=[
            Record(n, loss, 1.0, 1e-3, 800, took) for n, (loss, took) in enumerate(zip(losses, seconds, strict=True), 1)
        ],
    )


LOSSES = [6.0, 5.5, 5.25, 5.2, 5.125]
RUNS = [
    measured("llama/dp", "dp", [9.0, 0.2, 0.3, 0.4, 0.5], LOSSES),
    measured("llama/fsdp", "fsdp", [9.0, 0.1, 0.2, 0.2, 0.02], [*LOSSES[:4], 5.12502]),
]


def test_a_table() -> None:
    """The first step is not counted: medians of .2 .3 .4 .5 and of .02 .1 .2 .2; 800 tokens over those."""
    assert to_text(RUNS, 80).splitlines() == [
        "            compile                step  tokens/s   memory",
        "              trace         middle half  relative    state    loss",
        "llama/dp      3.7 s             0.350 s     2,286  3.0 MiB  5.1250",
        "[dp=4]        0.6 s   0.275 s – 0.425 s     1.00×  1.0 MiB",
        "",
        "llama/fsdp    3.7 s             0.150 s     5,333  3.0 MiB  5.1250",
        "[fsdp=4]      0.6 s  0.0800 s – 0.200 s     2.33×  1.0 MiB",
        "",
        "step: the median, and what half of the steps took; tokens/s: of all devices together",
        "memory: all that a step takes on a device, params and optimizer state (state) among it",
        "the losses of step 5 are within 2e-05 of each other",
    ]


@pytest.mark.parametrize("run", [{"lr": 1e-2}, {"seed": 7}, {"precision": "f32"}])
def test_losses_that_need_not_agree_are_not_compared(run: dict[str, Any]) -> None:
    other = measured("other", "dp", [1.0] * 5, LOSSES, config(**run))
    assert "the losses of" not in to_text([RUNS[0], other], 80)


@pytest.mark.parametrize("run", [{"remat": "full"}, {"scan": False}, {"accum": 2}])
def test_what_a_run_computes_again_or_in_parts_leaves_its_losses(run: dict[str, Any]) -> None:
    other = measured("other", "dp", [1.0] * 5, LOSSES, config(**run))
    assert "the losses of step 5 are equal" in to_text([RUNS[0], other], 80)


def test_a_long_label_takes_lines_and_not_columns() -> None:
    run = measured("spec=llama/dp run.remat=full", "dp", [1.0] * 5, LOSSES)
    lines = to_text([run], 80).splitlines()
    assert [line.split("  ")[0] for line in lines[2:5]] == ["spec=llama/dp", "run.remat=full", "[dp=4]"]


def test_data() -> None:
    found = to_json(RUNS, {"jax": "1.2.3", "device": "cpu"})
    first = found["runs"][0]
    assert (found["version"], found["jax"], found["device"]) == (1, "1.2.3", "cpu")
    assert (first["label"], first["model"]["layers"], first["run"]["seq"], first["mesh"]) == (
        "llama/dp", 4, 100, {"dp": 4},
    )  # fmt: skip
    assert first["step_seconds"]["median"] == pytest.approx(0.35)
    assert first["step_seconds"]["quartiles"] == pytest.approx([0.275, 0.425])
    assert first["step_seconds"]["all"] == [9.0, 0.2, 0.3, 0.4, 0.5]
    assert first["tokens_per_second"] == pytest.approx(800 / 0.35)
    assert first["mfu"] is None
    assert (first["state_bytes_per_device"], first["memory_bytes_per_device"]) == (2**20, 3 * 2**20)
    assert first["losses"] == LOSSES


@pytest.mark.parametrize(("name", "begins"), [("speed.svg", b"<?xml"), ("speed.PNG", b"\x89PNG"), ("s.pdf", b"%PDF")])
def test_a_picture(name: str, begins: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    plot.check(str(path))
    assert not path.exists()
    plot.save(RUNS, "llama_tiny on cpu", str(path))
    assert path.read_bytes().startswith(begins)


def test_a_picture_that_cannot_be_made(tmp_path: Path) -> None:
    there = tmp_path / "there.svg"
    there.write_text("precious")
    for target, message in [
        (there, "it is there already"),
        (tmp_path / "speed.xyz", "the end of the name says the kind: avif, "),
        (tmp_path / "speed", "the end of the name says the kind"),
        (tmp_path / "no" / "speed.svg", "it cannot be written"),
    ]:
        with pytest.raises(UsageError, match=message):
            plot.check(str(target))
    assert there.read_text() == "precious"


def job(*overrides: str) -> Job:
    return Job(config(), overrides)


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([job("model=a", "spec=x"), job("model=a", "spec=y")], ["x", "y"]),
        ([job("run.remat=none"), job("run.remat=full")], ["run.remat=none", "run.remat=full"]),
        (
            [job("spec=x", "run.seq=8", "run.lr=1"), job("spec=y", "run.seq=16", "run.lr=1")],
            ["spec=x run.seq=8", "spec=y run.seq=16"],
        ),
        ([job("model=a", "spec=x")], ["llama/dp"]),
    ],
)
def test_a_run_is_called_by_what_sets_it_apart(jobs: list[Job], expected: list[str]) -> None:
    assert labels(jobs) == expected
