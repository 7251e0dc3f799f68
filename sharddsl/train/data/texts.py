"""Documents out of text files, as token ids.

A text file is one document, or several with a form feed (U+000C, the page break) between them. A JSONL file has one
document a line; blank lines are none. Text is UTF-8, with or without a byte order mark, and is taken as it is: line
breaks are not changed. A document is the begin token, the text's ids and the end token, as far as the tokenizer has
those. A text of nothing but spaces and line breaks is no document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer import Tokenizer
from sharddsl.train.data.files import DataFile

_PAGE_BREAK = "\f"


def documents(file: DataFile, key: str, tokenizer: Tokenizer, vocab: int) -> Iterator[NDArray[np.int32]]:
    """Each document's ids. `key` is the field of a JSONL line that holds the text; `vocab` is the model's.

    Raises `UsageError` naming the file, and the line or the document in it, for what is no UTF-8, no JSON object, has
    no text under `key`, or has an id that the model lacks.
    """
    for place, text in _lines(file, key) if file.format == "jsonl" else _pages(file):
        try:
            ids = tokenizer.prompt(text)
        except UsageError as error:
            raise UsageError(f"data file {place}: {error}") from error
        if tokenizer.end is not None:
            ids.append(tokenizer.end)
        largest = max(ids, default=0)
        if largest >= vocab:
            raise UsageError(
                f"data file {place}: token {ids.index(largest):,} of the document has id {largest}, "
                f"and the model's vocab is {vocab}\n  remedy: a model with the tokenizer's vocab of {tokenizer.vocab}"
            )
        yield np.array(ids, np.int32)


def _pages(file: DataFile) -> Iterator[tuple[str, str]]:
    pages = _decoded(file, _content(file), 0).split(_PAGE_BREAK)
    for number, page in enumerate(pages, 1):
        if page.strip():
            yield (file.name if len(pages) == 1 else f"{file.name}, page {number}"), page


def _lines(file: DataFile, key: str) -> Iterator[tuple[str, str]]:
    at = 0
    for number, line in enumerate(_content(file).split(b"\n"), 1):
        text = _text(file, f"{file.name}:{number}", _decoded(file, line, at), key) if line.strip() else ""
        if text.strip():
            yield f"{file.name}:{number}", text
        at += len(line) + 1


def _text(file: DataFile, place: str, line: str, key: str) -> str:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UsageError(f"data file {place}: the line is not JSON ({why})") from error
    if not isinstance(item, dict):
        raise UsageError(f"data file {place}: the line is {_kind(item)}, not an object with the text under {key!r}")
    if key not in item:
        keys = ", ".join(map(repr, item)) or "none"
        raise UsageError(f"data file {place}: there is no {key!r}; keys: {keys}\n  remedy: data.key=…")
    if not isinstance(item[key], str):
        raise UsageError(f"data file {place}: {key!r} is {_kind(item[key])}, not a string")
    return str(item[key])


def _kind(value: object) -> str:
    """A JSON value's kind, as JSON has it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}[type(value)]


def _content(file: DataFile) -> bytes:
    with file.reading():
        return file.path.read_bytes()


def _decoded(file: DataFile, content: bytes, at: int) -> str:
    """The text of `content`, which begins at byte `at` of the file."""
    try:
        return content.decode("utf-8-sig" if at == 0 else "utf-8")
    except UnicodeDecodeError as error:
        # A byte order mark is cut off before the rest is decoded, and positions count from there.
        at += len(content) - len(error.object)
        raise file.refusal(
            f"it is not UTF-8: byte {at + error.start:,} is 0x{error.object[error.start]:02x}",
            "convert it, or say what it holds: data.format=tokens",
        ) from error
