"""Training speed against the same model in plain JAX: `python -m benchmarks.train`.

A LLaMA of some 20M weights under `llama/fsdp_tp`, on virtual CPU devices. Both sides have the same weights, dtypes,
remat, mesh and batch, donate their state, and must give the same losses, which is checked. Rounds alternate in one
process, so that whatever else the machine does falls on both; the ratio is that of the medians. Exits with 1 if it is
over 1.02.

Then each side is traced, lowered and compiled anew, alternating too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

import jax
import numpy as np

from benchmarks.plain_llama import Plain
from sharddsl import layout, spec
from sharddsl.models import LlamaConfig, inventory
from sharddsl.partition import Partition, virtual_devices
from sharddsl.train.config import Training
from sharddsl.train.data.batch import Batch
from sharddsl.train.metrics import step_bytes
from sharddsl.train.program import Program

BOUND = 1.02

MODEL = LlamaConfig(
    name="llama_20m", vocab=8192, embed=384, layers=6, heads=6, kv_heads=2, head_dim=64, ffn=1024, max_seq=2048
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fsdp", type=int, default=2)
    parser.add_argument("--mp", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--precision", choices=["f32", "bf16_compute"], default="f32")
    parser.add_argument("--remat", choices=["none", "full", "dots"], default="none")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=3, help="of each side in a round")
    parser.add_argument("--compiles", type=int, default=5)
    given = parser.parse_args()

    run = Training(
        batch=given.batch, seq=given.seq, precision=given.precision, remat=given.remat, schedule="constant", warmup=0
    )
    ours = program(run, given.fsdp, given.mp)
    state, batch = ours.init(), some_batch(run)
    plain = Plain(MODEL, run, ours.partition.mesh, jax.device_get(state["params"]), batch)
    sides = [
        Side("sharddsl", ours.lower, state, ours.place(batch)),
        Side("plain JAX", plain.lower, plain.state, plain.batch),
    ]
    print(
        f"{MODEL.name}, fsdp={given.fsdp}, mp={given.mp}, {given.precision}, remat {given.remat}, "
        f"batch {given.batch} × {given.seq}, jax {jax.__version__}"
    )
    check(sides, run)
    for number in range(given.rounds):
        for side in sides if number % 2 else reversed(sides):
            side.steps(given.steps)
    for _ in range(given.compiles):
        for side in sides:
            side.compile_anew()
    return report(sides)


class Side:
    """One of the two: a way to lower its step, and what the step is called with."""

    def __init__(self, name: str, lower: Callable[[], jax.stages.Lowered], state: Any, batch: Any) -> None:
        self.name, self.lower, self.state, self.batch = name, lower, state, batch
        self.step = lower().compile()
        self.step_seconds: list[float] = []
        self.lower_seconds: list[float] = []
        self.compile_seconds: list[float] = []

    def loss(self) -> float:
        """One step more; its loss."""
        self.state, metrics = self.step(self.state, self.batch)
        return float(metrics[0])

    def steps(self, count: int) -> None:
        """Timed steps. The first waits for what the other side left behind, and is not counted."""
        self.loss()
        for _ in range(count):
            began = time.perf_counter()
            self.loss()
            self.step_seconds.append(time.perf_counter() - began)

    def compile_anew(self) -> None:
        """Trace, lower and compile as if for the first time."""
        jax.clear_caches()
        began = time.perf_counter()
        lowered = self.lower()
        done = time.perf_counter()
        lowered.compile()
        self.lower_seconds.append(done - began)
        self.compile_seconds.append(time.perf_counter() - done)


def check(sides: list[Side], run: Training) -> None:
    """Both sides learn the same, or they are not worth comparing."""
    tolerance = 1e-4 if run.precision == "f32" else 1e-2
    losses = [[side.loss() for _ in range(5)] for side in sides]
    np.testing.assert_allclose(losses[0], losses[1], rtol=tolerance)
    print(f"  losses of 5 steps {losses[0][0]:.4f} … {losses[0][-1]:.4f}, the same on both sides within {tolerance:g}")


def report(sides: list[Side]) -> int:
    """Print the medians and the ratios; the exit code."""
    print(f"  {'':<11}{'step':>10}{'middle half':>22}{'memory':>11}{'trace + lower':>16}{'compile':>10}")
    for side in sides:
        low, middle, high = quantiles(side.step_seconds, n=4)
        print(
            f"  {side.name:<11}{middle * 1e3:7.1f} ms{low * 1e3:12.1f} – {high * 1e3:.1f} ms"
            f"{step_bytes(side.step) / 2**20:7.1f} MiB{median(side.lower_seconds):14.2f} s"
            f"{median(side.compile_seconds):8.2f} s"
        )
    ours, plain = sides
    ratios = {
        "step": median(ours.step_seconds) / median(plain.step_seconds),
        "trace + lower": median(ours.lower_seconds) / median(plain.lower_seconds),
        "compile": median(ours.compile_seconds) / median(plain.compile_seconds),
    }
    print(
        "  ratios: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()) + f" (step: at most {BOUND})"
    )
    return 0 if ratios["step"] <= BOUND else 1


def program(run: Training, fsdp: int, mp: int) -> Program:
    """The project's step."""
    loaded = spec.load("llama/fsdp_tp", mesh={"dp": 1, "fsdp": fsdp, "mp": mp}).checked()
    assert loaded.mesh is not None
    sizes, _ = layout.size_mesh(loaded.mesh, devices=None)
    assert sizes is not None
    placed = layout.resolve(loaded, inventory(MODEL, run), sizes)
    return Program(MODEL, run, Partition.of(placed, virtual_devices(sizes.size)))


def some_batch(run: Training) -> Batch:
    """Random tokens, two documents to a row."""
    assert run.batch is not None
    assert run.seq is not None
    tokens = np.random.default_rng(0).integers(0, MODEL.vocab, (run.batch, run.seq + 1), np.int32)
    segments = np.broadcast_to(1 + (np.arange(run.seq) >= run.seq // 2), (run.batch, run.seq)).astype(np.int32)
    return Batch(tokens[:, :-1], tokens[:, 1:], segments)


if __name__ == "__main__":
    sys.exit(main())
