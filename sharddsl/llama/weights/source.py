"""A pretrained model on disk: its config, its tokenizer, and its params, read slice by slice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer import Tokenizer
from sharddsl.llama.weights.params import Param, each_tensor, sizes
from sharddsl.llama.weights.store import Array, TensorStore
from sharddsl.models.config import LlamaConfig

_CHUNK = 1 << 20
"""How many values are read and converted at a time: dequantizing takes several times their size in scratch memory."""

_NOT_COMPARED = ("name", "max_seq")
"""Fields that may differ between the user's config and the weights': they change no weight's meaning."""


@dataclass(frozen=True)
class WeightSource:
    """Weights in a file or folder. Nothing of them is in memory.

    `name_of` gives a param's name in the store; `interleaved` says that rotary pairs are neighbours there, as in GGUF
    files; `ignored` are tensors that hold no weight.
    """

    store: TensorStore
    name_of: Callable[[Param, int], str]
    interleaved: bool
    ignored: frozenset[str]
    make_config: Callable[[], LlamaConfig]
    make_tokenizer: Callable[[], Tokenizer]

    @property
    def path(self) -> Path:
        return self.store.path

    def config(self) -> LlamaConfig:
        """The config that the weights themselves state. UsageError if they are no supported LLaMA."""
        return self.make_config()

    def tokenizer(self) -> Tokenizer:
        """The tokenizer that comes with the weights. UsageError if none does, or one that is not supported."""
        tokenizer = self.make_tokenizer()
        if tokenizer.vocab > (known := self.config().vocab):
            raise UsageError(
                f"weights {self.path}: the tokenizer has {tokenizer.vocab} tokens, but the model knows only {known}\n"
                "  remedy: use the tokenizer that the weights were published with"
            )
        return tokenizer

    def check(self, config: LlamaConfig) -> None:
        """UsageError unless the weights are those of `config`: the same hyperparameters, and every tensor present, in
        the right shape, with none left over. Reads no weight."""
        _check_same(self, config)
        self._check_tensors(config)

    def _check_tensors(self, config: LlamaConfig) -> None:
        shapes = self.store.shapes
        expected = set()
        for param, layer in each_tensor(config):  # one by one: a damaged file may speak of billions of layers
            name = self.name_of(param, layer)
            expected.add(name)
            if name not in shapes:
                raise UsageError(
                    f"weights {self.path}: tensor {name!r} ({param.path}) is missing\n"
                    "  remedy: download the checkpoint again, or name the model that it belongs to"
                )
            if shapes[name] != param.file_shape(config):
                raise UsageError(
                    f"weights {self.path}: tensor {name!r} ({param.path}) has shape {shapes[name]}, "
                    f"but the model needs {param.file_shape(config)}"
                )
        extra = sorted(shapes.keys() - expected - self.ignored)
        if extra:
            more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
            raise UsageError(
                f"weights {self.path}: tensor {extra[0]!r}{more} belongs to no param of this model\n"
                "  remedy: use weights of a plain LLaMA (no biases, adapters or extra heads)"
            )

    def read(self, param: Param, layer: int, index: tuple[slice, ...], config: LlamaConfig, out: Array) -> None:
        """Fills `out` with the part of one layer's param that `index` cuts from it.

        `index` has a slice for each of the param's dims, `out` their lengths; values are cast to its dtype. Only the
        rows and columns that hold the part are read, at most a million values at a time. UsageError for a value
        that is not finite.
        """
        bounds = {
            dim: range(*part.indices(size))
            for dim, part, size in zip(param.dims, index, param.shape(config), strict=True)
        }
        into = np.moveaxis(out, range(-len(param.rows), 0), range(len(param.rows))) if param.transposed else out
        row, row_size = _Group.of(param.rows, config), bounds[param.rows[0]]
        column = _Group.of(param.columns, config)
        columns = column.flat(bounds[param.columns[0]]) if param.columns else None
        name = self.name_of(param, layer)
        width = row.inner * (columns.stop - columns.start if columns else 1)
        step = max(1, _CHUNK // width)
        inner = tuple(_slice(bounds[dim]) for dim in (*param.rows[1:], *param.columns[1:]))
        for start in range(row_size.start, row_size.stop, step):
            part = range(start, min(start + step, row_size.stop))
            flat = self.store.read(name, row.flat(part), columns)
            if not np.isfinite(flat).all():
                raise UsageError(
                    f"weights {self.path}: tensor {name!r} holds a value that is not finite (NaN or infinity)\n"
                    "  remedy: download or convert the checkpoint again"
                )
            split = flat.reshape(len(part), *row.rest, *(() if columns is None else (-1, *column.rest)))
            if param.rotary and self.interleaved:
                split = _halves_apart(split)
            into[part.start - row_size.start : part.stop - row_size.start] = split[_within(param, inner)]


def _within(param: Param, inner: tuple[slice, ...]) -> tuple[slice, ...]:
    """Indexes a block of (row, inner rows…, column, inner columns…), of which the outer ones were cut already."""
    rows, columns = inner[: len(param.rows) - 1], inner[len(param.rows) - 1 :]
    return (slice(None), *rows, slice(None), *columns) if param.columns else (slice(None), *rows)


def _halves_apart(block: Array) -> Array:
    """(heads, head_dim, …) with rotary pairs as neighbours → with first members before second members."""
    heads, head_dim, *rest = block.shape
    return block.reshape(heads, head_dim // 2, 2, *rest).swapaxes(1, 2).reshape(heads, head_dim, *rest)


def _slice(bounds: range) -> slice:
    return slice(bounds.start, bounds.stop)


@dataclass(frozen=True, slots=True)
class _Group:
    """Dims that a file merges into one: the sizes of all but the first, and their product."""

    rest: tuple[int, ...]
    inner: int

    @staticmethod
    def of(dims: tuple[str, ...], config: LlamaConfig) -> _Group:
        rest = sizes(dims[1:], config)
        return _Group(rest, int(np.prod(rest, dtype=np.int64)))

    def flat(self, outer: range) -> slice:
        """The merged dim's stretch that holds these places of the first dim."""
        return slice(outer.start * self.inner, outer.stop * self.inner)


def _check_same(source: WeightSource, config: LlamaConfig) -> None:
    stated, wanted = source.config().model_dump(), config.model_dump()
    differing = [field for field in wanted if field not in _NOT_COMPARED and stated[field] != wanted[field]]
    if differing:
        lines = [f"  {field}: {stated[field]} in the weights, {wanted[field]} in the config" for field in differing]
        raise UsageError(
            f"weights {source.path} are not those of model {config.name!r}:\n"
            + "\n".join(lines)
            + "\n  remedy: name the model that the weights belong to, or leave the model to the weights"
        )
