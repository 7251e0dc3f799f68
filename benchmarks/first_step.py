"""How long it takes from a command to the first finished step: `python -m benchmarks.first_step [RUNS]`.

Whole processes, on four virtual CPU devices: `sharddsl train` of llama_tiny, a script that trains the same model in
plain JAX (random weights by one jitted function, the step, nothing checked or printed before it), and, as the floor of
both, the imports alone. They run in turn, so that a busy machine slows all of them; medians of wall time to the first
step, and of the process's CPU time. Where `sharddsl train` spends it is told by what it says on stderr, as it says it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
FIRST = "step=1 "
"""What both begin the line with that says that a step is done."""
STAGES = {
    "starting jax …": "jax, layout",
    "reading the data …": "data",
    "making random weights from run.seed=0 …": "weights, moments",
    "compiling the step …": "compile, step",
}
"""What begins with each of these lines on stderr."""
COMMANDS = {
    "sharddsl train": ["-m", "sharddsl", "train", "model=llama_tiny", "spec=llama/fsdp_tp", "spec.mesh.fsdp=2",
                       "spec.mesh.mp=2", "run.steps=1"],
    "plain JAX": ["-m", "benchmarks.first_step", "--plain"],
    "floor: imports": ["-c", f"import jax, flax.nnx, optax; print({FIRST!r})"],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Taken:
    """What one process took: seconds to its first step, CPU seconds to its end, and how long each of its stages was."""

    wall: float
    cpu: float
    stages: dict[str, float]


def main(runs: int) -> None:
    """Print the medians."""
    for arguments in COMMANDS.values():  # bytecode and the disk's cache are there
        to_first_step(arguments)
    taken: dict[str, list[Taken]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            taken[name].append(to_first_step(arguments))
    for name, all_runs in taken.items():
        wall = [run.wall for run in all_runs]
        spread = f"({min(wall):.2f} to {max(wall):.2f}, {runs} runs)"
        print(f"{name:<16}{median(wall):7.2f} s   {spread:<28}{median(run.cpu for run in all_runs):7.2f} s CPU")
    ours, plain = taken["sharddsl train"], taken["plain JAX"]
    wall_ratio = median(mine.wall / other.wall for mine, other in zip(ours, plain, strict=True))
    cpu_ratio = median(mine.cpu / other.cpu for mine, other in zip(ours, plain, strict=True))
    print(f"sharddsl train / plain JAX: {wall_ratio:.2f}, in CPU time {cpu_ratio:.2f} (medians of the rounds)")
    for stage in ours[0].stages:
        print(f"  {stage:<24}{median(run.stages[stage] for run in ours):7.2f} s")


def to_first_step(arguments: Sequence[str]) -> Taken:
    """What a process takes to its first step."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command, merged = [sys.executable, *arguments], subprocess.STDOUT
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    marks = [("python, config", began)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=merged, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            now = time.perf_counter()
            if line.rstrip() in STAGES:
                marks.append((STAGES[line.rstrip()], now))
            elif line.startswith(FIRST):
                break
        else:
            raise SystemExit(f"{' '.join(arguments)} ended without a step")
        child.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    stages = {name: end - start for (name, start), (_, end) in pairwise([*marks, ("", now)])}
    return Taken(now - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, stages)


def plain_first_step() -> None:
    """The plain side's process."""
    import jax

    jax.config.update("jax_num_cpu_devices", 4)
    import numpy as np

    from benchmarks.plain_llama import LAYOUTS, Plain, shapes
    from sharddsl.models import preset
    from sharddsl.train.config import Training
    from sharddsl.train.data.batch import Batch

    config, run = preset("llama_tiny"), Training(batch=8, seq=128)
    leaves, structure = jax.tree.flatten(shapes(config), is_leaf=lambda x: isinstance(x, tuple))

    @jax.jit
    def draw(key: jax.Array) -> list[jax.Array]:
        keys = jax.random.split(key, len(leaves))
        return [0.02 * jax.random.normal(key, shape) for key, shape in zip(keys, leaves, strict=True)]

    params = jax.tree.unflatten(structure, jax.device_get(draw(jax.random.key(0))))
    text = np.random.default_rng(0).integers(0, 256, (8, 129), np.int32)
    mesh = jax.make_mesh((2, 2), ("fsdp", "mp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    batch = Batch(text[:, :-1], text[:, 1:], np.ones((8, 128), np.int32))
    plain = Plain(config, run, LAYOUTS["llama/fsdp_tp"], mesh, params=params, batch=batch)
    _, (loss, _) = plain.lower().compile()(plain.state, plain.batch)
    print(f"{FIRST}loss={float(loss):.5f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--plain"]:
        plain_first_step()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
