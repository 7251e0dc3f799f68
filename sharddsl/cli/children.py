"""A job of a multirun in a process of its own: jobs need different numbers of virtual devices, and a process can make
them once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_LAST_WORDS_SECONDS = 10.0
"""How long an interrupted job may take to end by itself."""


def run_job(command: str, overrides: Sequence[str], options: Sequence[str], *, heading: bool, stdin: str = "") -> int:
    """`sharddsl COMMAND` with a job's overrides and the options of them all; its exit code."""
    words = [sys.executable, "-P", "-m", "sharddsl", command, *overrides, *options]
    here = str(Path(__file__).parents[2])  # the same sharddsl, whatever the working folder holds
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    if heading:
        print(f"== {' '.join(overrides)}", flush=True)
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}) as child:
        try:
            child.communicate(stdin.encode())
        except KeyboardInterrupt:
            _let_end(child)
            raise
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _let_end(child: subprocess.Popen[bytes]) -> None:
    """Wait for a job that the terminal has interrupted too: it finishes its step and says what it measured."""
    try:
        child.wait(_LAST_WORDS_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
