"""A tokenizer out of a GGUF file's metadata: its vocabulary, merges or scores, token types and pre-tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer.bpe import END_OF_TURN, BpeTokenizer, ControlTokens
from sharddsl.llama.tokenizer.pieces import byte_level_piece, sentencepiece_piece

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS: Mapping[str, tuple[str, ...]] = {
    "smollm": (r"\p{N}", _GPT2),
    "llama-bpe": (_LLAMA3,),
    "llama3": (_LLAMA3,),
    "llama-v3": (_LLAMA3,),
    "gpt-2": (_GPT2,),
    "default": (r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
}
"""For each of llama.cpp's pre-tokenizer names (`tokenizer.ggml.pre`), the expressions that cut a text before merging,
one after the other: what an expression matches stands alone, and so does what lies between its matches."""
_LLAMA3_NAMES = ("llama-bpe", "llama3", "llama-v3")
"""Those under which a word that is in the vocabulary is taken whole, whatever the merges say, and a prompt begins with
the begin token unless the file says otherwise."""


class TokenType(IntEnum):
    """llama.cpp's kinds of token (`tokenizer.ggml.token_type`)."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class _Vocabulary:
    path: Path
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    metadata: Mapping[str, Any]

    def of_type(self, kind: TokenType) -> dict[str, int]:
        return {token: i for i, (token, t) in enumerate(zip(self.tokens, self.types, strict=True)) if t == kind}

    def flag(self, key: str, default: bool) -> bool:
        return bool(self.metadata.get(f"tokenizer.ggml.{key}", default))

    def token(self, key: str) -> int | None:
        value = self.metadata.get(f"tokenizer.ggml.{key}_token_id")
        if value is None:
            return None
        if not isinstance(value, int) or not 0 <= value < len(self.tokens):
            raise UsageError(f"weights file {self.path}: its {key} token is {value!r}, which is not in its vocabulary")
        return value


def gguf_tokenizer(metadata: Mapping[str, Any], path: Path) -> BpeTokenizer:
    """The tokenizer that the metadata of the GGUF file at `path` describes. UsageError if unsupported."""
    model = metadata.get("tokenizer.ggml.model")
    if model is None:
        raise UsageError(f"weights file {path} holds no tokenizer\n  remedy: convert the checkpoint again, with it")
    if model not in ("gpt2", "llama"):
        raise UsageError(
            f"weights file {path}: its tokenizer is of kind {model!r}; 'gpt2' (byte-level BPE) and 'llama' "
            "(SentencePiece BPE) are supported"
        )
    vocabulary = _vocabulary(metadata, path)
    return _byte_level(vocabulary) if model == "gpt2" else _sentencepiece(vocabulary)


def _vocabulary(metadata: Mapping[str, Any], path: Path) -> _Vocabulary:
    tokens = _texts(metadata, path, "tokenizer.ggml.tokens")
    types = metadata.get("tokenizer.ggml.token_type", [TokenType.NORMAL] * len(tokens))
    if not isinstance(types, list) or len(types) != len(tokens) or not isinstance(types[0], int):
        raise UsageError(f"weights file {path}: its tokenizer does not have one token type for each token")
    if len(set(tokens)) < len(tokens):
        raise UsageError(f"weights file {path}: its vocabulary has a token twice")
    return _Vocabulary(path, tuple(tokens), tuple(types), metadata)


def _texts(metadata: Mapping[str, Any], path: Path, key: str) -> list[str]:
    texts = metadata.get(key)
    if not isinstance(texts, list) or not texts or not isinstance(texts[0], str):
        raise UsageError(f"weights file {path}: its tokenizer has no list of texts {key!r}")
    return texts


