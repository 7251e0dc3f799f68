"""What every tokenizer can do, and text that arrives token by token."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sharddsl.findings import UsageError

Message = Mapping[str, str]
"""One turn of a chat: `role` (system, user, assistant) and `content`."""


class Tokenizer(Protocol):
    """Turns text into token ids and back."""

    @property
    def vocab(self) -> int:
        """One more than the highest id."""

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids after which the model has nothing more to say."""

    @property
    def begin(self) -> int | None:
        """The id that this model was trained to find before every text."""

    @property
    def end(self) -> int | None:
        """The id that says that a text is over."""

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` can be used."""

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The ids of a text by itself, without a begin token. Control tokens written out in the text become their ids
        only if `special`; otherwise they are text like any other."""

    def prompt(self, text: str) -> list[int]:
        """The ids of a plain prompt: the begin token, if this model was trained with one, and the text."""

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """The ids of a chat up to where the assistant's answer begins. UsageError if the model has no chat template."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids. Control tokens have none; bytes that are not UTF-8 become U+FFFD."""

    def stream(self) -> TextStream:
        """A decoder to which ids are given one at a time."""


class TextStream:
    """Text from ids that arrive one at a time. The pieces, joined, are the text of all ids; none ends in mid-character.

    `piece_of` gives an id's bytes. With `drop_space`, a space before everything else is not part of the text.
    """

    def __init__(self, piece_of: Callable[[int], bytes], drop_space: bool = False) -> None:
        self._piece_of = piece_of
        self._drop_space = drop_space
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that became whole with this id; often one word, empty while a character is incomplete."""
        piece = self._piece_of(token)
        if piece and self._drop_space:
            self._drop_space = False
            piece = piece.removeprefix(b" ")
        return self._decoder.decode(piece)

    def finish(self) -> str:
        """What is left: U+FFFD for a character that never became whole, else nothing."""
        return self._decoder.decode(b"", final=True)


def utf8(text: str) -> bytes:
    """The text's bytes. UsageError for a lone surrogate, which is what Python makes of input that is not UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the text is not valid Unicode: character {error.start + 1} is a lone surrogate\n"
            "  remedy: give the text in UTF-8"
        ) from error


def decode_all(stream: TextStream, ids: Sequence[int]) -> str:
    """The text of all ids."""
    return "".join([*map(stream.push, ids), stream.finish()])
