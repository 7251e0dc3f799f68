"""CSV and TensorBoard files of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event

from sharddsl.findings import UsageError
from sharddsl.train.records import check, sinks

FIGURES = {"step": 1, "loss": 2.5, "grad_norm": 1.0, "lr": 0.1, "tokens": 100, "tokens/s": 50.0, "step_time": 2.0}
FIGURES["memory"] = 4096


def test_csv_has_every_step_before_the_run_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with sinks(str(path), None) as kept:
        for keep in kept:
            keep(FIGURES)
        assert path.read_text().splitlines() == [
            "step,loss,grad_norm,lr,tokens,tokens/s,step_time,memory,mfu",
            "1,2.5,1.0,0.1,100,50.0,2.0,4096,",
        ]


def test_a_csv_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("precious")
    with pytest.raises(UsageError, match="it is there already"), sinks(str(path), None):
        pass
    assert path.read_text() == "precious"


def test_a_csv_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"), sinks(str(tmp_path / "no" / "run.csv"), None):
        pass


def test_a_run_without_a_step_leaves_no_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with pytest.raises(KeyboardInterrupt), sinks(str(path), None):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_checking_writes_nothing_and_refuses_what_is_there(tmp_path: Path) -> None:
    check(str(tmp_path / "run.csv"), str(tmp_path / "new" / "tb"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run.csv").write_text("precious")
    with pytest.raises(UsageError, match="it is there already"):
        check(str(tmp_path / "run.csv"), None)


def test_tensorboard_writes_event_files(tmp_path: Path) -> None:
    with sinks(None, str(tmp_path / "tb")) as kept:
        for keep in kept:
            keep(FIGURES)
    (file,) = (tmp_path / "tb").iterdir()
    found = {value.tag: (event.step, value.simple_value) for event in events(file) for value in event.summary.value}
    assert found == {f"train/{name}": (1, pytest.approx(value)) for name, value in FIGURES.items() if name != "step"}


def events(file: Path) -> Iterator[Any]:
    """The events of a file of records: a length of 8 bytes and its checksum, the event, its checksum (4 bytes each)."""
    content = file.read_bytes()
    while content:
        length = int.from_bytes(content[:8], "little")
        yield Event.FromString(content[12 : 12 + length])
        content = content[16 + length :]


def test_without_the_package_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UsageError, match=r"pip install 'sharddsl\[tensorboard\]'"), sinks(None, str(tmp_path)):
        pass