def _byte_level(vocabulary: _Vocabulary) -> BpeTokenizer:
    path, metadata = vocabulary.path, vocabulary.metadata
    name = str(metadata.get("tokenizer.ggml.pre", "default"))
    if name not in SPLITS:
        raise UsageError(
            f"weights file {path}: its tokenizer splits words by {name!r}, which is not supported; "
            f"{', '.join(SPLITS)} are"
        )
    if vocabulary.flag("add_space_prefix", False):
        raise UsageError(f"weights file {path}: a byte-level tokenizer with add_space_prefix is not supported")
    merges = [_pair(path, merge) for merge in _texts(metadata, path, "tokenizer.ggml.merges")]
    vocab = {token: i for i, token in enumerate(vocabulary.tokens)}
    try:
        model = models.BPE(vocab, merges, ignore_merges=name in _LLAMA3_NAMES)
    except Exception as error:  # the library raises nothing narrower
        raise UsageError(f"weights file {path}: its tokenizer's merges do not fit its vocabulary: {error}") from error
    library = tokenizers.Tokenizer(model)
    cuts = [pre_tokenizers.Split(tokenizers.Regex(cut), behavior="isolated") for cut in SPLITS[name]]
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([*cuts, to_bytes])
    return _finished(library, vocabulary, begins_unless_told=name in _LLAMA3_NAMES, spelled=byte_level_piece)


def _pair(path: Path, merge: str) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not (left and space and right):
        raise UsageError(f"weights file {path}: its tokenizer's merge {merge!r} is not two tokens")
    return left, right


def _sentencepiece(vocabulary: _Vocabulary) -> BpeTokenizer:
    """SentencePiece's BPE joins the neighbours whose joint token has the best score. The same result comes from merges
    ranked by score, but where one token can be joined from different overlapping pairs."""
    path = vocabulary.path
    scores = vocabulary.metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(vocabulary.tokens) or isinstance(scores[0], str):
        raise UsageError(f"weights file {path}: its tokenizer does not have one score for each token")
    vocab = {token: i for i, token in enumerate(vocabulary.tokens)}
    unknown = vocabulary.token("unknown")
    unknown_text = vocabulary.tokens[unknown] if unknown is not None else None
    fallback = len(vocabulary.of_type(TokenType.BYTE)) == 256
    merges = _merges_by_score(vocabulary.of_type(TokenType.NORMAL), scores)
    model = models.BPE(vocab, merges, unk_token=unknown_text, fuse_unk=True, byte_fallback=fallback)
    library = tokenizers.Tokenizer(model)
    space_before = vocabulary.flag("add_space_prefix", True)
    spaces = normalizers.Replace(" ", "▁")
    library.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), spaces]) if space_before else spaces
    return _finished(library, vocabulary, True, sentencepiece_piece, space_before)


def _merges_by_score(normal: Mapping[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    ranked = sorted((-scores[i], i, token) for token, i in normal.items() if len(token) > 1)
    return [
        (token[:cut], token[cut:])
        for _, _, token in ranked
        for cut in range(1, len(token))
        if token[:cut] in normal and token[cut:] in normal
    ]


def _finished(
    library: tokenizers.Tokenizer,
    vocabulary: _Vocabulary,
    begins_unless_told: bool,
    spelled: Any,
    space_before: bool = False,
) -> BpeTokenizer:
    control = vocabulary.of_type(TokenType.CONTROL)
    own = vocabulary.of_type(TokenType.USER_DEFINED)
    library.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in control])
    library.add_tokens([AddedToken(token, normalized=False, special=False) for token in own])
    pieces = [
        b"" if token in control else token.encode() if token in own else spelled(token) for token in vocabulary.tokens
    ]
    ends = {vocabulary.token(key) for key in ("eos", "eot", "eom")} - {None}
    begin, end = vocabulary.token("bos"), vocabulary.token("eos")
    begins = vocabulary.flag("add_bos_token", begins_unless_told) and begin is not None
    texts = {token: vocabulary.tokens[token] for token in (begin, end) if token is not None}
    ids = {**control, **{text: token for token, text in texts.items()}}
    named = {i for token, i in control.items() if token in END_OF_TURN}
    stop = frozenset(i for i in ends | named if i is not None)
    steering = ControlTokens(
        ids,
        None if begin is None else texts[begin],
        None if end is None else texts[end],
        begins,
        stop,
    )
    template = vocabulary.metadata.get("tokenizer.chat_template")
    return BpeTokenizer(library, pieces, steering, template if isinstance(template, str) else None, space_before)
