"""How a run's steps are shown."""

from __future__ import annotations

import io

import pytest

from sharddsl.cli.steps import Bar, Lines, line_of, steps_for

FIGURES = {
    "step": 1, "loss": 6.234561, "grad_norm": 3.70812, "lr": 3e-4, "tokens": 512, "tokens/s": 806.6,
    "step_time": 0.63432, "memory": 22_124_544, "mfu": 0.4567,
}  # fmt: skip


def test_a_line() -> None:
    assert line_of(FIGURES) == (
        "step=1 loss=6.23456 grad_norm=3.708 lr=0.0003 tokens=512 tokens/s=807 step_time=0.6343s "
        "memory=21.1MiB mfu=45.7%"
    )


@pytest.mark.parametrize(("every", "shown"), [(1, [1, 2, 3, 4, 5]), (2, [1, 2, 4, 5]), (10, [1, 5])])
def test_every_so_many_steps_and_the_first_and_the_last(every: int, shown: list[int]) -> None:
    out = io.StringIO()
    lines = Lines(out, 5, every)
    for step in range(1, 6):
        lines.show({"step": step})
    assert out.getvalue() == "".join(f"step={step}\n" for step in shown)


def test_a_bar_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = io.StringIO()
    assert isinstance(steps_for(out, 5, 1), Lines)
    monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
    bar = steps_for(out, 5, 1)
    assert isinstance(bar, Bar)
    bar.show(FIGURES | {"step": 5})
    bar.close()
    said = capsys.readouterr().out
    assert "5/5" in said
    assert "loss 6.2346, 807 tokens/s, 45.7% MFU, 21.1 MiB per device" in said
