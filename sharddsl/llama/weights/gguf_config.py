"""A LLaMA's config out of a GGUF file's metadata."""

from __future__ import annotations

import math

import numpy as np
from pydantic import ValidationError

from sharddsl.findings import UsageError
from sharddsl.llama.rope import plain_frequencies, stretch
from sharddsl.llama.weights.gguf_header import Header
from sharddsl.llama.weights.store import TensorStore
from sharddsl.models.config import LlamaConfig, RopeScaling

ROPE_FACTORS = "rope_freqs.weight"
"""The tensor in which llama.cpp's converter keeps Llama 3's rotary scaling, as divisors of the plain frequencies."""


class _Metadata:
    """Typed access to the metadata, with an error that names the key."""

    def __init__(self, header: Header) -> None:
        self.path = header.path
        self.values = header.metadata

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key, default)
        if value is None:
            raise UsageError(f"weights file {self.path}: its metadata lacks {key!r}, so the model's size is unknown")
        if isinstance(value, list) and len(set(value)) == 1:
            value = value[0]  # a value per layer, the same in all
        if isinstance(value, list):
            raise UsageError(f"weights file {self.path}: {key!r} differs between layers, which is not supported")
        if isinstance(value, str) or not math.isfinite(value):
            raise UsageError(f"weights file {self.path}: {key!r} is {value!r}, not a number")
        return value

    def size(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value != int(value):
            raise UsageError(f"weights file {self.path}: {key!r} is {value!r}, not a whole number")
        return int(value)

    def text(self, key: str, default: str) -> str:
        return str(self.values.get(key, default))


def gguf_config(header: Header, store: TensorStore) -> LlamaConfig:
    """The config that the file's metadata states. UsageError if it is no LLaMA, or one with parts not supported."""
    metadata = _Metadata(header)
    _refuse_others(metadata)
    heads = metadata.size("llama.attention.head_count")
    embed = metadata.size("llama.embedding_length")
    head_dim = metadata.size("llama.attention.key_length", embed // max(heads, 1))
    for key in ("llama.attention.value_length", "llama.rope.dimension_count"):
        if metadata.size(key, head_dim) != head_dim:
            raise UsageError(
                f"weights file {header.path}: {key!r} is {metadata.size(key)} where heads have {head_dim} features; "
                "only whole heads of one size are supported"
            )
    theta = metadata.number("llama.rope.freq_base", 10_000.0)
    vocab = store.shapes.get("token_embd.weight", (0,))[0]
    try:
        return LlamaConfig(
            name=metadata.text("general.name", header.path.stem),
            vocab=metadata.size("llama.vocab_size", vocab),
            embed=embed,
            layers=metadata.size("llama.block_count"),
            heads=heads,
            kv_heads=metadata.size("llama.attention.head_count_kv", heads),
            head_dim=head_dim,
            ffn=metadata.size("llama.feed_forward_length"),
            tied="output.weight" not in store.shapes,
            norm_eps=metadata.number("llama.attention.layer_norm_rms_epsilon"),
            rope_theta=theta,
            rope_scaling=_rope_scaling(store, theta, head_dim),
            max_seq=metadata.size("llama.context_length", 2048),
        )
    except ValidationError as error:
        raise _invalid(header, error) from error


def _refuse_others(metadata: _Metadata) -> None:
    architecture = metadata.text("general.architecture", "not stated")
    if architecture != "llama":
        raise UsageError(
            f"weights file {metadata.path} holds a model of architecture {architecture!r}; only 'llama' is supported\n"
            "  remedy: use a LLaMA's file (Llama 1 to 3, SmolLM2)"
        )
    if metadata.size("llama.expert_count", 0):
        raise UsageError(f"weights file {metadata.path} holds a mixture of experts, which is not supported")
    if metadata.size("split.count", 1) > 1:
        raise UsageError(
            f"weights file {metadata.path} is one of {metadata.size('split.count')} parts of a split GGUF file\n"
            "  remedy: join them first (llama-gguf-split --merge)"
        )
    scaling = metadata.text("llama.rope.scaling.type", "none")
    if scaling != "none":
        raise UsageError(
            f"weights file {metadata.path} scales its rotary embedding by {scaling!r}; "
            "only Llama 3's scaling is supported"
        )


def _rope_scaling(store: TensorStore, theta: float, head_dim: int) -> RopeScaling | None:
    """The scaling whose factors the file lists. The file states the factors alone, not the four numbers they come from:
    the largest one is `factor`, and the others must follow from Meta's own bounds 1 and 4 and some original length."""
    if ROPE_FACTORS not in store.shapes:
        return None
    if store.shapes[ROPE_FACTORS] == (head_dim // 2,):
        stated = np.asarray(store.read(ROPE_FACTORS, slice(0, head_dim // 2), None), np.float64)
        plain = plain_frequencies(theta, head_dim)
        for original in (8192, 4096, 2048, 16384, 32768):
            scaling = RopeScaling(factor=round(float(stated.max()), 3), original_seq=original)
            if np.allclose(stated, plain / stretch(plain, scaling), rtol=1e-3):
                return scaling
    raise UsageError(
        f"weights file {store.path}: the factors in {ROPE_FACTORS!r} are not those of Llama 3's rotary scaling, "
        "the only one supported"
    )


def _invalid(header: Header, error: ValidationError) -> UsageError:
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"])) or "the model's sizes"
    return UsageError(f"weights file {header.path}: its metadata makes no LLaMA: {field}: {first['msg']}")
