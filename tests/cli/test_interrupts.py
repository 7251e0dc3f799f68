"""A step is not cut in two by Ctrl-C, and everything else is left at once. Each case ends a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from sharddsl.cli.interrupts import interrupts

ROOT = Path(__file__).parents[2]
BEGIN = """\
import hashlib, sys, time
from sharddsl.cli.interrupts import interrupts
def native():  # minutes in C, without the interpreter's lock
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


def run(program: str, *, interrupt: int = 1) -> tuple[int, str]:
    """The exit code, and all that was printed after `ready`, upon which the process is interrupted."""
    words = [sys.executable, "-c", BEGIN + program]
    pipe, into = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(words, env={"PYTHONPATH": str(ROOT)}, stdout=pipe, stderr=into, text=True) as child:
        assert child.stdout is not None
        for _ in range(interrupt):
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    return child.returncode, out


def test_native_code_is_left_at_once_with_last_words() -> None:
    assert run("with interrupts(lambda: print('so far')): native()") == (130, "so far\n")


def test_a_step_is_finished_first() -> None:
    program = """\
with interrupts(lambda: print("no")) as noted, noted.held():
    try:
        print("ready", flush=True)
        time.sleep(0.5)
        print("whole")
        noted.check()
    except KeyboardInterrupt:
        print("told")
"""
    assert run(program) == (0, "whole\ntold\n")


def test_a_second_one_does_not_wait() -> None:
    program = """\
with interrupts(lambda: print("so far")) as noted, noted.held():
    try:
        print("ready", flush=True)
        time.sleep(0.5)
        noted.check()
    except KeyboardInterrupt:
        native()
"""
    assert run(program, interrupt=2) == (130, "so far\n")


def test_last_words_that_fail_do_not_keep_it() -> None:
    assert run("with interrupts(lambda: 1 / 0): native()") == (130, "")


def test_none_is_seen_where_there_was_none() -> None:
    with interrupts() as noted:
        noted.check()


def test_the_handler_before_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_process_that_ignores_them_goes_on_to() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts() as noted:
            signal.raise_signal(signal.SIGINT)
            noted.check()
    finally:
        signal.signal(signal.SIGINT, before)
