"""How long a cold `sharddsl show` takes, against `import jax` and against the floor of its own imports.

    python benchmarks/show.py [RUNS]

The command is the largest preset's table, printed and thrown away. The floor is what it cannot do without: the parser
from its saved table, pydantic with the models that it validates, and argparse; no Hydra. They run in turn, so that a
busy machine slows all of them; medians are reported. Exits with 1 if `show` takes more than 0.45 of `import jax`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
BOUND = 0.45

SHOW = ["show", "model=llama3_1_405b", "spec=llama/fsdp_tp", "spec.mesh.fsdp=512", "spec.mesh.mp=8"]
COMMANDS = {
    "import jax": ["-c", "import jax"],
    "sharddsl show": ["-m", "sharddsl", *SHOW],
    "floor: imports": ["-c", "import argparse, sharddsl.spec.model, sharddsl.syntax; sharddsl.syntax.parse('')"],
    "python alone": ["-c", "pass"],
}


def seconds(arguments: Sequence[str]) -> float:
    """The wall time of one fresh interpreter."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main(runs: int) -> int:
    """Print the medians; the exit code."""
    for arguments in COMMANDS.values():  # compiled bytecode, the parser's table and the disk's cache are there
        seconds(arguments)
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    medians = {name: median(times) for name, times in taken.items()}
    for name, value in medians.items():
        print(f"{name:<16}{value * 1000:7.0f} ms   (fastest {min(taken[name]) * 1000:.0f}, of {runs})")
    ratio = medians["sharddsl show"] / medians["import jax"]
    print(f"show / import jax: {ratio:.2f} (at most {BOUND})")
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
