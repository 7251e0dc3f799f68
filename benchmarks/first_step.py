"""How long it takes from a command to the first finished step: `python -m benchmarks.first_step [RUNS]`.

Whole processes, on four virtual CPU devices: `sharddsl train` of llama_tiny, a script that trains the same model in
plain JAX (random weights by one jitted function, the step, nothing checked or printed before it), and, as the floor of
both, the imports alone. They run in turn, so that a busy machine slows all of them; medians of wall time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
FIRST = "step=1 "
"""What both begin the line with that says that a step is done."""
COMMANDS = {
    "sharddsl train": ["-m", "sharddsl", "train", "model=llama_tiny", "spec=llama/fsdp_tp", "spec.mesh.fsdp=2",
                       "spec.mesh.mp=2", "run.steps=1"],
    "plain JAX": ["-m", "benchmarks.first_step", "--plain"],
    "floor: imports": ["-c", f"import jax, flax.nnx, optax; print({FIRST!r})"],
}  # fmt: skip


def main(runs: int) -> None:
    """Print the medians."""
    for arguments in COMMANDS.values():  # bytecode and the disk's cache are there
        to_first_step(arguments)
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            taken[name].append(to_first_step(arguments))
    for name, seconds in taken.items():
        print(f"{name:<16}{median(seconds):7.2f} s   ({min(seconds):.2f} to {max(seconds):.2f}, {runs} runs)")
    print(f"sharddsl train / plain JAX: {median(taken['sharddsl train']) / median(taken['plain JAX']):.2f}")


def to_first_step(arguments: Sequence[str]) -> float:
    """Seconds from the start of a process to its first step."""
    began = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=pipe, stderr=null, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(FIRST):
                taken = time.perf_counter() - began
                child.communicate()
                return taken
    raise SystemExit(f"{' '.join(arguments)} ended without a step: rc {child.returncode}")


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
