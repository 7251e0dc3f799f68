"""From a path that a user names to a source of weights."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

from sharddsl.findings import UsageError
from sharddsl.llama.jsonfile import read_json
from sharddsl.llama.tokenizer import Tokenizer, gguf_tokenizer, huggingface_tokenizer
from sharddsl.llama.weights.gguf_config import ROPE_FACTORS, gguf_config
from sharddsl.llama.weights.gguf_header import MAGIC, read_header
from sharddsl.llama.weights.gguf_store import GgufStore
from sharddsl.llama.weights.huggingface_config import huggingface_config
from sharddsl.llama.weights.params import gguf_name, huggingface_name
from sharddsl.llama.weights.safetensors_store import SafetensorsStore
from sharddsl.llama.weights.source import WeightSource
from sharddsl.llama.weights.store import mapped
from sharddsl.models.config import LlamaConfig

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_FOREIGN = {
    b"PK\x03\x04": "a zip archive (perhaps a PyTorch checkpoint)",
    b"\x80\x02": "a Python pickle (perhaps a PyTorch checkpoint), which is never loaded",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "gzip data",
    b"ggjt": "an old GGML file, from before GGUF",
    b"lmgg": "an old GGML file, from before GGUF",
    b"tjgg": "an old GGML file, from before GGUF",
    b"vers": "a Git LFS pointer: the weights themselves were not fetched",
}
_REMEDY = "give a .gguf file, a .safetensors file, a *.safetensors.index.json, or a folder in the Hugging Face layout"


def open_weights(path: Path | str) -> WeightSource:
    """The weights at `path`: a GGUF file, a safetensors file or index beside its `config.json`, or a folder of those.

    Reads headers only. UsageError, naming the file and where it can the tensor, for anything that is not whole.
    """
    path = Path(os.path.expanduser(path))  # which leaves `~nobody` as it is, to be told as missing
    try:
        return _open(path)
    except OSError as error:
        raise UsageError(f"weights {path} cannot be read: {error.strerror or error}") from error


def _open(path: Path) -> WeightSource:
    if path.is_dir():
        return _folder(path)
    if path.name.endswith(".index.json"):
        return _huggingface(path, path.parent, _indexed(path))
    start = mapped(path)[:9].tobytes()
    if start.startswith(MAGIC):
        return _gguf(path)
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            raise UsageError(f"weights file {path} is {what}\n  remedy: {_REMEDY}")
    if path.suffix == ".safetensors" or start[8:9] == b"{":
        return _huggingface(path, path.parent, (path,))
    raise UsageError(
        f"weights file {path} is neither GGUF nor safetensors: it begins with {start[:4]!r}\n  remedy: {_REMEDY}"
    )


def _gguf(path: Path) -> WeightSource:
    header = read_header(path)
    store = GgufStore(header)

    def config() -> LlamaConfig:
        return gguf_config(header, store)

    def tokenizer() -> Tokenizer:
        return gguf_tokenizer(header.metadata, path)

    ignored = frozenset({ROPE_FACTORS})
    return WeightSource(store, gguf_name, True, ignored, config, tokenizer)


def _folder(folder: Path) -> WeightSource:
    if (folder / _INDEX).is_file():
        return _huggingface(folder, folder, _indexed(folder / _INDEX))
    if (folder / _SINGLE).is_file():
        return _huggingface(folder, folder, (folder / _SINGLE,))
    ggufs = sorted(file.name for file in folder.glob("*.gguf"))
    seen = f"; it holds {ggufs[0]}, which can be named itself" if ggufs else ""
    raise UsageError(f"weights folder {folder} has neither {_INDEX} nor {_SINGLE}{seen}\n  remedy: {_REMEDY}")


def _huggingface(path: Path, folder: Path, files: tuple[Path, ...]) -> WeightSource:
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise UsageError(
            f"weights {path}: there is no config.json beside them, so the model's shape is unknown\n"
            "  remedy: put the checkpoint's config.json into that folder"
        )
    store = SafetensorsStore(path, files)
    tied_head = {"lm_head.weight"} if _stated_tied(config_file) else set[str]()
    rotary = {name for name in store.shapes if name.endswith(".rotary_emb.inv_freq")}

    def config() -> LlamaConfig:
        return huggingface_config(config_file)

    def tokenizer() -> Tokenizer:
        return huggingface_tokenizer(folder)

    return WeightSource(store, huggingface_name, False, frozenset(tied_head | rotary), config, tokenizer)


def _stated_tied(config_file: Path) -> bool:
    """Some checkpoints store a tied head once more, under its own name."""
    return read_json(config_file).get("tie_word_embeddings") is True


def _indexed(index: Path) -> tuple[Path, ...]:
    """The files that an index names, each a plain name of a file beside it."""
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UsageError(f"weights index {index} has no 'weight_map'")
    names = sorted({str(name) for name in places.values()})
    for name in names:
        if name in ("", ".", "..") or PurePosixPath(name).name != name or PureWindowsPath(name).name != name:
            raise UsageError(f"weights index {index} names {name!r}, which is not a file beside it")
        if not (index.parent / name).is_file():
            raise UsageError(
                f"weights index {index} names {name!r}, which is not there\n"
                "  remedy: download the missing file into that folder"
            )
    return tuple(index.parent / name for name in names)
