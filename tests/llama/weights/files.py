"""Small weights files for tests, written by the libraries that define the formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import safetensors.numpy

from sharddsl.models.config import LlamaConfig

Array = np.ndarray[Any, Any]

CONFIG = LlamaConfig(
    name="test", vocab=48, embed=64, layers=2, heads=4, kv_heads=2, head_dim=24, ffn=96, norm_eps=1e-5, max_seq=128
)
"""Every projection has another shape, and rows of 64 or 96 values: whole blocks of 32."""

Q = gguf.GGMLQuantizationType


def checkpoint(tied: bool = False) -> dict[str, Array]:
    """Random float32 tensors under Hugging Face's names, (output features, input features), rotary halves apart."""
    random = np.random.default_rng(7)

    def matrix(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    tensors = {"model.embed_tokens.weight": matrix(48, 64), "model.norm.weight": matrix(64)}
    for layer in range(2):
        tensors |= {
            f"model.layers.{layer}.{name}.weight": matrix(*shape)
            for name, shape in {
                "input_layernorm": (64,),
                "self_attn.q_proj": (96, 64),
                "self_attn.k_proj": (48, 64),
                "self_attn.v_proj": (48, 64),
                "self_attn.o_proj": (64, 96),
                "post_attention_layernorm": (64,),
                "mlp.gate_proj": (96, 64),
                "mlp.up_proj": (96, 64),
                "mlp.down_proj": (64, 96),
            }.items()
        }
    return tensors if tied else tensors | {"lm_head.weight": matrix(48, 64)}


def expected(tensors: Mapping[str, Array]) -> dict[str, list[Array]]:
    """The params that the checkpoint must give, by path: one array, or one per layer."""

    def layers(name: str) -> list[Array]:
        return [tensors[f"model.layers.{layer}.{name}.weight"] for layer in range(2)]

    params = {
        "embed.w": [tensors["model.embed_tokens.weight"]],
        "layers.attn_norm.scale": layers("input_layernorm"),
        "layers.attn.wq": [w.T.reshape(64, 4, 24) for w in layers("self_attn.q_proj")],
        "layers.attn.wk": [w.T.reshape(64, 2, 24) for w in layers("self_attn.k_proj")],
        "layers.attn.wv": [w.T.reshape(64, 2, 24) for w in layers("self_attn.v_proj")],
        "layers.attn.wo": [w.T.reshape(4, 24, 64) for w in layers("self_attn.o_proj")],
        "layers.mlp_norm.scale": layers("post_attention_layernorm"),
        "layers.mlp.w_gate": [w.T for w in layers("mlp.gate_proj")],
        "layers.mlp.w_in": [w.T for w in layers("mlp.up_proj")],
        "layers.mlp.w_out": [w.T for w in layers("mlp.down_proj")],
        "norm.scale": [tensors["model.norm.weight"]],
    }
    return params | ({"lm_head.w": [tensors["lm_head.weight"].T]} if "lm_head.weight" in tensors else {})


GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_tensors(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The checkpoint under GGUF's names, with the rows of each query and key head in llama.cpp's order."""
    result = {}
    for name, tensor in tensors.items():
        stem = name.removesuffix(".weight")
        if stem.startswith("model.layers."):
            _, _, layer, part = stem.split(".", 3)
            stem, heads = f"blk.{layer}.{GGUF_NAMES[part]}", {"attn_q": 4, "attn_k": 2}.get(GGUF_NAMES[part], 0)
            result[f"{stem}.weight"] = neighbours(tensor, heads) if heads else tensor
        else:
            result[f"{GGUF_NAMES[stem]}.weight"] = tensor
    return result


def neighbours(tensor: Array, heads: int) -> Array:
    """Rows i and i + 12 of each head of 24, put next to each other; one row at a time."""
    result = np.empty_like(tensor)
    for head in range(heads):
        for i in range(12):
            result[24 * head + 2 * i] = tensor[24 * head + i]
            result[24 * head + 2 * i + 1] = tensor[24 * head + 12 + i]
    return result


METADATA: dict[str, Any] = {
    "llama.context_length": 128,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.key_length": 24,
    "llama.attention.value_length": 24,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": 24,
    "llama.rope.freq_base": 10000.0,
    "llama.vocab_size": 48,
}


def write_gguf(
    path: Path,
    tensors: Mapping[str, Array],
    metadata: Mapping[str, Any] = METADATA,
    kind: gguf.GGMLQuantizationType = Q.F32,
    architecture: str = "llama",
) -> Path:
    """A GGUF file. Matrices are stored as `kind`, vectors in float32."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    for name, tensor in tensors.items():
        if tensor.ndim == 1 or kind == Q.F32:
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


HF_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "vocab_size": 48,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "intermediate_size": 96,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}


def write_folder(folder: Path, tensors: Mapping[str, Array], config: Mapping[str, Any] = HF_CONFIG) -> Path:
    """A folder in the Hugging Face layout with one safetensors file."""
    folder.mkdir(exist_ok=True)
    safetensors.numpy.save_file(dict(tensors), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder
