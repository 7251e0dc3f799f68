"""Params read from small files: every value where it belongs, whatever the format, dtype, slice and sharding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from sharddsl.llama.forward import abstract_params
from sharddsl.llama.weights import WeightSource, load_params, open_weights
from sharddsl.llama.weights.gguf_header import read_header
from sharddsl.llama.weights.params import params_of
from sharddsl.models.config import Run
from tests.llama.weights.files import (
    CONFIG,
    METADATA,
    Array,
    Q,
    checkpoint,
    expected,
    gguf_tensors,
    write_folder,
    write_gguf,
)


def leaf(tree: Any, path: str) -> Any:
    for segment in path.split("."):
        tree = tree[segment]
    return tree


def on_one_device(tree: Any) -> Any:
    return jax.tree.map(lambda _: SingleDeviceSharding(jax.devices()[0]), tree)


def load(source: WeightSource, **options: Any) -> Any:
    return load_params(source, source.config(), on_one_device, **options)


def assert_params(tree: Any, tensors: dict[str, Array]) -> None:
    for path, arrays in expected(tensors).items():
        wanted = np.stack(arrays) if path.startswith("layers.") else arrays[0]
        np.testing.assert_array_equal(np.asarray(leaf(tree, path)), wanted, err_msg=path)


@pytest.mark.parametrize("tied", [False, True])
def test_a_gguf_file(tmp_path: Path, tied: bool) -> None:
    tensors = checkpoint(tied)
    source = open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors)))
    assert source.config() == CONFIG.model_copy(update={"name": "m", "tied": tied})
    assert_params(load(source), tensors)


@pytest.mark.parametrize("kind", [Q.F16, Q.BF16, Q.Q8_0])
def test_vectors_may_be_stored_like_matrices(tmp_path: Path, kind: gguf.GGMLQuantizationType) -> None:
    scale = np.linspace(-1, 1, 64, dtype=np.float32)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("output_norm.weight", gguf.quants.quantize(scale, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    store = open_weights(tmp_path / "m.gguf").store
    expected = gguf.quants.dequantize(gguf.quants.quantize(scale, kind), kind)
    np.testing.assert_array_equal(store.read("output_norm.weight", slice(3, 40), None), expected[3:40])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_safetensors_folder_and_its_file(tmp_path: Path, dtype: Any) -> None:
    tensors = {name: tensor.astype(dtype) for name, tensor in checkpoint().items()}
    folder = write_folder(tmp_path / "test", tensors)
    assert open_weights(folder).config() == CONFIG
    in_float32 = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
    assert_params(load(open_weights(folder)), in_float32)
    assert_params(load(open_weights(folder / "model.safetensors")), in_float32)


@pytest.mark.parametrize("kind", [Q.F16, Q.BF16, Q.Q8_0, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1])
def test_quantized_matrices_are_what_the_gguf_package_makes_of_them(
    tmp_path: Path, kind: gguf.GGMLQuantizationType
) -> None:
    tensors = checkpoint()
    source = open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors), kind=kind))
    rounded = {
        name: tensor if tensor.ndim == 1 else gguf.quants.dequantize(gguf.quants.quantize(tensor, kind), kind)
        for name, tensor in tensors.items()
    }
    assert_params(load(source), rounded)


def test_values_are_rounded_to_the_wanted_dtype(tmp_path: Path) -> None:
    tensors = checkpoint()
    tree = load(open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors))), dtype="bfloat16")
    assert {array.dtype for array in jax.tree.leaves(tree)} == {np.dtype(ml_dtypes.bfloat16)}
    assert_params(tree, {name: tensor.astype(ml_dtypes.bfloat16) for name, tensor in tensors.items()})


def test_unrolled_layers(tmp_path: Path) -> None:
    tensors = checkpoint()
    tree = load(open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors))), scan=False)
    for layer in (0, 1):
        wq = tree["layers"][layer]["attn"]["wq"]
        np.testing.assert_array_equal(np.asarray(wq), expected(tensors)["layers.attn.wq"][layer])


SLICES = {
    "embed.w": (slice(5, 31), slice(3, 50)),
    "layers.attn_norm.scale": (slice(7, 60),),
    "layers.attn.wq": (slice(40, 63), slice(1, 3), slice(2, 20)),
    "layers.attn.wk": (slice(0, 64), slice(1, 2), slice(0, 24)),
    "layers.attn.wo": (slice(1, 4), slice(5, 24), slice(8, 16)),
    "layers.mlp.w_in": (slice(33, 64), slice(0, 95)),
    "layers.mlp.w_out": (slice(31, 33), slice(1, 64)),
    "lm_head.w": (slice(10, 12), slice(47, 48)),
}


@pytest.mark.parametrize("chunk", [1, 1000, 1 << 20])
@pytest.mark.parametrize("kind", [Q.F32, Q.Q8_0])
def test_any_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: gguf.GGMLQuantizationType, chunk: int
) -> None:
    """Slices that begin and end within blocks, heads and chunks."""
    monkeypatch.setattr("sharddsl.llama.weights.source._CHUNK", chunk)
    tensors = checkpoint()
    source = open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors), kind=kind))
    exact = {
        name: tensor if tensor.ndim == 1 else gguf.quants.dequantize(gguf.quants.quantize(tensor, kind), kind)
        for name, tensor in tensors.items()
    }
    params = {param.path: param for param in params_of(CONFIG)}
    for path, index in SLICES.items():
        layer = 1 if path.startswith("layers.") else 0
        wanted = expected(exact)[path][layer][index]
        out = np.full(wanted.shape, np.nan, np.float32)
        source.read(params[path], layer, index, CONFIG, out)
        np.testing.assert_array_equal(out, wanted, err_msg=path)


SPECS = {
    "embed.w": P("x", "y"),
    "layers.attn.wq": P(None, "y", "x"),
    "layers.attn.wk": P("x", None, "y"),
    "layers.attn.wo": P(None, "x", None, "y"),
    "layers.mlp.w_in": P(None, ("x", "y")),
    "layers.mlp.w_out": P("x", "y"),
    "lm_head.w": P(None, ("y", "x")),
}


def sharded(tree: Any, mesh: Mesh) -> Any:
    def one(path: Any, _: Any) -> NamedSharding:
        return NamedSharding(mesh, SPECS.get(".".join(str(key.key) for key in path), P()))

    return jax.tree_util.tree_map_with_path(one, tree)


def test_shards_hold_their_part_and_each_is_read_once(tmp_path: Path) -> None:
    tensors = checkpoint()
    source = open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(tensors)))
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 2, 2), ("x", "y", "z"))
    reads: list[tuple[str, slice, slice | None]] = []
    read = source.store.read

    def counted(name: str, rows: slice, columns: slice | None) -> Array:
        reads.append((name, rows, columns))
        return read(name, rows, columns)

    source.store.read = counted  # type: ignore[method-assign]
    tree = load_params(source, CONFIG, lambda abstract: sharded(abstract, mesh))
    assert_params(tree, tensors)
    for path, spec in SPECS.items():
        assert leaf(tree, path).sharding == NamedSharding(mesh, spec)
    # 8 devices in 4 pairs that hold the same: 4 reads, each of a quarter
    assert sorted(read[1:] for read in reads if read[0] == "token_embd.weight") == [
        (slice(0, 24), slice(0, 32)),
        (slice(0, 24), slice(32, 64)),
        (slice(24, 48), slice(0, 32)),
        (slice(24, 48), slice(32, 64)),
    ]
    assert len([name for name, *_ in reads if name == "output_norm.weight"]) == 1


def test_progress_counts_the_files_bytes(tmp_path: Path) -> None:
    source = open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint())))
    seen: list[tuple[str, int, int]] = []
    load(source, progress=lambda *said: seen.append(said))
    total = 4 * sum(tensor.size for tensor in checkpoint().values())
    assert seen[0] == ("loading embed.w", 0, total)
    assert seen[1] == ("loading layers.attn_norm.scale", 4 * 48 * 64, total)
    assert seen[-1] == ("loaded the weights", total, total)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("scan", [False, True])
def test_the_tree_is_the_models_own(tmp_path: Path, scan: bool, tied: bool) -> None:
    source = open_weights(write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint(tied))))
    seen: list[Any] = []

    def shardings_of(tree: Any) -> Any:
        seen.append(tree)
        return on_one_device(tree)

    load_params(source, source.config(), shardings_of, dtype="bfloat16", scan=scan)
    assert seen == [abstract_params(source.config(), Run(precision="bf16_master", scan=scan))]


def test_llama3_scaling_is_found_in_the_factors_of_a_gguf_file(tmp_path: Path) -> None:
    """The factors of Llama 3.1's own config, computed here one frequency at a time."""
    factors = []
    for i in range(12):
        wavelength = 2 * np.pi * 500000.0 ** (2 * i / 24)
        kept = (8192 / wavelength - 1.0) / (4.0 - 1.0)
        factors.append(8.0 if kept < 0 else 1.0 if kept > 1 else 1 / ((1 - kept) / 8.0 + kept))
    tensors = gguf_tensors(checkpoint()) | {"rope_freqs.weight": np.array(factors, np.float32)}
    path = write_gguf(tmp_path / "m.gguf", tensors, METADATA | {"llama.rope.freq_base": 500000.0})
    scaling = open_weights(path).config().rope_scaling
    assert scaling is not None
    numbers = (scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_seq)
    assert numbers == (8.0, 1.0, 4.0, 8192)
    open_weights(path).check(open_weights(path).config())


def test_the_header_reads_as_the_gguf_package_reads_it(tmp_path: Path) -> None:
    extra = {"a.list": ["x", "é", ""], "a.numbers": [1, 2, 3], "a.flag": True, "a.text": "日本"}
    path = write_gguf(tmp_path / "m.gguf", gguf_tensors(checkpoint()), extra, kind=Q.Q8_0)
    header, theirs = read_header(path), gguf.GGUFReader(path)
    for key, value in extra.items():
        assert header.metadata[key] == value
    for tensor in theirs.tensors:
        info = header.tensors[tensor.name]
        assert (info.shape, info.type) == (tuple(tensor.shape[::-1].tolist()), tensor.tensor_type.value)
        assert info.offset == tensor.data_offset
