"""A tokenizer without a vocabulary, for models whose weights are random."""

from __future__ import annotations

from collections.abc import Sequence

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer.model import Message, TextStream, decode_all, utf8


class ByteTokenizer:
    """UTF-8 bytes as ids 0 to 255. There is no begin, stop or control token. The model needs a vocab of at least 256;
    ids from 256 on decode to U+FFFD."""

    def __init__(self, vocab: int = 256) -> None:
        if vocab < 256:
            raise UsageError(
                f"the model's vocab of {vocab} is too small for bytes, which need 256\n"
                "  remedy: use a model with a larger vocab, or weights that bring a tokenizer"
            )

    vocab = 256
    stop_ids: frozenset[int] = frozenset()
    begin: int | None = None
    end: int | None = None
    has_chat_template = False

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The text's UTF-8 bytes. `special` changes nothing: there are no control tokens."""
        del special
        return list(utf8(text))

    def prompt(self, text: str) -> list[int]:
        """The same as `encode`."""
        return self.encode(text)

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """UsageError always."""
        raise UsageError(
            f"a byte tokenizer has no chat template (for {len(messages)} messages)\n  remedy: give a plain prompt"
        )

    def decode(self, ids: Sequence[int]) -> str:
        return decode_all(self.stream(), ids)

    def stream(self) -> TextStream:
        return TextStream(_piece)


def _piece(token: int) -> bytes:
    return bytes([token]) if 0 <= token < 256 else "\ufffd".encode()
