"""What a repository knows already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharddsl.findings import UsageError
from sharddsl.lint import baseline
from sharddsl.lint.settings import Settings
from sharddsl.lint.silence import told, without_known
from tests.lint.cases import linted

TEXT = """\
mesh: [fsdp=4, mp=2]
mlp.w_in: [fsdp, None]
*: {embed: fsdp}
act: {batch: fsdp}
cache: {batch: fsdp}
check llama_tiny batch 8 seq 64
"""
"""SHD106 on line 1, SHD203 on line 2."""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "ci" / "baseline.json"
    file.parent.mkdir()
    file.write_text(baseline.written([told(linted(TEXT), Settings())], file))
    return file


def test_what_is_written(file: Path) -> None:
    assert json.loads(file.read_text()) == {
        "version": 1,
        "findings": [
            {"file": "../my.shard", "code": "SHD106", "text": "mesh: [fsdp=4, mp=2]"},
            {"file": "../my.shard", "code": "SHD203", "text": "mlp.w_in: [fsdp, None]"},
        ],
    }


@pytest.mark.parametrize(
    ("text", "new", "gone"),
    [
        (TEXT, [], 0),
        (f"# a line more\n\n{TEXT}", [], 0),  # lines may move
        (TEXT.replace("mlp.w_in: [fsdp, None]\n", ""), [], 1),
        (TEXT.replace("*:", "mlp.w_out: [None, fsdp]\n*:"), ["SHD203"], 0),
        (TEXT.replace("*:", "mlp.w_in: [fsdp, None]\n*:"), ["SHD203"], 0),  # known once, and there twice
        (TEXT.replace("mp=2", "mp=4"), ["SHD106"], 1),  # another line
    ],
)
def test_only_what_is_new_is_told(text: str, new: list[str], gone: int, file: Path) -> None:
    known = baseline.read(file)
    for _ in range(2):  # a report may be made again, after a fix
        report = without_known(told(linted(text), Settings()), known)
        assert [judged.finding.code for judged in report.findings] == new
    assert known.gone == gone


def test_files_that_are_not_looked_at_are_not_gone(file: Path) -> None:
    assert baseline.read(file).gone == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is no baseline of version 1"),
        ('{"version": 2, "findings": []}', "it is no baseline of version 1"),
        ('{"version": 1, "findings": [{"code": 3}]}', "findings[0] is no entry"),
        ('{"version": 1, "findings": [{"code": "SHD304", "count": 0}]}', "findings[0] is no entry"),
        ('{"version": 1, "findings": ["SHD304"]}', "findings[0] is no entry"),
    ],
)
def test_a_file_that_is_none(content: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    file.write_text(content)
    with pytest.raises(UsageError) as raised:
        baseline.read(file)
    assert says in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file; --write-baseline makes it"):
        baseline.read(tmp_path / "b.json")
