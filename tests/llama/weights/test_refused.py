"""Weights that cannot be used: each gives one error that names the file, and the tensor where there is one."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import SingleDeviceSharding

from sharddsl.findings import UsageError
from sharddsl.llama.weights import load_params, open_weights
from sharddsl.llama.weights.gguf_header import read_header
from sharddsl.models.config import RopeScaling
from tests.llama.weights.files import (
    CONFIG,
    HF_CONFIG,
    METADATA,
    Q,
    checkpoint,
    gguf_tensors,
    write_folder,
    write_gguf,
)


def load(path: Path, **changed: Any) -> None:
    source = open_weights(path)
    config = source.config().model_copy(update=changed)
    load_params(source, config, lambda tree: jax.tree.map(lambda _: SingleDeviceSharding(jax.devices()[0]), tree))


def refused(path: Path, *said: str) -> None:
    with pytest.raises(UsageError) as error:
        load(path)
    for part in (path.name, *said):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04rest of it", "a zip archive"),
        (b"\x80\x02ccollections", "a Python pickle (perhaps a PyTorch checkpoint), which is never loaded"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"tjgg\x01\x00\x00\x00", "an old GGML file"),
        (b"Once upon a time", "is neither GGUF nor safetensors: it begins with b'Once'"),
        (b"GGUF", "is cut short: its header needs byte 8 of 4"),
        (b"GGUF" + struct.pack("<I", 1), "has GGUF version 1; versions 2 and 3 can be read"),
        (b"GGUF" + struct.pack(">I", 3), "is a big-endian GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "is cut short"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "is cut short"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62), "is cut short"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99), "a metadata value of unknown type 99"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 9, 1), "an array of arrays"),
        (b"GGUF" + struct.pack("<IQQQ1sII", 3, 0, 1, 1, b"\xff", 4, 7), "is not UTF-8"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 1, 0, 1, b"t", 9), "tensor 't' has 9 dims"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    refused(path, said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"Once upon a time", "is not a safetensors file: its header is not JSON"),
        (struct.pack("<Q", 2**40) + b"{}", "is not a safetensors file"),
        (struct.pack("<Q", 500) + b'{"a"', "is cut short: its header ends at byte 508 of 12"),
        (struct.pack("<Q", 4) + b"{]]}", "its header is not JSON"),
        (struct.pack("<Q", 8) + b'{"a":12}', "the header's entry for tensor 'a' is malformed"),
    ],
)
def test_safetensors_files_that_are_something_else(tmp_path: Path, content: bytes, said: str) -> None:
    folder = write_folder(tmp_path / "m", checkpoint())
    (folder / "model.safetensors").write_bytes(content)
    refused(folder / "model.safetensors", said)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}, "has dtype F8_E4M3; F32, F16, BF16 can be read"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}, "the header's entry for tensor 'a' is malformed"),
        ({"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}, "is malformed"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 8e400]}, "is malformed"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}, "is malformed"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "is cut short: tensor 'a' ends at byte"),
    ],
)
def test_safetensors_entries(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    folder = write_folder(tmp_path / "m", checkpoint())
    header = json.dumps({"a": entry}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"1234")
    refused(folder / "model.safetensors", said)


@pytest.mark.parametrize("name", ["m.gguf", "m/model.safetensors", "m/config.json"])
def test_any_damage_is_an_error_or_harmless(tmp_path: Path, name: str) -> None:
    """Bytes of the header are changed at random: never another exception than UsageError, and never a crash."""
    write_folder(tmp_path / "m", checkpoint())
    write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()), kind=Q.Q8_0)
    file = tmp_path / name
    whole, random = file.read_bytes(), np.random.default_rng(3)
    start = tmp_path / ("m.gguf" if name == "m.gguf" else "m")
    outcomes = set()
    for _ in range(150):
        damaged = bytearray(whole)
        for place in random.integers(0, min(len(whole), 2500), size=random.integers(1, 4)):
            damaged[place] = random.integers(0, 256)
        file.write_bytes(damaged)
        try:
            load(start)
            outcomes.add("loaded")
        except UsageError:
            outcomes.add("refused")
    assert "refused" in outcomes


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    refused(tmp_path / "model.gguf", "does not exist")
    refused(tmp_path / ("x" * 300), "cannot be read")
    refused(Path("~nobody.of.this.name/model.gguf"), "does not exist")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_files_that_end_early(tmp_path: Path, share: float) -> None:
    whole = write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()), kind=Q.Q8_0).read_bytes()
    (tmp_path / "m.gguf").write_bytes(whole[: int(len(whole) * share)])
    refused(tmp_path / "m.gguf", "is cut short")
    folder = write_folder(tmp_path / "folder", checkpoint())
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: int(len(whole) * share)])
    refused(folder / "model.safetensors", "is cut short")


def test_a_missing_tensor(tmp_path: Path) -> None:
    tensors = checkpoint()
    del tensors["model.layers.1.mlp.up_proj.weight"]
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors))
    refused(path, "tensor 'blk.1.ffn_up.weight' (layers.mlp.w_in) is missing")
    folder = write_folder(tmp_path / "folder", tensors)
    refused(folder, "tensor 'model.layers.1.mlp.up_proj.weight' (layers.mlp.w_in) is missing")


def test_a_tensor_too_many(tmp_path: Path) -> None:
    bias = np.zeros(96, np.float32)
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()) | {"blk.0.attn_q.bias": bias})
    refused(path, "tensor 'blk.0.attn_q.bias' belongs to no param of this model")


def test_a_tensor_of_another_shape(tmp_path: Path) -> None:
    tensors = checkpoint() | {"model.layers.0.self_attn.v_proj.weight": np.zeros((64, 48), np.float32)}
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors))
    refused(path, "tensor 'blk.0.attn_v.weight' (layers.attn.wv) has shape (64, 48), but the model needs (48, 64)")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(tmp_path: Path, value: float) -> None:
    tensors = checkpoint()
    tensors["model.layers.1.mlp.down_proj.weight"][63, 95] = value
    folder = write_folder(tmp_path / "m", tensors)
    refused(folder, "tensor 'model.layers.1.mlp.down_proj.weight' holds a value that is not finite")


def test_a_quantized_block_whose_scale_is_not_finite(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()), kind=Q.Q8_0)
    info = read_header(path).tensors["blk.1.ffn_down.weight"]
    data = bytearray(path.read_bytes())
    data[info.offset + 34 : info.offset + 36] = np.float16(np.inf).tobytes()  # the second block of 34 bytes
    path.write_bytes(data)
    refused(path, "tensor 'blk.1.ffn_down.weight' holds a value that is not finite")


def test_weights_of_another_model(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()))
    with pytest.raises(UsageError) as error:
        load(path, name="llama_tiny", vocab=512, rope_theta=500000.0, rope_scaling=RopeScaling(factor=8.0))
    assert str(error.value).splitlines() == [
        f"weights {path} are not those of model 'llama_tiny':",
        "  vocab: 48 in the weights, 512 in the config",
        "  rope_theta: 10000.0 in the weights, 500000.0 in the config",
        "  rope_scaling: None in the weights, {'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, "
        "'original_seq': 8192} in the config",
        "  remedy: name the model that the weights belong to, or leave the model to the weights",
    ]


def test_name_and_context_length_may_differ(tmp_path: Path) -> None:
    load(write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint())), name="mine", max_seq=4096)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"llama.expert_count": 8}, "holds a mixture of experts"),
        ({"split.count": 3}, "is one of 3 parts of a split GGUF file"),
        ({"llama.rope.scaling.type": "yarn"}, "scales its rotary embedding by 'yarn'"),
        ({"llama.rope.dimension_count": 12}, "'llama.rope.dimension_count' is 12 where heads have 24 features"),
        ({"llama.attention.head_count_kv": 3}, "heads=4 must be a multiple of kv_heads=3"),
        ({"llama.attention.head_count": 0}, "its metadata makes no LLaMA: heads"),
        ({"llama.block_count": None}, "its metadata lacks 'llama.block_count'"),
        ({"llama.block_count": "two"}, "'llama.block_count' is 'two', not a number"),
        ({"llama.block_count": 1.5}, "'llama.block_count' is 1.5, not a whole number"),
        ({"llama.block_count": float("nan")}, "'llama.block_count' is nan, not a number"),
        ({"llama.rope.freq_base": float("inf")}, "'llama.rope.freq_base' is inf, not a number"),
        ({"llama.feed_forward_length": [96, 128]}, "'llama.feed_forward_length' differs between layers"),
        (
            {"llama.block_count": 2**32 - 1},
            "its metadata makes no LLaMA: layers: Input should be less than or equal to",
        ),
        ({"llama.block_count": 2**31 - 1}, "tensor 'blk.2.attn_norm.weight' (layers.attn_norm.scale) is missing"),
        ({"general.alignment": 24}, "general.alignment is 24, not a power of two"),
    ],
)
def test_gguf_metadata(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    metadata = {key: value for key, value in (METADATA | changed).items() if value is not None}
    refused(write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()), metadata), said)


def test_another_architecture(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()), architecture="qwen2")
    refused(path, "holds a model of architecture 'qwen2'; only 'llama' is supported")


def test_rotary_factors_that_are_not_llama3s(tmp_path: Path) -> None:
    factors = np.linspace(1, 3, 12, dtype=np.float32)
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()) | {"rope_freqs.weight": factors})
    refused(path, "the factors in 'rope_freqs.weight' are not those of Llama 3's rotary scaling")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model_type": "qwen3"}, "describes a model of type 'qwen3'; only 'llama' is supported"),
        ({"attention_bias": True}, "attention_bias is true"),
        ({"mlp_bias": True}, "mlp_bias is true"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"quantization_config": {"quant_method": "gptq"}}, "the weights are quantized by 'gptq'"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type is 'linear'"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 2.0}}, "lacks 'low_freq_factor'"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is set"),
        ({"num_attention_heads": None}, "makes no LLaMA"),
        ({"num_attention_heads": 0, "head_dim": None}, "makes no LLaMA"),
        ({"hidden_size": "wide"}, "makes no LLaMA: embed"),
        ({"rope_scaling": "llama3"}, "rope_scaling is 'llama3', not an object"),
        ({"rope_parameters": [1]}, "rope_parameters is [1], not an object"),
        ({"quantization_config": "gptq"}, "quantization_config is 'gptq', not an object"),
    ],
)
def test_huggingface_configs(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    folder = write_folder(tmp_path / "m", checkpoint(), HF_CONFIG | changed)
    with pytest.raises(UsageError) as error:
        load(folder)
    assert said in str(error.value)
    assert str(folder / "config.json") in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "is not JSON"), ("[1]", "is not a JSON object"), ("{" * 5000, "is not JSON"), ("\x00", "is not JSON")],
)
def test_configs_that_are_not_json(tmp_path: Path, content: str, said: str) -> None:
    folder = write_folder(tmp_path / "m", checkpoint())
    (folder / "config.json").write_text(content)
    with pytest.raises(UsageError, match=said):
        load(folder)


def _without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _with_a_gguf_instead(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "q4.gguf")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_config, "there is no config.json beside them"),
        (_without_weights, "has neither model.safetensors.index.json nor model.safetensors"),
        (_with_a_gguf_instead, "it holds q4.gguf, which can be named itself"),
    ],
)
def test_incomplete_folders(tmp_path: Path, change: Callable[[Path], None], said: str) -> None:
    folder = write_folder(tmp_path / "m", checkpoint())
    change(folder)
    refused(folder, said)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"a": "../other/model.safetensors"}, "names '../other/model.safetensors', which is not a file beside it"),
        ({"a": "/etc/passwd"}, "names '/etc/passwd', which is not a file beside it"),
        ({"a": "..\\other.safetensors"}, "which is not a file beside it"),
        ({"a": ".."}, "names '..', which is not a file beside it"),
        ({"a": "C:model.safetensors"}, "which is not a file beside it"),
        ({"a": "model-00002.safetensors"}, "names 'model-00002.safetensors', which is not there"),
        ({}, "has no 'weight_map'"),
        (["a"], "has no 'weight_map'"),
    ],
)
def test_indexes(tmp_path: Path, places: Any, said: str) -> None:
    folder = write_folder(tmp_path / "m", checkpoint())
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    refused(index, said)


def test_a_tensor_in_two_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", checkpoint())
    (folder / "b.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "b.safetensors", "y": "model.safetensors"}}))
    with pytest.raises(UsageError, match=r"lies both in b\.safetensors and in model\.safetensors"):
        load(folder)


def test_a_tensor_type_that_cannot_be_dequantized(tmp_path: Path) -> None:
    tensors = gguf_tensors(checkpoint()) | {"token_embd.weight": np.zeros((48, 64), np.int32)}
    refused(write_gguf(tmp_path / "m.gguf", tensors), "tensor 'token_embd.weight' has type I32")


def test_the_test_model_itself_is_fine(tmp_path: Path) -> None:
    load(write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()), kind=Q.Q8_0))
    load(write_folder(tmp_path / "test", checkpoint()))
    assert open_weights(tmp_path / "test").config() == CONFIG
