"""The model as pure functions of a params pytree, ready for `jax.jit`.

`params` is the nested dict that `nnx.to_pure_dict` makes, with a layout's names as its keys: `params["embed"]["w"]`,
`params["layers"]["attn"]["wq"]` (scanned) or `params["layers"][3]["attn"]["wq"]` (unrolled).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from sharddsl.llama.attention import Kernel, over_cache, over_segments
from sharddsl.llama.cache import Cache, cache_names, empty_cache
from sharddsl.llama.gradients import Constrain, pin_gradients
from sharddsl.llama.model import Call, Llama
from sharddsl.llama.rope import rotation
from sharddsl.models.config import LlamaConfig, Run
from sharddsl.partition import Partition, born_sharded
from sharddsl.tensors.model import LAYERS

Params = dict[str, Any]


def abstract_params(config: LlamaConfig, run: Run) -> Params:
    """The params' shapes and dtypes; nothing is allocated."""
    _, state = _abstract(config, run)
    params: Params = nnx.to_pure_dict(state)
    return params


def initial_params(config: LlamaConfig, run: Run, key: Array) -> Params:
    """Random params. Where each lies is for the caller to say, with `jit`'s output shardings: see `init_params`."""
    model = Llama(config, run, nnx.Rngs(params=key))
    params: Params = nnx.to_pure_dict(nnx.split(model, nnx.Param)[1])
    return params


def init_params(config: LlamaConfig, run: Run, partition: Partition, seed: int = 0) -> Params:
    """Random params, each device making its own shards only. The values depend on the seed, not on the partition."""
    shardings = partition.shardings(abstract_params(config, run))
    return born_sharded(partial(initial_params, config, run), shardings, jax.random.key(seed))


def forward(
    config: LlamaConfig,
    run: Run,
    params: Params,
    tokens: Array,
    *,
    constrain: Constrain,
    positions: Array | None = None,
    segments: Array | None = None,
    kernel: Kernel = "xla",
    gradients: Constrain | None = None,
) -> Array:
    """Logits for every token: (batch, seq, vocab), float32.

    `tokens` is (batch, seq) int32. `segments` (batch, seq) keeps documents that share a row, and padding, apart.
    `positions` (batch, seq) are counted from the row's start by default, or from the segment's where segments are
    given. `kernel` is `choose_kernel`'s answer. With `gradients`, what is differentiated through this has the gradient
    of every param pinned by it where that forms, under the name `grad.<param>`.
    """
    if positions is None:
        positions = _positions(tokens.shape, segments)
    with _precision(run):
        if gradients is not None:  # those of layers are pinned within their layer
            params = {LAYERS: params[LAYERS]} | pin_gradients(
                {name: params[name] for name in params if name != LAYERS}, gradients
            )
        model = _model(config, run, params)
        call = Call(rotation(config, positions), over_segments(segments), constrain, kernel, gradients=gradients)
        x, _ = model.hidden(tokens, call, None)
        return model.logits(x, constrain)


class Prompts(NamedTuple):
    """Rows of tokens (batch, seq), int32, padded on the left: row b's prompt begins in column `starts[b]`, and every
    row's next token goes to the same slot of the cache."""

    tokens: Array
    starts: Array


def prefill(
    config: LlamaConfig,
    run: Run,
    params: Params,
    prompts: Prompts,
    slots: int,
    *,
    constrain: Constrain,
    kernel: Kernel = "xla",
) -> tuple[Array, Cache]:
    """Run the prompts, and keep their keys and values in a new cache of `slots` slots.

    Returns the last tokens' logits (batch, vocab), float32, and the cache.
    """
    batch, seq = prompts.tokens.shape
    columns = jnp.arange(seq)[None, :] - prompts.starts[:, None]
    mask = over_segments((columns >= 0).astype(jnp.int32))
    cache = jax.tree.map(constrain, empty_cache(config, run, batch, slots), cache_names(config, run))
    with _precision(run):
        model = _model(config, run, params)
        call = Call(rotation(config, jnp.maximum(columns, 0)), mask, constrain, kernel)
        x, cache = model.hidden(prompts.tokens, call, cache)
        return model.logits(x[:, -1:], constrain)[:, 0], cache


class Step(NamedTuple):
    """One token per row, (batch,) int32, for a slot of the cache, in which row b's tokens begin at `starts[b]`."""

    tokens: Array
    starts: Array
    slot: Array


def decode(
    config: LlamaConfig, run: Run, params: Params, cache: Cache, step: Step, *, constrain: Constrain
) -> tuple[Array, Cache]:
    """The logits after one more token, (batch, vocab) float32, and the cache with it; the one given may be donated."""
    slots = jax.tree.leaves(cache)[0].shape[-3]
    positions = (step.slot - step.starts)[:, None]
    mask = over_cache(step.starts, step.slot, slots)
    with _precision(run):
        model = _model(config, run, params)
        call = Call(rotation(config, positions), mask, constrain, slot=step.slot)
        x, written = model.hidden(step.tokens[:, None], call, cache)
        return model.logits(x, constrain)[:, 0], written


# ---------------------------------------------------------------------------------------------------------------- parts


@lru_cache(maxsize=16)
def _abstract(config: LlamaConfig, run: Run) -> tuple[Any, Any]:
    model = nnx.eval_shape(lambda: Llama(config, run, nnx.Rngs(params=0)))
    graph, state = nnx.split(model, nnx.Param)
    return graph, state


def _model(config: LlamaConfig, run: Run, params: Params) -> Llama:
    graph, _ = _abstract(config, run)
    model: Llama = nnx.merge(graph, params)
    return model


@contextmanager
def _precision(run: Run) -> Iterator[None]:
    """float32 means float32: a GPU or TPU would otherwise multiply in fewer bits."""
    with jax.default_matmul_precision("highest" if run.compute_dtype == "float32" else "default"):
        yield


def _positions(shape: tuple[int, ...], segments: Array | None) -> Array:
    """Each token's distance from the start of its row, or of its run of equal segments."""
    columns = jnp.broadcast_to(jnp.arange(shape[1]), shape)
    if segments is None:
        return columns
    begins = jnp.concatenate([jnp.ones((shape[0], 1), bool), segments[:, 1:] != segments[:, :-1]], axis=1)
    return columns - jax.lax.cummax(jnp.where(begins, columns, 0), axis=1)
