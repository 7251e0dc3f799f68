"""A job of a multirun in a process of its own: jobs need different numbers of virtual devices, and a process can make
them once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def run_job(command: str, overrides: Sequence[str], options: Sequence[str], *, heading: bool, stdin: str = "") -> int:
    """`sharddsl COMMAND` with a job's overrides and the options of them all; its exit code."""
    words = [sys.executable, "-P", "-m", "sharddsl", command, *overrides, *options]
    here = str(Path(__file__).parents[2])  # the same sharddsl, whatever the working folder holds
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    if heading:
        print(f"== {' '.join(overrides)}", flush=True)
    done = subprocess.run(words, input=stdin.encode(), env=os.environ | {"PYTHONPATH": path}, check=False)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode
