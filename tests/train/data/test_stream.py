"""From files to batches, and which files are taken."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from sharddsl.config.groups import DATA
from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer import ByteTokenizer
from sharddsl.train.data.batch import Batch
from sharddsl.train.data.config import Sources
from sharddsl.train.data.files import find
from sharddsl.train.data.stream import batches


def first(count: int, *files: Path, batch: int = 2, seq: int = 4, seed: int = 0) -> list[Batch]:
    sources = Sources(files=tuple(map(str, files)))
    return list(islice(batches(sources, ByteTokenizer(), batch=batch, seq=seq, seed=seed, vocab=256), count))


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_files_of_every_format_in_one_epoch(tmp_path: Path) -> None:
    files = [
        written(tmp_path / "a.txt", b"abcde"),
        written(tmp_path / "b.jsonl", b'{"text": "fghi"}\n{"text": "j"}\n{"text": "klmn"}'),
        written(tmp_path / "c.bin", np.array([1, 2, 3, 4, 5], "<u2").tobytes()),
    ]
    (batch,) = first(1, *files, batch=4)
    rows = [
        tuple(tuple(row.tolist()) for row in rows)
        for rows in zip(batch.tokens, batch.targets, batch.segments, strict=True)
    ]
    full = (1, 1, 1, 1)
    assert sorted(rows) == [
        ((1, 2, 3, 4), (2, 3, 4, 5), full),
        ((97, 98, 99, 100), (98, 99, 100, 101), full),
        ((102, 103, 104, 105), (103, 104, 105, -1), full),
        ((107, 108, 109, 110), (108, 109, 110, -1), full),
    ]


def test_tiny_data_is_repeated(tmp_path: Path) -> None:
    (batch,) = first(1, written(tmp_path / "a.txt", b"ab"), seq=5)
    np.testing.assert_array_equal(batch.tokens, [[97, 98, 97, 98, 0]] * 2)
    np.testing.assert_array_equal(batch.targets, [[98, -1, 98, -1, -1]] * 2)
    np.testing.assert_array_equal(batch.segments, [[1, 1, 2, 2, 0]] * 2)


def test_the_same_batches_for_the_same_seed(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", bytes(range(1, 101)))
    one, same, other = (first(9, file, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("content", [b"a", b"a\fb\f", b" \n"])
def test_nothing_to_predict(tmp_path: Path, content: bytes) -> None:
    file = written(tmp_path / "a.txt", content)
    message = f"the data holds no document of two tokens, so there is nothing to predict: {file}"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        first(1, file)


def test_a_token_file_that_vanishes_during_the_run(tmp_path: Path) -> None:
    file = written(tmp_path / "a.npy", b"")
    np.save(file, np.arange(100, dtype=np.uint8))
    endless = batches(Sources(files=(str(file),)), ByteTokenizer(), batch=1, seq=4, seed=0, vocab=100)
    next(endless)
    file.unlink()
    with pytest.raises(UsageError) as error:
        list(islice(endless, 100))
    assert str(error.value) == f"data file {file}: it is not there any more"


def test_the_demo_text() -> None:
    (file,) = find(DATA["demo"])
    text = file.path.read_bytes()
    assert text.isascii()
    assert 60_000 < len(text) < 150_000
    assert [page.split(b".")[0] for page in text.split(b"\f")][::11] == [b"CHAPTER I", b"CHAPTER XII"]


@pytest.mark.parametrize(
    ("name", "format_", "message"),
    [
        ("gone.txt", "auto", "there is no such file"),
        ("folder", "text", "it is a folder\n  remedy: name the files in it: 'data.files=[folder/a.txt,folder/b.txt]'"),
        ("empty.txt", "auto", "it is empty"),
        ("pipe", "jsonl", "it is not a regular file, which is read more than once\n  remedy: copy its content to a"),
        ("nul\0.txt", "auto", "its name has a null character"),
        ("file.txt/x.txt", "auto", "it cannot be read (Not a directory)"),
        (
            "a.csv",
            "auto",
            "what it holds cannot be told from its suffix (.txt, .md, .jsonl, .npy, .bin are known)\n"
            "  remedy: data.format=…, one of text, jsonl, tokens",
        ),
    ],
)
def test_files_that_are_not_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    format_: Literal["auto", "text", "jsonl", "tokens"],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for file in ("empty.txt", "a.csv"):
        Path(file).touch()
    Path("file.txt").write_text("x")
    os.mkfifo("pipe")
    with pytest.raises(UsageError) as error:
        find(Sources(files=("file.txt", name), format=format_))
    assert str(error.value).startswith(f"data file {name}: {message}")


def test_no_files() -> None:
    with pytest.raises(UsageError, match="there is no data to train on\n  remedy: data=demo, or a file"):
        find(Sources())
