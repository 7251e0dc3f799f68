"""Token files: their documents, and what is refused."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer import ByteTokenizer
from sharddsl.train.data.config import Sources
from sharddsl.train.data.files import find
from sharddsl.train.data.tokens import TokenFile, open_tokens, starts

Dtype = Literal["uint16", "uint32", "int32"]


class Marked(ByteTokenizer):
    """A begin and an end token, as a case needs them."""

    def __init__(self, begin: int | None, end: int | None) -> None:
        super().__init__()
        self.begin = begin
        self.end = end


def opened(path: Path, content: bytes, dtype: Dtype = "uint16", vocab: int = 1000) -> TokenFile:
    path.write_bytes(content)
    (file,) = find(Sources(files=(str(path),)))
    return open_tokens(file, dtype, vocab)


def npy(value: Any, version: tuple[int, int] | None = None) -> bytes:
    content = BytesIO()
    np.lib.format.write_array(content, np.asanyarray(value), version)
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "dtype"),
    [
        ("a.bin", b"\x01\x00\x02\x00\x00\x01", "uint16"),
        ("a.bin", b"\x01\x00\x00\x00\x02\x00\x00\x00\x00\x01\x00\x00", "uint32"),
        ("a.bin", b"\x01\x00\x00\x00\x02\x00\x00\x00\x00\x01\x00\x00", "int32"),
        ("a.npy", npy(np.array([1, 2, 256], "<i8")), "uint16"),
        ("a.npy", npy(np.array([1, 2, 256], ">u4")), "uint16"),
        ("a.npy", npy(np.array([1, 2, 256], "<u2"), (2, 0)), "uint32"),
    ],
)
def test_ids(tmp_path: Path, name: str, content: bytes, dtype: Dtype) -> None:
    tokens = opened(tmp_path / name, content, dtype)
    assert tokens.size == 3
    assert tokens.read(0, 3).tolist() == [1, 2, 256]
    assert tokens.read(1, 2).tolist() == [2]
    assert tokens.read(0, 3).dtype == np.int32


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (None, None, [0]),
        (None, 9, [0, 4]),
        (7, None, [0, 4]),
        (7, 9, [0, 4]),
        (9, 9, [0, 3, 6]),
        (4, 9, [0, 1, 4]),
    ],
)
def test_documents(tmp_path: Path, begin: int | None, end: int | None, expected: list[int]) -> None:
    tokens = opened(tmp_path / "a.npy", npy([7, 4, 5, 9, 7, 6, 9]))
    assert starts(tokens, Marked(begin, end)).tolist() == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.bin",
            b"\x01\x00\x02",
            "its 3 bytes are no whole number of uint16, 2 bytes each\n  remedy: data.dtype=uint",
        ),
        ("a.npy", b"\x01\x00\x02\x00", "it is not a .npy file ("),
        ("a.npy", npy([1, 2])[:40], "it is not a .npy file ("),
        ("a.npy", npy([1, 2]).replace(b"}", b"}}"), "it is not a .npy file ("),
        ("a.npy", npy([1, 2]).replace(b"(2,)", b"(-2,)"), "it holds no tokens"),
        ("a.npy", npy([1, 2, 3])[:-9], "it is cut off: its header tells of 3 tokens, and there are 15 bytes"),
        ("a.npy", npy([1.5]), "it holds float64 of shape (1,); token ids are one dimension of integers"),
        ("a.npy", npy([True]), "it holds bool of shape (1,)"),
        ("a.npy", npy([[1, 2]]), "it holds int64 of shape (1, 2)"),
        ("a.npy", npy(3), "it holds int64 of shape ()"),
        ("a.npy", npy(np.array([{"an": "object"}])), "it holds object of shape (1,)"),
        ("a.npy", npy(np.empty(0, int)), "it holds no tokens"),
    ],
)
def test_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(UsageError) as error:
        opened(tmp_path / name, content)
    assert str(error.value).startswith(f"data file {tmp_path}/{name}: {message}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 2, 1000]), "token 2 has id 1000, and the model's vocab is 1000"),
        (np.array([1, -5, -6], np.int8), "token 1 has id -5, and the model's vocab is 1000"),
        (np.array([2**64 - 1], np.uint64), "token 0 has id 18446744073709551615, and"),
    ],
)
def test_an_id_outside_the_vocab(tmp_path: Path, values: Any, message: str) -> None:
    tokens = opened(tmp_path / "a.npy", npy(values))
    with pytest.raises(UsageError) as error:
        starts(tokens, ByteTokenizer())
    assert str(error.value).startswith(f"data file {tmp_path}/a.npy: {message}")


def test_a_file_changes_during_the_run(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    tokens = opened(path, b"\x01\x00" * 8)
    path.write_bytes(b"\x01\x00" * 7)
    assert tokens.read(0, 7).tolist() == [1] * 7
    with pytest.raises(UsageError, match=r"a\.bin: it has become shorter since the run began$"):
        tokens.read(4, 8)
    path.unlink()
    with pytest.raises(UsageError, match=r"a\.bin: it is not there any more$"):
        tokens.read(0, 1)
    path.mkdir()
    with pytest.raises(UsageError, match=r"a\.bin: it cannot be read \(Is a directory\)$"):
        tokens.read(0, 1)
