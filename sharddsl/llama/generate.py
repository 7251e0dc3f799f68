"""Text generation: prompts in, tokens out, one row per prompt.

Two programs run, each compiled once per shape: prefill over the prompts, and decode for one token per row. Each has a
partition of its own, because a layout may depend on the mode. Where the two differ, nothing is left to chance:

- params are given in the prefill partition; those that the decode partition places otherwise are copied once into that
  placement (`notes` says how many, and both copies stay in memory);
- the cache is born in the *decode* partition's shardings: those are the prefill program's output shardings, so that a
  reshard, if there is one, happens once, at its end. Decode gets the cache donated and updates it in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lcm
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sharddsl.findings import UsageError
from sharddsl.llama.attention import choose_kernel
from sharddsl.llama.cache import Cache, cache_names
from sharddsl.llama.forward import Params, Prompts, Step, abstract_params, decode, prefill
from sharddsl.llama.sampling import GREEDY, Sampling, row_keys, sample
from sharddsl.llama.sums import constrain_of
from sharddsl.models.config import LlamaConfig, Run
from sharddsl.partition import Partition

_SMALLEST_BUCKET = 16
"""Prompts are padded to this length or a power of two of it, so that few lengths are ever compiled."""

Tokens = tuple[int | None, ...]
"""One step's token per prompt, None for a row that is done."""


def fill_batch(rows: int, multiple: int) -> int:
    """The smallest batch of at least `rows` that is a multiple of `multiple`; the rest are filler rows."""
    return -(-rows // multiple) * multiple


def bucket(length: int, multiple: int = 1) -> int:
    """The length that prompts of up to `length` tokens are padded to: a power of two, rounded up to a multiple."""
    size = _SMALLEST_BUCKET
    while size < length:
        size *= 2
    return fill_batch(size, multiple)


def pad_left(prompts: Sequence[Sequence[int]], batch: int, seq: int) -> Prompts:
    """The prompts as (batch, seq) int32, each at its row's end.

    A filler row holds one token, so that no row is all padding.
    """
    tokens = np.zeros((batch, seq), np.int32)
    starts = np.full(batch, seq - 1, np.int32)
    for row, prompt in enumerate(prompts):
        starts[row] = seq - len(prompt)
        tokens[row, starts[row] :] = prompt
    return Prompts(jnp.asarray(tokens), jnp.asarray(starts))


def check_prompts(config: LlamaConfig, prompts: Sequence[Sequence[int]], max_new: int) -> None:
    """Raises `UsageError` for no prompt, an empty one, a token outside the vocabulary, or more tokens than the model
    was made for. Needs no weights."""
    if not prompts or not all(map(len, prompts)):
        raise UsageError("nothing to continue: every prompt needs at least one token")
    if max_new < 1:
        raise UsageError(f"{max_new} new tokens: ask for at least one")
    longest, limit = max(map(len, prompts)), config.max_seq
    if longest + max_new > limit:
        remedy = (
            f"ask for at most {limit - longest} new ones" if longest < limit else f"shorten it to under {limit} tokens"
        )
        raise UsageError(
            f"{config.name} was made for {limit} tokens, and a prompt of {longest} with {max_new} new ones "
            f"has {longest + max_new}: {remedy}"
        )
    if foreign := [token for prompt in prompts for token in prompt if not 0 <= token < config.vocab]:
        raise UsageError(
            f"token {foreign[0]} is not one of the {config.vocab} of {config.name}: is the tokenizer the model's own?"
        )


class Generator:
    """A model ready to generate. `params` lie in the prefill partition. `notes` say what a user should know.

    Raises `UsageError` where the two partitions are not on the same mesh.
    """

    def __init__(self, config: LlamaConfig, run: Run, params: Params, *, prefill: Partition, decode: Partition) -> None:
        if prefill.mesh != decode.mesh:
            raise UsageError("prefill and decode must be laid out on the same mesh of the same devices")
        self.config = config
        self._prefill_on, self._decode_on = prefill, decode
        self._params = params
        self._decode_params, copied = _placed(params, decode)
        self.notes = (f"{copied} params lie in memory twice: decode places them otherwise than prefill",) * (copied > 0)
        run = run.model_copy(update={"remat": "none"})
        self._first = _prefill_program(config, run.model_copy(update={"mode": "prefill"}), prefill, decode)
        self._next = _decode_program(config, run.model_copy(update={"mode": "decode"}), decode)

    @property
    def batch_multiple(self) -> int:
        """What a batch must be a multiple of on this mesh."""
        return lcm(*(on.multiple_of("batch", "act", "batch", "cache") for on in (self._prefill_on, self._decode_on)))

    def stream(
        self,
        prompts: Sequence[Sequence[int]],
        max_new: int,
        *,
        stop: frozenset[int] = frozenset(),
        sampling: Sampling = GREEDY,
        seed: int = 0,
    ) -> Iterator[Tokens]:
        """The prompts' next tokens, step by step, up to `max_new` each. A row ends with the first of its `stop`
        tokens, which is not given out. The batch is filled up to what the mesh needs (`fill_batch`).

        Raises `UsageError` as `check_prompts` does.
        """
        check_prompts(self.config, prompts, max_new)
        return self._steps(prompts, max_new, stop, sampling, seed)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_new: int,
        *,
        stop: frozenset[int] = frozenset(),
        sampling: Sampling = GREEDY,
        seed: int = 0,
    ) -> list[list[int]]:
        """The prompts' continuations, all at once. Otherwise as `stream`."""
        rows: list[list[int]] = [[] for _ in prompts]
        for step in self.stream(prompts, max_new, stop=stop, sampling=sampling, seed=seed):
            for row, token in zip(rows, step, strict=True):
                if token is not None:
                    row.append(token)
        return rows

    def _steps(
        self, prompts: Sequence[Sequence[int]], max_new: int, stop: frozenset[int], sampling: Sampling, seed: int
    ) -> Iterator[Tokens]:
        seq = bucket(max(map(len, prompts)), self._prefill_on.multiple_of("seq", "act", "batch"))
        slots = fill_batch(bucket(seq + max_new), self._slot_multiple)
        padded = jax.device_put(
            pad_left(prompts, fill_batch(len(prompts), self.batch_multiple), seq), _prompts_on(self._prefill_on)
        )
        key = jax.random.key(seed)
        tokens, cache = self._first(self._params, padded, key, slots, sampling)
        running = [True] * len(prompts)
        for count in range(max_new):
            current = tokens
            if count + 1 < max_new:
                # Sent off before the host looks at this step's tokens, so that the devices do not wait for it.
                step = Step(current, padded.starts, jnp.int32(seq + count))
                tokens, cache = self._next(self._decode_params, cache, step, key, sampling)
            chosen = np.asarray(current)[: len(prompts)].tolist()
            running = [alive and token not in stop for alive, token in zip(running, chosen, strict=True)]
            if not any(running):
                return
            yield tuple(token if alive else None for token, alive in zip(chosen, running, strict=True))

    @property
    def _slot_multiple(self) -> int:
        return lcm(*(on.multiple_of("seq", "cache") for on in (self._prefill_on, self._decode_on)))


