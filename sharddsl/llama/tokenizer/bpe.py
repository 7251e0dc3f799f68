"""Byte-pair tokenizers of the `tokenizers` library, with control tokens out of reach of whoever writes the text."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tokenizers

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer.chat import render_chat
from sharddsl.llama.tokenizer.model import Message, TextStream, decode_all, utf8

_UNKNOWN_ID = "\ufffd".encode()

END_OF_TURN = frozenset(
    {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<end_of_turn>", "</s>"}
)
"""Control tokens that end a turn or a text in the published LLaMA-like models, whether or not a file says so."""


@dataclass(frozen=True)
class ControlTokens:
    """The tokens that steer a model instead of spelling text.

    `ids` maps each one's written form to its id; `begins` says that the model expects `begin` before every prompt.
    """

    ids: Mapping[str, int]
    begin: str | None
    end: str | None
    begins: bool
    stop: frozenset[int]


class BpeTokenizer:
    """A byte-pair tokenizer with its control tokens and chat template.

    `library` does the splitting and merging. `pieces` are the bytes that each id stands for, empty for control tokens.
    `space_before` says that the library puts a space before every text, which decoding takes off again.
    """

    def __init__(
        self,
        library: tokenizers.Tokenizer,
        pieces: Sequence[bytes],
        control: ControlTokens,
        template: str | None,
        space_before: bool = False,
    ) -> None:
        self._first = library
        self._first.encode_special_tokens = True  # the library's name for "do not look for them in the text"
        self._later = _without_space_before(library)
        self._pieces = tuple(pieces)
        self._control = control
        self._template = template
        self._space_before = space_before
        longest_first = sorted(control.ids, key=len, reverse=True)
        self._control_pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    @property
    def vocab(self) -> int:
        return len(self._pieces)

    @property
    def stop_ids(self) -> frozenset[int]:
        return self._control.stop

    @property
    def begin(self) -> int | None:
        name = self._control.begin
        return self._control.ids[name] if name and self._control.begins else None

    @property
    def end(self) -> int | None:
        return self._control.ids[self._control.end] if self._control.end else None

    @property
    def has_chat_template(self) -> bool:
        return self._template is not None

    def encode(self, text: str, special: bool = False) -> list[int]:
        if special:
            return self._with_control(text, {})
        return self._plain(text, self._first)

    def prompt(self, text: str) -> list[int]:
        return [*([] if self.begin is None else [self.begin]), *self.encode(text)]

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """The chat template's text as ids. Control tokens in the template are control tokens; in a message's content
        they are text, so that no message can forge a turn."""
        if self._template is None:
            raise UsageError(
                "this model comes without a chat template, so it was not trained to chat\n"
                "  remedy: give a plain prompt, or use an instruction-tuned model"
            )
        masked = _Masked(self._control_pattern)
        safe = [{**message, "content": masked.mask(message["content"])} for message in messages]
        text = render_chat(self._template, safe, self._control.begin or "", self._control.end or "")
        return self._with_control(text, masked.originals)

    def decode(self, ids: Sequence[int]) -> str:
        return decode_all(self.stream(), ids)

    def stream(self) -> TextStream:
        return TextStream(self._piece, drop_space=self._space_before)

    def _piece(self, token: int) -> bytes:
        return self._pieces[token] if 0 <= token < len(self._pieces) else _UNKNOWN_ID

    def _plain(self, text: str, library: tokenizers.Tokenizer) -> list[int]:
        utf8(text)  # the library's own error for what is not Unicode says nothing of the text
        return list(library.encode(text, add_special_tokens=False).ids)

    def _with_control(self, text: str, originals: Mapping[str, str]) -> list[int]:
        """Ids of a text with control tokens. What stands between them is encoded by itself, with masks taken off."""
        ids: list[int] = []
        at = 0
        for found in self._control_pattern.finditer(text):
            ids += self._between(text[at : found.start()], at == 0, originals)
            ids.append(self._control.ids[found.group()])
            at = found.end()
        return ids + self._between(text[at:], at == 0, originals)

    def _between(self, text: str, first: bool, originals: Mapping[str, str]) -> list[int]:
        for mask, original in originals.items():
            text = text.replace(mask, original)
        return self._plain(text, self._first if first else self._later) if text else []


class _Masked:
    """Stand-ins for control tokens that a user's text spells out, unguessable and untouched by a template's filters."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._nonce = secrets.randbits(64)
        self.originals: dict[str, str] = {}

    def mask(self, content: str) -> str:
        return self._pattern.sub(self._stand_in, content)

    def _stand_in(self, found: re.Match[str]) -> str:
        mask = f"\ue000{self._nonce}-{len(self.originals)}\ue001"
        self.originals[mask] = found.group()
        return mask


def _without_space_before(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The tokenizer for text that follows a control token, where that differs: a Metaspace splitter whose
    `prepend_scheme` is `first` puts its space before the whole text only."""
    state = json.loads(library.to_str())
    splitter = state.get("pre_tokenizer") or {}
    parts = [splitter, *splitter.get("pretokenizers", [])]
    spaced = [part for part in parts if part.get("type") == "Metaspace" and part.get("prepend_scheme") == "first"]
    if not spaced:
        return library
    for part in spaced:
        part["prepend_scheme"] = "never"
    later: tokenizers.Tokenizer = tokenizers.Tokenizer.from_str(json.dumps(state))
    later.encode_special_tokens = True
    return later
