"""A tokenizer out of a folder in the Hugging Face layout: `tokenizer.json` and the files around it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from sharddsl.findings import UsageError
from sharddsl.llama.jsonfile import read_json
from sharddsl.llama.tokenizer.bpe import END_OF_TURN, BpeTokenizer, ControlTokens
from sharddsl.llama.tokenizer.model import utf8
from sharddsl.llama.tokenizer.pieces import byte_level_piece, sentencepiece_piece


def huggingface_tokenizer(folder: Path) -> BpeTokenizer:
    """The folder's tokenizer. UsageError if there is none, or one of a kind not supported."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise UsageError(
            f"{folder} holds no tokenizer.json\n  remedy: put the checkpoint's tokenizer.json beside its weights"
        )
    library = _library(file)
    state = json.loads(library.to_str())  # as the library understood it, so in the form that it documents
    kind = state["model"]["type"]
    if kind != "BPE":
        raise UsageError(f"{file}: the tokenizer is of kind {kind!r}; only 'BPE' is supported")
    library.no_truncation()
    library.no_padding()
    config = _optional(folder / "tokenizer_config.json")
    control = _control(folder, library, state, config)
    components = _components(state.get("decoder") or {})
    spelled = byte_level_piece if "ByteLevel" in components else sentencepiece_piece
    if not components.keys() & {"ByteLevel", "ByteFallback", "Metaspace"}:
        raise UsageError(f"{file}: its decoder ({', '.join(components) or 'none'}) is not supported")
    own = {token["content"] for token in state["added_tokens"] if token["content"] not in control.ids}
    vocab = library.get_vocab(with_added_tokens=True)
    pieces = [b""] * (max(vocab.values(), default=-1) + 1)
    for token, number in vocab.items():
        if token not in control.ids:
            pieces[number] = token.encode() if token in own else spelled(token)
    return BpeTokenizer(library, pieces, control, _template(folder, config), _drops_space(components))


def _library(file: Path) -> tokenizers.Tokenizer:
    text = json.dumps(read_json(file))
    try:
        library = tokenizers.Tokenizer.from_str(text)
        library.encode("", add_special_tokens=True)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises nothing narrower; its panics are no `Exception`
        raise UsageError(f"{file} is not a tokenizer that the tokenizers library can read: {error}") from error
    return library


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _control(
    folder: Path, library: tokenizers.Tokenizer, state: Mapping[str, Any], config: Mapping[str, Any]
) -> ControlTokens:
    special = [token for token in state["added_tokens"] if token["special"]]
    for token in special:
        if token["lstrip"] or token["rstrip"] or token["single_word"]:
            raise UsageError(
                f"{folder / 'tokenizer.json'}: control token {token['content']!r} depends on what stands around it, "
                "which is not supported"
            )
    ids = {str(token["content"]): int(token["id"]) for token in special}
    begin, end = _token(config.get("bos_token")), _token(config.get("eos_token"))
    for token in (begin, end):
        if token is not None and token not in ids:
            number = library.token_to_id(token)
            if number is None:
                raise UsageError(f"{folder / 'tokenizer_config.json'}: token {token!r} is not in the vocabulary")
            ids[token] = number
    # what the tokenizer's own post-processor puts before an empty text
    puts_first = library.encode("", add_special_tokens=True).ids[:1]
    begins = begin is not None and config.get("add_bos_token", puts_first == [ids[begin]])
    stop = {ids[token] for token in ids if token in END_OF_TURN or token == end}
    for file in ("generation_config.json", "config.json"):
        stated = _optional(folder / file).get("eos_token_id")
        stop |= {int(i) for i in (stated if isinstance(stated, list) else [stated]) if isinstance(i, int)}
    return ControlTokens(ids, begin, end, bool(begins), frozenset(stop))


def _token(stated: Any) -> str | None:
    """A token's text: in newer files a string, in older ones an object with its content."""
    text = stated.get("content") if isinstance(stated, dict) else stated
    return None if text is None else utf8(str(text)).decode()


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The chat template: a file of its own, or in `tokenizer_config.json`, there perhaps one of several by name."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read: {error}") from error
    stated = config.get("chat_template")
    if isinstance(stated, list):
        named = {one.get("name"): one.get("template") for one in stated if isinstance(one, dict)}
        stated = named.get("default")
    return stated if isinstance(stated, str) else None


def _components(decoder: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """A decoder's parts by type."""
    parts = decoder.get("decoders", [decoder] if decoder else [])
    return {str(part.get("type")): part for part in parts}


def _drops_space(components: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether decoding takes a space off the beginning."""
    strip, space = components.get("Strip"), components.get("Metaspace")
    if space is not None:
        return str(space.get("prepend_scheme", "always")) != "never"
    return strip is not None and str(strip.get("content")) == " " and int(strip.get("start", 0)) > 0
