"""`sharddsl train`: what it prints where, how it ends, and what it refuses.

Each run starts a backend of its own, so each is a child process.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sharddsl.cli.main import main

ROOT = Path(__file__).parents[2]
TINY = ("model=llama_tiny", "model.layers=1", "spec=llama/fsdp", "spec.mesh.fsdp=2")
LINE = re.compile(
    r"step=(?P<step>\d+) loss=(?P<loss>\d\.\d{5}) grad_norm=\S+ lr=\S+ tokens=\d+ tokens/s=\d+ step_time=\d+\.\d{4}s "
    r"memory=\d+\.\d{1}MiB"
)


def start(*argv: str) -> subprocess.Popen[str]:
    variables = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
    return subprocess.Popen(
        [sys.executable, "-m", "sharddsl", "train", *argv],
        env=variables | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_run_from_scratch(tmp_path: Path) -> None:
    csv, profile = tmp_path / "run.csv", tmp_path / "trace"
    child = start(*TINY, "run.steps=5", "run.lr=1e-2", "run.seq=32", f"--csv={csv}", f"--profile={profile}")
    out, said = child.communicate(timeout=300)
    assert child.returncode == 0, said
    steps = [match for line in out.splitlines() if (match := LINE.fullmatch(line))]
    assert [int(step["step"]) for step in steps] == [1, 2, 3, 4, 5]
    assert len(steps) == len(out.splitlines())
    assert float(steps[4]["loss"]) < float(steps[0]["loss"]) - 0.5
    assert "mesh [fsdp=2]: 2 virtual CPU devices, as there is no accelerator" in said
    assert "from scratch: weights=auto knows none for llama_tiny" in said
    assert "batch 8 of 32 tokens" in said
    assert re.search(r"^5 of 5 steps: loss \d\.\d{4} → \d\.\d{4}, [\d,]+ tokens/s, ", said, re.MULTILINE)
    assert len(csv.read_text().splitlines()) == 6
    (trace,) = profile.rglob("*.trace.json.gz")
    assert gzip.decompress(trace.read_bytes())
    (planes,) = profile.rglob("*.xplane.pb")
    assert b"attn.wq" in planes.read_bytes()  # the model's named scopes


@pytest.mark.slow
def test_ctrl_c_leaves_with_what_was_measured() -> None:
    child = start(*TINY, "run.steps=100000", "run.seq=16")
    assert child.stdout is not None
    assert child.stdout.readline().startswith("step=1 ")
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert re.search(r"^\d+ of 100000 steps: loss ", said, re.MULTILINE)
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_loss_that_is_no_number() -> None:
    child = start(*TINY, "run.lr=1e18", "run.clip=0", "run.warmup=0", "run.seq=16", "--layer-stats", "--quiet")
    out, said = child.communicate(timeout=300)
    assert child.returncode == 2
    assert out.count("\n") == 1
    assert said.startswith("sharddsl: step 2: the loss is nan: training stops here\n")
    assert "embed.w" in said


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_sweep_runs_each_job_on_its_own_devices(tmp_path: Path) -> None:
    child = start(
        "model=llama_tiny", "model.layers=1", "spec=llama/dp,llama/tp", "run.steps=1", "run.seq=16", "--multirun",
        "--devices=2", "run.precision=f32", f"hydra.sweep.dir={tmp_path}",
    )  # fmt: skip
    out, said = child.communicate(timeout=300)
    assert child.returncode == 0, said
    assert re.findall(r"^== .*(spec=\S+)", out, re.MULTILINE) == ["spec=llama/dp", "spec=llama/tp"]
    losses = [float(match["loss"]) for line in out.splitlines() if (match := LINE.fullmatch(line))]
    assert losses[0] == pytest.approx(losses[1], abs=2e-5)
    assert "mesh [dp=2]" in said
    assert "mesh [mp=2]" in said


REFUSED = [
    (("run.seq=9999",), 2, "run.seq=9999 is longer than the 2048 tokens that llama_tiny is made for"),
    (
        ("run.batch=8", "run.accum=3"),
        2,
        "accum=3 does not divide batch=8 into whole microbatches: accum in {1, 2, 4, 8}",
    ),
    (("run.warmup=50",), 2, "warmup=50 is longer than the run of steps=20"),
    (("run.lr=0",), 2, "run.lr: "),
    (("run.mode=decode",), 2, "run.mode=decode: it is training"),
    (("data=none",), 2, "there is no data to train on"),
    (("data=./nothing.txt",), 2, "nothing.txt"),
    (("weights=./nothing",), 2, "weights=./nothing: there is no such file or folder"),
    (("run.steps=1", "--profile=x"), 2, "--profile traces steps 2 to 4"),
    (("--csv=/nowhere/run.csv",), 2, "--csv /nowhere/run.csv: it cannot be written (/nowhere is no folder"),
    (("--tensorboard=/dev/null/run",), 2, "--tensorboard /dev/null/run: it cannot be written (/dev/null is no folder"),
    (("--profile=/dev/null/run",), 2, "--profile /dev/null/run: it cannot be written (/dev/null is no folder"),
    (("--csv=",), 2, "argument --csv: a path is needed, and it is empty"),
    (("--profile=",), 2, "argument --profile: a path is needed, and it is empty"),
    (("--steps=3",), 2, "it is a part of the run: run.steps=…"),
    (("--devices=0",), 2, "'0' is not a number of devices"),
]


@pytest.mark.parametrize(("argv", "code", "message"), REFUSED)
def test_refused_before_jax_starts(
    argv: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *TINY, *argv]) == code
    out, said = capsys.readouterr()
    assert out == ""
    assert message in said.replace("\n  ", " ")


def test_a_batch_that_the_mesh_cannot_share_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=8", "run.batch=12"]) == 1
    assert "batch sizes that this mesh allows are multiples of 8: 8, 16, 24" in capsys.readouterr().err


@pytest.mark.parametrize("override", ["run.lr=1", "run.accum=2", "run.optimizer=adafactor", "run.remat=full"])
def test_generate_refuses_what_only_training_has(override: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", *TINY, "weights=random", "--prompt=x", override]) == 2
    name = override.partition("=")[0]
    assert f"{name}: it is a part of training, and generate does not use it" in capsys.readouterr().err