# ------------------------------------------------------------------------------------------------------------- programs


def _prefill_program(config: LlamaConfig, run: Run, on: Partition, cache_on: Partition) -> Any:
    """(params, prompts, key, slots, sampling) → (a token per row, cache)."""
    kernel = choose_kernel(on, config, run)

    def first(params: Params, prompts: Prompts, key: Array, slots: int, sampling: Sampling) -> tuple[Array, Cache]:
        params = on.fetch(params)
        prompts = Prompts(on.fetch({"tokens": prompts.tokens}, "batch")["tokens"], prompts.starts)
        logits, cache = prefill(config, run, params, prompts, slots, constrain=constrain_of(on), kernel=kernel)
        return sample(logits, row_keys(key, prompts.tokens.shape[1] - prompts.starts), sampling), cache

    return jax.jit(
        first,
        static_argnums=(3, 4),
        in_shardings=(_params_on(config, run, on), _prompts_on(on), on.replicated),
        out_shardings=(on.replicated, _cache_on(config, run, cache_on)),
    )


def _decode_program(config: LlamaConfig, run: Run, on: Partition) -> Any:
    """(params, cache, step, key, sampling) → (a token per row, cache); the cache is donated."""

    def following(params: Params, cache: Cache, step: Step, key: Array, sampling: Sampling) -> tuple[Array, Cache]:
        params, cache = on.fetch(params), on.fetch(cache, "cache")
        logits, cache = decode(config, run, params, cache, step, constrain=constrain_of(on))
        return sample(logits, row_keys(key, step.slot + 1 - step.starts), sampling), cache

    # The tokens are whole on every device: a few bytes, which each host can then read.
    whole, cache = on.replicated, _cache_on(config, run, on)
    return jax.jit(
        following,
        static_argnums=4,
        donate_argnums=1,
        in_shardings=(_params_on(config, run, on), cache, whole, whole),
        out_shardings=(whole, cache),
    )


def _params_on(config: LlamaConfig, run: Run, on: Partition) -> Params:
    return on.shardings(abstract_params(config, run))


def _prompts_on(on: Partition) -> Prompts:
    """Where prompts lie: a tree of shardings."""
    return Prompts._make((on.sharding("batch.tokens"), on.replicated))


def _cache_on(config: LlamaConfig, run: Run, on: Partition) -> Any:
    return jax.tree.map(on.sharding, cache_names(config, run))


def _placed(params: Params, on: Partition) -> tuple[Params, int]:
    """The params in this partition, and how many had to be copied."""
    leaves, structure = jax.tree.flatten(params)
    wanted = jax.tree.leaves(on.shardings(params))
    stay = [leaf.sharding.is_equivalent_to(to, leaf.ndim) for leaf, to in zip(leaves, wanted, strict=True)]
    placed = [leaf if same else jax.device_put(leaf, to) for leaf, to, same in zip(leaves, wanted, stay, strict=True)]
    return jax.tree.unflatten(structure, placed), stay.count(False)
