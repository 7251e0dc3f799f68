"""How long a cold `sharddsl show` takes, against `import jax` and against the floor of its own imports.

    python benchmarks/show.py [RUNS]

The command is the largest preset's table, printed and thrown away. The floor is what it cannot do without: the parser
from its saved table, pydantic with the models that it validates, and argparse, in an interpreter that starts as the
program does; no Hydra. They run in turn, so that a busy machine slows all of them; medians are reported, of wall time
and of CPU time, which other programs disturb less. Exits with 1 if `show` takes more than 0.45 of `import jax`.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
BOUND = 0.45

SHOW = ["show", "model=llama3_1_405b", "spec=llama/fsdp_tp", "spec.mesh.fsdp=512", "spec.mesh.mp=8"]
FLOOR = """\
import gc, os
gc.disable()
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
import argparse, sharddsl.spec.model, sharddsl.syntax
sharddsl.syntax.parse("")
gc.freeze()
"""
COMMANDS = {
    "import jax": ["-c", "import jax"],
    "sharddsl show": ["-m", "sharddsl", *SHOW],
    "floor: imports": ["-c", FLOOR],
    "python alone": ["-c", "pass"],
}
# An installed package has its bytecode beside it; a checkout must be allowed to write it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True)
class Seconds:
    """What one fresh interpreter took."""

    wall: float
    cpu: float


def measured(arguments: Sequence[str]) -> Seconds:
    """The time of one fresh interpreter."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main(runs: int) -> int:
    """Print the medians; the exit code."""
    for arguments in COMMANDS.values():  # compiled bytecode, the parser's table and the disk's cache are there
        measured(arguments)
    taken: dict[str, list[Seconds]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            taken[name].append(measured(arguments))
    wall = {name: median(seconds.wall for seconds in all_runs) for name, all_runs in taken.items()}
    cpu = {name: median(seconds.cpu for seconds in all_runs) for name, all_runs in taken.items()}
    for name in COMMANDS:
        print(f"{name:<16}{wall[name] * 1000:7.0f} ms wall{cpu[name] * 1000:7.0f} ms CPU   (medians of {runs})")
    ratio, cpu_ratio = (times["sharddsl show"] / times["import jax"] for times in (wall, cpu))
    print(f"show / import jax: {ratio:.2f} (at most {BOUND}), in CPU time {cpu_ratio:.2f}")
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
