"""Jobs of a multirun: how they end."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from sharddsl.cli import children

SAYS_GOODBYE = """
import sys, time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.6)
    sys.exit(130)
"""


def a_child(code: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


def test_an_interrupted_job_has_time_to_say_what_it_measured() -> None:
    with a_child(SAYS_GOODBYE) as child:
        child.send_signal(signal.SIGINT)
        children._let_end(child)
    assert child.returncode == 130


def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_LAST_WORDS_SECONDS", 0.1)
    with a_child("import time; print('ready', flush=True); time.sleep(60)") as child:
        children._let_end(child)
    assert child.returncode == -signal.SIGKILL
