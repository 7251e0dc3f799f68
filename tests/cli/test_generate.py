"""`sharddsl generate`: what it prints where, what it takes from the command line as it is, and what it refuses.

Each run starts a backend of its own, so each is a child process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RANDOM = (
    "model=llama_tiny",
    "model.layers=1",
    "spec=llama/fsdp",
    "spec.mesh.fsdp=8",
    "weights=random",
    "--max-tokens=3",
)


def generate(
    *argv: str, stdin: bytes = b"", cwd: Path = ROOT, path: str = str(ROOT)
) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
    done = subprocess.run(
        [sys.executable, "-m", "sharddsl", "generate", *argv],
        cwd=cwd,
        env=variables | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=300,
    )
    text = [stream.decode(errors="replace") for stream in (done.stdout, done.stderr)]
    return subprocess.CompletedProcess(done.args, done.returncode, *text)


def refused(argv: Sequence[str], message: str, code: int, **options: bytes) -> None:
    done = generate(*argv, **options)  # type: ignore[arg-type]
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


@pytest.mark.slow
def test_says_where_it_runs_and_fills_the_batch() -> None:
    done = generate(*RANDOM, "--prompt", "x")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n")
    said = done.stderr.splitlines()
    assert "mesh [fsdp=8]: 8 virtual CPU devices, as there is no accelerator" in said
    assert "weights: random" in said
    assert "batch 1 → 8, 7 filler rows" in said
    assert any("tokens/s" in line for line in said)


@pytest.mark.slow
def test_quiet_prints_the_text_alone() -> None:
    done = generate(*RANDOM, "--quiet", "--prompt", "x")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_an_axis_of_minus_one_is_one_virtual_device_and_hosts_are_simulated() -> None:
    mesh = ("spec=llama/hsdp", "spec.mesh.dp=2", "spec.mesh.fsdp=-1")
    done = generate("model=llama_tiny", *mesh, "weights=random", "--max-tokens=2", "--prompt=x")
    assert done.returncode == 0, done.stderr
    assert "fsdp=-1 is 1 on virtual devices; another size: spec.mesh.fsdp=N" in done.stderr
    assert "2 hosts are simulated" in done.stderr


PROMPTS = ["Hi! It's (a) test, x=1", "spec=llama/tp", "-m", "--multirun", "~model", "${oc.env:HOME}", "[a,b]", "a=b,c"]


@pytest.mark.slow
def test_prompts_are_text_whatever_they_look_like() -> None:
    """With an override that Hydra reads, so that it had its chance."""
    done = generate(*RANDOM, "++run.scan=true", *(f"--prompt={prompt}" for prompt in PROMPTS))
    assert done.returncode == 0, done.stderr
    headings = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert headings == [f"[{place}/8] {prompt}" for place, prompt in enumerate(PROMPTS, 1)]
    assert "filler" not in done.stderr


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_prompt_from_stdin_equals_one_in_an_option() -> None:
    from_stdin = generate(*RANDOM, "--quiet", "--prompt", "-", stdin="Grüße aus stdin\n".encode())
    from_option = generate(*RANDOM, "--quiet", "--prompt", "Grüße aus stdin")
    assert from_stdin.returncode == from_option.returncode == 0, from_stdin.stderr
    assert from_stdin.stdout == from_option.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
def test_sampling_depends_on_the_seed() -> None:
    argv = ("--quiet", "--prompt=x", "--temperature=1", "--top-k=100", "--top-p=0.99", "--max-tokens=16")
    first, other = (generate(*RANDOM, *argv, f"--seed={seed}") for seed in (1, 2))
    assert first.returncode == other.returncode == 0, first.stderr
    assert first.stdout != other.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
def test_multirun_runs_each_job_on_its_own_devices(tmp_path: Path) -> None:
    done = generate(
        "--multirun", "model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=1,2", "weights=random", "--max-tokens=2",
        "--prompt=-", stdin=b"from stdin", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    headings = [line for line in done.stdout.splitlines() if line.startswith("==")]
    assert [heading.split()[3] for heading in headings] == ["spec.mesh.fsdp=1", "spec.mesh.fsdp=2"]
    assert "mesh [fsdp=1]: 1 virtual CPU device," in done.stderr
    assert "mesh [fsdp=2]: 2 virtual CPU devices," in done.stderr


@pytest.mark.parametrize(
    ("argv", "message", "code"),
    [
        (
            ("model=smollm2_135m", "spec=llama/fsdp_tp", "spec.mesh.fsdp=2", "spec.mesh.mp=2", "--prompt=x"),
            "SHD303 splits-a-head: mp=2 does not divide the 9 heads",
            1,
        ),
        (("model=llama3_8b", "spec=llama/fsdp", "--prompt=x"), "weights=PATH, a GGUF file", 2),
        (
            ("model=smollm2_135m", "model.layers=2", "spec=llama/fsdp", "--prompt=x"),
            "other values than the preset's",
            2,
        ),
        (RANDOM, "no prompt: give --prompt TEXT (or - for stdin), or data=demo", 2),
        ((*RANDOM, "--max-tokens=5000", "--prompt=x"), "made for 2048 tokens, and a prompt of 1 with 5000 new ones", 2),
        ((*RANDOM, "--prompt=x", "--temperature=1", "--top-p=0"), "top_p=0.0: it is a probability over 0", 2),
        ((*RANDOM, "--prompt=x", "--temperature=1e-50"), "temperature=1e-50: it is 0 (greedy), or from", 2),
        ((*RANDOM, "--prompt=x", f"--seed={2**32}"), "'4294967296' is not a seed of 32 bits", 2),
        ((*RANDOM, "run.batch=4", "--prompt=x"), "run.batch: the prompts and --max-tokens decide it", 2),
        ((*RANDOM, "run.mode=decode", "--prompt=x"), "run.mode=decode: generate runs prefill and then decode", 2),
        ((*RANDOM, "run=train", "--prompt=x"), "run.mode=train: generate runs prefill and then decode", 2),
        ((*RANDOM, "--devices=4", "--prompt=x"), "no option `--devices=4`; it takes the accelerators there are", 2),
        ((*RANDOM, "spec.mesh.fsdp=5000", "--prompt=x"), "at most 1,024 virtual CPU devices", 2),
        ((*RANDOM, "data.prompts=['']"), "generate: an empty prompt: there is nothing to continue", 2),
        ((*RANDOM, "weights=''", "--prompt=x"), "weights= is empty: give auto, random", 2),
        ((*RANDOM, "model.layers=200000000", "--prompt=x"), "8 virtual CPU devices together, and this machine has", 2),
        ((*RANDOM, "spec.mesh.fsdp=3", "--prompt=x"), "SHD302 does-not-divide", 1),
        ((*RANDOM, "weights=/nowhere.gguf", "--prompt=x"), "weights=/nowhere.gguf: there is no such file", 2),
        ((*RANDOM, "weights=README.md", "--prompt=x"), "README.md", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refused(argv: tuple[str, ...], message: str, code: int) -> None:
    refused(argv, message, code)


def test_a_prompt_that_is_not_utf_8_is_refused() -> None:
    refused((*RANDOM, "--prompt", os.fsdecode(b"caf\xe9")), "--prompt is not UTF-8 text (at character 4)", 2)
    refused((*RANDOM, "--prompt", "-"), "stdin is not UTF-8 text (at byte 3)", 2, stdin=b"caf\xe9")
