"""Training speed against the same model in plain JAX: `python -m benchmarks.train`.

A LLaMA of some 20M weights under `llama/fsdp_tp`, or another model and spec, on virtual CPU devices. Both sides have
the same weights, dtypes, remat, mesh and batch, donate their state, and must give the same losses, which is checked.
Rounds alternate in one process, so that whatever else the machine does falls on both. The ratio is the median of the
rounds' own, each of its two medians. Exits with 1 if it is over 1.02. The ratio of the CPU time that all threads take
is less disturbed by what else runs.

Then each side is traced, lowered and compiled anew, alternating too: CPU seconds of the thread that traces, and of all
threads that compile. The calls of Python functions while tracing and lowering are nearly the same number in every run.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

import jax
import numpy as np

from benchmarks.plain_llama import LAYOUTS, Plain
from sharddsl import layout, spec
from sharddsl.models import PRESETS, LlamaConfig, inventory
from sharddsl.partition import Partition, virtual_devices
from sharddsl.train.config import Training
from sharddsl.train.data.batch import Batch
from sharddsl.train.metrics import step_bytes
from sharddsl.train.program import Program

BOUND = 1.02

MODEL = LlamaConfig(
    name="llama_20m", vocab=8192, embed=384, layers=6, heads=6, kv_heads=2, head_dim=64, ffn=1024, max_seq=2048
)
MESHES = {"llama/fsdp_tp": "fsdp=2,mp=2", "llama/fsdp": "fsdp=4"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=[MODEL.name, *PRESETS], default=MODEL.name)
    parser.add_argument("--layers", type=int, help="fewer or more than the model has")
    parser.add_argument("--spec", choices=list(LAYOUTS), default="llama/fsdp_tp")
    parser.add_argument("--mesh", help="as in fsdp=2,mp=2: four devices by default")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--precision", choices=["f32", "bf16_compute"], default="f32")
    parser.add_argument("--remat", choices=["none", "full", "dots"], default="none")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=3, help="of each side in a round")
    parser.add_argument("--compiles", type=int, default=5)
    given = parser.parse_args()

    config = MODEL if given.model == MODEL.name else PRESETS[given.model]
    config = config.model_copy(update={"layers": given.layers or config.layers})
    text = given.mesh or MESHES[given.spec]
    mesh = {axis: int(size) for axis, size in (item.split("=") for item in text.split(","))}
    run = Training(
        batch=given.batch, seq=given.seq, precision=given.precision, remat=given.remat, steps=1000, warmup=2, lr=1e-3
    )
    ours, plain = both(config, run, given.spec, mesh)
    print(
        f"{config.name}, {config.layers} layers, {given.spec} on {text}, {given.precision}, remat {given.remat}, "
        f"batch {given.batch} × {given.seq}, jax {jax.__version__}"
    )
    first, last = check(ours, plain, run.precision == "f32")
    print(f"  losses of 5 steps, {first:.4f} … {last:.4f}, are the same on both sides")
    for number in range(given.rounds):
        for side in (ours, plain) if number % 2 else (plain, ours):
            side.round(given.steps)
    for _ in range(given.compiles):
        for side in (ours, plain):
            side.compile_anew()
    return report(ours, plain)


class Side:
    """One of the two: a way to lower its step, and what the step is called with."""

    def __init__(self, name: str, lower: Callable[[], jax.stages.Lowered], state: Any, batch: Any) -> None:
        self.name, self.lower, self.state, self.batch = name, lower, state, batch
        self.step = lower().compile()
        self.step_seconds: list[list[float]] = []  # of each round
        self.cpu_seconds: list[float] = []
        self.lower_seconds: list[float] = []
        self.compile_seconds: list[float] = []

    def loss(self) -> float:
        """One step more; its loss."""
        self.state, metrics = self.step(self.state, self.batch)
        return float(metrics[0])

    def round(self, steps: int) -> None:
        """Timed steps. The first waits for what the other side left behind, and is not counted."""
        self.loss()
        times, cpu = [time.perf_counter()], time.process_time()
        for _ in range(steps):
            self.loss()
            times.append(time.perf_counter())
        self.cpu_seconds.append((time.process_time() - cpu) / steps)
        self.step_seconds.append([end - start for start, end in pairwise(times)])

    def compile_anew(self) -> None:
        """Trace, lower and compile as if for the first time."""
        jax.clear_caches()
        gc.collect()
        began = time.thread_time()
        lowered = self.lower()
        self.lower_seconds.append(time.thread_time() - began)
        began = time.process_time()
        lowered.compile()
        self.compile_seconds.append(time.process_time() - began)

    def calls(self) -> int:
        """Of functions, while the step is traced and lowered."""
        jax.clear_caches()
        with cProfile.Profile() as profile:
            self.lower()
        return sum(entry.callcount for entry in profile.getstats())


def check(ours: Side, plain: Side, exact: bool) -> tuple[float, float]:
    """Both sides learn the same, or they are not worth comparing. The first loss and the last."""
    losses, expected = ([side.loss() for _ in range(5)] for side in (ours, plain))
    np.testing.assert_allclose(losses, expected, rtol=1e-4 if exact else 1e-2)
    return losses[0], losses[-1]


def report(ours: Side, plain: Side) -> int:
    """Print the medians and the ratios; the exit code."""
    print(f"  {'':<11}{'step':>10}{'middle half':>22}{'memory':>11}{'trace + lower':>18}{'compile':>14}")
    for side in (ours, plain):
        low, middle, high = quartiles([seconds for steps in side.step_seconds for seconds in steps])
        print(
            f"  {side.name:<11}{middle * 1e3:7.1f} ms{low * 1e3:12.1f} – {high * 1e3:.1f} ms"
            f"{step_bytes(side.step) / 2**20:7.1f} MiB{median(side.lower_seconds):10.2f} s CPU"
            f"{median(side.compile_seconds):8.2f} s CPU"
        )
    print(f"  sharddsl / plain JAX, medians of {len(ours.step_seconds)} rounds (half of them within)")
    wall = ratios([median(steps) for steps in ours.step_seconds], [median(steps) for steps in plain.step_seconds])
    taken = {
        f"step, at most {BOUND}": wall,
        "step, CPU": ratios(ours.cpu_seconds, plain.cpu_seconds),
        "trace + lower, CPU": ratios(ours.lower_seconds, plain.lower_seconds),
        "compile, CPU": ratios(ours.compile_seconds, plain.compile_seconds),
    }
    for what, (low, middle, high) in taken.items():
        print(f"    {what:<20}{middle:6.3f}  ({low:.3f} – {high:.3f})")
    print(f"    {'trace + lower, calls':<20}{ours.calls() / plain.calls():6.3f}")
    return 0 if wall[1] <= BOUND else 1


def ratios(ours: Sequence[float], plain: Sequence[float]) -> tuple[float, float, float]:
    """Of what was measured one after the other."""
    return quartiles([mine / other for mine, other in zip(ours, plain, strict=True)])


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def both(config: LlamaConfig, run: Training, name: str, mesh: Mapping[str, int]) -> tuple[Side, Side]:
    """The project's step and the plain one, of the same weights and the same batch."""
    program, batch = program_of(config, run, name, mesh), some_batch(config, run)
    state = program.init()
    plain = Plain(
        config, run, LAYOUTS[name], program.partition.mesh, params=jax.device_get(state["params"]), batch=batch
    )
    return (
        Side("sharddsl", program.lower, state, program.place(batch)),
        Side("plain JAX", plain.lower, plain.state, plain.batch),
    )


def program_of(config: LlamaConfig, run: Training, name: str, mesh: Mapping[str, int]) -> Program:
    """The project's step."""
    loaded = spec.load(name, mesh=dict(mesh)).checked()
    assert loaded.mesh is not None
    sizes, _ = layout.size_mesh(loaded.mesh, devices=None)
    assert sizes is not None
    placed = layout.resolve(loaded, inventory(config, run), sizes)
    return Program(config, run, Partition.of(placed, virtual_devices(sizes.size)))


def some_batch(config: LlamaConfig, run: Training) -> Batch:
    """Random tokens, two documents to a row."""
    assert run.batch is not None
    assert run.seq is not None
    tokens = np.random.default_rng(0).integers(0, config.vocab, (run.batch, run.seq + 1), np.int32)
    segments = np.broadcast_to(1 + (np.arange(run.seq) >= run.seq // 2), (run.batch, run.seq)).astype(np.int32)
    return Batch(tokens[:, :-1], tokens[:, 1:], segments)


if __name__ == "__main__":
    sys.exit(main())
