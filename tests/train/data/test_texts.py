"""Text and JSONL files as documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer import ByteTokenizer
from sharddsl.train.data.config import Sources
from sharddsl.train.data.files import find
from sharddsl.train.data.texts import documents


class Marked(ByteTokenizer):
    """Bytes with a begin token, 256, and an end token, 257."""

    vocab = 258
    begin = 256
    end = 257

    def prompt(self, text: str) -> list[int]:
        return [256, *self.encode(text)]


def read(path: Path, content: bytes, tokenizer: ByteTokenizer | None = None, vocab: int = 258) -> list[list[int]]:
    path.write_bytes(content)
    (file,) = find(Sources(files=(str(path),)))
    return [ids.tolist() for ids in documents(file, "text", tokenizer or ByteTokenizer(), vocab)]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", b"ab\n", ["ab\n"]),
        ("a.md", b"a\r\nb", ["a\r\nb"]),
        ("a.txt", b"ab\fc\n\f\n \fd", ["ab", "c\n", "d"]),
        ("a.txt", b"\xef\xbb\xbf\xc3\xa9", ["é"]),
        ("a.jsonl", b'{"text": "ab"}\n{"id": 1, "text": "c\\n\\fd"}', ["ab", "c\n\fd"]),
        ("a.jsonl", b'\n{"text": "ab"}\r\n \n{"text": " "}\n{"text": ""}\n', ["ab"]),
        ("a.jsonl", '{"text": "\\u00e9é\u2028"}\n'.encode(), ["éé\u2028"]),
        ("a.jsonl", b'\xef\xbb\xbf{"text": "ab"}', ["ab"]),
    ],
)
def test_documents(tmp_path: Path, name: str, content: bytes, expected: list[str]) -> None:
    assert read(tmp_path / name, content) == [list(text.encode()) for text in expected]


def test_begin_and_end_tokens_are_the_tokenizers(tmp_path: Path) -> None:
    assert read(tmp_path / "a.txt", b"A\fBC", Marked()) == [[256, 65, 257], [256, 66, 67, 257]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"ab\xff", "a.txt: it is not UTF-8: byte 2 is 0xff\n  remedy: convert it"),
        ("a.txt", b"\xef\xbb\xbfab\xff", "a.txt: it is not UTF-8: byte 5 is 0xff"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xe9"}', "a.jsonl: it is not UTF-8: byte 24 is 0xe9"),
        ("a.jsonl", b'{"text": "a"}\n\n{"text": "b"', "a.jsonl:3: the line is not JSON (Expecting ',' delimiter, colu"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl:1: the line is not JSON ("),
        ("a.jsonl", b"[1]", "a.jsonl:1: the line is an array, not an object with the text under 'text'"),
        ("a.jsonl", b"null", "a.jsonl:1: the line is null, not an object"),
        ("a.jsonl", b'{"txt": "a", "id": 1}', "a.jsonl:1: there is no 'text'; keys: 'txt', 'id'\n  remedy: data.key=…"),
        ("a.jsonl", b"{}", "a.jsonl:1: there is no 'text'; keys: none"),
        ("a.jsonl", b'{"text": 1.5}', "a.jsonl:1: 'text' is a number, not a string"),
        ("a.jsonl", b'{"text": true}', "a.jsonl:1: 'text' is true, not a string"),
        ("a.jsonl", b'{"text": "a\\ud800"}', "a.jsonl:1: the text is not valid Unicode: character 2 is a lone surr"),
    ],
)
def test_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path / name, content)
    assert str(error.value).startswith(f"data file {tmp_path}/{message}")


def test_an_id_that_the_model_lacks(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path / "a.txt", b"A\fBC", Marked(), vocab=257)
    assert str(error.value) == (
        f"data file {tmp_path}/a.txt, page 1: token 2 of the document has id 257, and the model's vocab is 257\n"
        "  remedy: a model with the tokenizer's vocab of 258"
    )
