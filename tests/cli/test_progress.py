"""Progress on stderr: lines for a log, bars on a terminal, silence when asked."""

from __future__ import annotations

import io
import sys

import pytest

from sharddsl.cli import progress as module
from sharddsl.cli.progress import Lines, Silent, Terminal, progress

Capture = pytest.CaptureFixture[str]


class Clock:
    """A clock that a test turns."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_the_kind_suits_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress(quiet=True), Silent)
    assert isinstance(progress(quiet=False), Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(progress(quiet=False), Terminal)


def test_lines_come_every_few_seconds_and_at_the_end(capsys: Capture, clock: Clock) -> None:
    lines = Lines()
    for second, done in enumerate((0, 10, 20, 30, 40, 50, 60, 80, 100, 100)):
        clock.now = 1000.0 + second
        lines.amount("loading", done * 1_000_000, 100_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "loading: 0.0 of 100.0 MB",
        "loading: 50.0 of 100.0 MB",
        "loading: 100.0 of 100.0 MB",
    ]


def test_an_amount_without_a_total(capsys: Capture, clock: Clock) -> None:
    Lines().amount("fetching", 2_500_000, 0)
    assert capsys.readouterr().err == "fetching: 2.5 MB\n"


@pytest.mark.parametrize(("taken", "end"), [(0.5, []), (3.25, ["compiling: done in 3.2 s"])])
def test_only_a_slow_step_says_when_it_is_done(capsys: Capture, clock: Clock, taken: float, end: list[str]) -> None:
    with Lines().step("compiling"):
        clock.now += taken
    assert capsys.readouterr().err.splitlines() == ["compiling …", *end]


def test_silence(capsys: Capture) -> None:
    silent = Silent()
    silent.say("a line")
    silent.amount("loading", 1, 2)
    with silent.step("compiling"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_keeps_lines_and_shows_work_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    terminal = Terminal()
    terminal.amount("loading [w]", 1_000_000, 2_000_000)
    terminal.say("mesh [dp=1]")
    with terminal.step("compiling"):
        pass
    terminal.amount("loading", 2_000_000, 2_000_000)
    assert "mesh [dp=1]" in screen.getvalue()


def test_what_changes_its_length_is_right_of_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that stays where it is as names of tensors come and go."""
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("FORCE_COLOR", "1")
    terminal = Terminal()
    terminal.amount("a.name", 1_000_000, 2_000_000)
    terminal.say("done")
    line = next(line for line in screen.getvalue().splitlines() if "a.name" in line)
    assert line.index("━") < line.index("1.0/2.0 MB") < line.index("a.name")
