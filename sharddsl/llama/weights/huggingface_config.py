"""A LLaMA's config out of a Hugging Face `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sharddsl.findings import UsageError
from sharddsl.llama.jsonfile import read_json
from sharddsl.models.config import LlamaConfig, RopeScaling


def huggingface_config(path: Path) -> LlamaConfig:
    """The config that a `config.json` states. UsageError if it is no LLaMA, or one with parts not supported."""
    data = read_json(path)
    _refuse_others(path, data)
    rope = _rope(path, data)
    try:
        heads = data["num_attention_heads"]
        return LlamaConfig(
            name=path.parent.resolve().name,
            vocab=data["vocab_size"],
            embed=data["hidden_size"],
            layers=data["num_hidden_layers"],
            heads=heads,
            kv_heads=data.get("num_key_value_heads") or heads,
            head_dim=data.get("head_dim") or data["hidden_size"] // heads,
            ffn=data["intermediate_size"],
            tied=data.get("tie_word_embeddings", False),
            norm_eps=data.get("rms_norm_eps", 1e-6),
            rope_theta=rope.get("rope_theta", 10_000.0),
            rope_scaling=_rope_scaling(path, rope),
            max_seq=data.get("max_position_embeddings", 2048),
        )
    except KeyError as error:
        raise UsageError(f"{path} lacks {error.args[0]!r}, which a LLaMA's config needs") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "its sizes"
        raise UsageError(f"{path} makes no LLaMA: {field}: {first['msg']}") from error
    except (TypeError, ZeroDivisionError) as error:
        raise UsageError(f"{path} makes no LLaMA: {error}") from error


def _refuse_others(path: Path, data: Mapping[str, Any]) -> None:
    kind = data.get("model_type", "not stated")
    if kind != "llama":
        raise UsageError(
            f"{path} describes a model of type {kind!r}; only 'llama' is supported\n"
            "  remedy: use a LLaMA's checkpoint (Llama 1 to 3, SmolLM2)"
        )
    for bias in ("attention_bias", "mlp_bias"):
        if data.get(bias):
            raise UsageError(f"{path}: {bias} is true; projections with a bias are not supported")
    if _rope(path, data).get("partial_rotary_factor", 1.0) != 1.0:
        raise UsageError(f"{path}: partial_rotary_factor is set; only whole heads are turned here")
    activation = data.get("hidden_act", "silu")
    if activation != "silu":
        raise UsageError(f"{path}: hidden_act is {activation!r}; only 'silu' is supported")
    if quantization := _object(path, data, "quantization_config"):
        method = quantization.get("quant_method", "an unnamed method")
        raise UsageError(
            f"{path}: the weights are quantized by {method!r}, which is not supported\n"
            "  remedy: use the unquantized checkpoint, or a GGUF file"
        )


def _object(path: Path, data: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A copy of the object at `key`, empty where there is none."""
    value = data.get(key)
    if value is not None and not isinstance(value, dict):
        raise UsageError(f"{path}: {key} is {value!r}, not an object")
    return dict(value or {})


def _rope(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """The rotary parameters: one object in newer files, `rope_theta` beside `rope_scaling` in older ones."""
    rope = _object(path, data, "rope_parameters") or _object(path, data, "rope_scaling")
    if "rope_theta" in data:
        rope.setdefault("rope_theta", data["rope_theta"])
    return rope


def _rope_scaling(path: Path, rope: Mapping[str, Any]) -> RopeScaling | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise UsageError(f"{path}: rope_type is {kind!r}; only 'default' and 'llama3' are supported")
    return RopeScaling(
        factor=rope["factor"],
        low_freq_factor=rope["low_freq_factor"],
        high_freq_factor=rope["high_freq_factor"],
        original_seq=rope["original_max_position_embeddings"],
    )
