"""`sharddsl bench`: what it compares, and what it refuses. Each run starts a backend, so each is a child process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sharddsl.cli.main import main

ROOT = Path(__file__).parents[2]
TINY = ("model=llama_tiny", "model.layers=1", "run.seq=16", "run.precision=f32")


def start(*argv: str, cwd: Path) -> subprocess.Popen[str]:
    variables = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
    return subprocess.Popen(
        [sys.executable, "-m", "sharddsl", "bench", *TINY, *argv],
        env=variables | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
    )  # fmt: skip


@pytest.mark.slow
def test_specs_on_the_devices_of_the_largest_mesh_with_one_batch(tmp_path: Path) -> None:
    """`six` takes six devices and batches of 3; dp's axis is inferred, from six devices too. Both take 12 rows: the
    first multiple of 3 and 6 from 8 on. The spec in between does not fit, and is not compared."""
    (tmp_path / "six.shard").write_text("mesh: [dp=3, mp=2]\n*: replicated\nact: {batch: dp}\n")
    (tmp_path / "heads.shard").write_text("mesh: [mp=7]\n*: replicated\nattn.wq: [None, mp]\n")
    child = start(
        "run.steps=2", "spec=./six.shard,./heads.shard,llama/dp", "--format=json", "--plot=speed.svg", cwd=tmp_path
    )
    out, said = child.communicate(timeout=300)
    assert child.returncode == 1, said
    assert "spec=./heads.shard" in said
    assert "SHD303" in said
    found = json.loads(out)
    assert [(run["label"], run["mesh"], run["run"]["batch"]) for run in found["runs"]] == [
        ("./six.shard", {"dp": 3, "mp": 2}, 12),
        ("llama/dp", {"dp": 6}, 12),
    ]
    six, dp = found["runs"]
    assert six["losses"] == pytest.approx(dp["losses"], abs=2e-5)
    assert len(six["step_seconds"]["all"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heads.shard", "six.shard", "speed.svg"]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_ctrl_c_compares_what_was_done(tmp_path: Path) -> None:
    """The first run is done when the second one begins, which would take hours."""
    child = start("spec=llama/dp", "run.steps=1,100000", cwd=tmp_path)
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("100000 steps …"):
            break
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "run.steps=1 " in out
    assert "run.steps=100000" not in out


def test_what_is_wrong_with_a_sweep_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *TINY, "spec=llama/dp,llama/nothing"]) == 2
    assert "spec=llama/nothing: there is no such spec" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("spec=llama/dp,llama/tp", "run.seq=9999"), 2, "run.seq=9999 is longer than the 2048 tokens"),
        (("spec=llama/dp", "--steps=3"), 2, "it is a part of the run: run.steps=…"),
        (("spec=llama/dp", "--plot=/nowhere/x.svg"), 2, "--plot /nowhere/x.svg: it cannot be written"),
        (("spec=llama/dp", "run.mode=decode"), 2, "run.mode=decode: it is training that is run here"),
        (("spec=llama/dp", "data=none"), 2, "there is no data to train on"),
    ],
)
def test_refused_before_jax_starts(
    argv: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "model=llama_tiny", *argv]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in re.sub(r"\n +", " ", printed.err)
    assert "starting jax" not in printed.err
