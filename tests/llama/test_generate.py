"""Generation: prefill and decode against the whole forward pass, batches against single prompts, layouts against one
device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sharddsl.findings import UsageError
from sharddsl.llama.forward import Params, Prompts, Step, decode, forward, prefill
from sharddsl.llama.generate import Generator, bucket, fill_batch, pad_left
from sharddsl.llama.sampling import Sampling
from sharddsl.models import PRESETS, LlamaConfig, Run, inventory
from sharddsl.partition import Partition
from tests.layouts import LAYOUTS, ByDim, lay_out
from tests.llama import reference
from tests.llama.small import F32, TIED, UNROLLED, UNTIED, free, random_params, some_tokens, unstacked

TINY = PRESETS["llama_tiny"]
PROMPTS = [[1, 2, 3], [9], [7] * 20]


@pytest.mark.parametrize("config", [UNTIED, TIED], ids=lambda config: config.name)
@pytest.mark.parametrize("run", [F32, UNROLLED], ids=["scanned", "unrolled"])
def test_prefill_and_decode_give_the_forward_pass(config: LlamaConfig, run: Run) -> None:
    stacked, tokens = random_params(config), some_tokens(config, batch=2, seq=8)
    params = stacked if run.scan else unstacked(stacked, config.layers)
    whole = jax.jit(partial(forward, config, run, constrain=free))(params, tokens)
    following = jax.jit(partial(decode, config, run, constrain=free))
    starts = jnp.zeros(2, jnp.int32)
    found, cache = jax.jit(partial(prefill, config, run, slots=8, constrain=free))(
        params, Prompts(tokens[:, :5], starts)
    )
    np.testing.assert_allclose(found, whole[:, 4], rtol=1e-4, atol=1e-4)
    for slot in (5, 6, 7):
        step = Step(tokens[:, slot], starts, jnp.int32(slot))
        found, cache = following(params, cache, step)
        np.testing.assert_allclose(found, whole[:, slot], rtol=1e-4, atol=1e-4)


def test_left_padding_changes_nothing() -> None:
    params, prompts = random_params(UNTIED), [[5, 6, 7, 8, 9], [3, 4], [11]]
    padded = pad_left(prompts, batch=4, seq=8)
    found, cache = jax.jit(partial(prefill, UNTIED, F32, slots=10, constrain=free))(params, padded)
    step = Step(jnp.full(4, 2), padded.starts, jnp.int32(8))
    after, _ = jax.jit(partial(decode, UNTIED, F32, constrain=free))(params, cache, step)
    for row, prompt in enumerate(prompts):
        alone = reference.logits(UNTIED, unstacked(params, UNTIED.layers), [*prompt, 2])
        np.testing.assert_allclose(found[row], alone[-2], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(after[row], alone[-1], rtol=1e-4, atol=1e-4)
    assert np.isfinite(found).all()  # the filler row too


def test_pad_left() -> None:
    padded = pad_left([[1, 2, 3], [4]], batch=3, seq=4)
    assert padded.tokens.tolist() == [[0, 1, 2, 3], [0, 0, 0, 4], [0, 0, 0, 0]]
    assert padded.starts.tolist() == [1, 3, 3]


def test_fill_batch_and_buckets() -> None:
    assert [fill_batch(n, 8) for n in (1, 8, 9)] == [8, 8, 16]
    assert [bucket(n) for n in (1, 16, 17, 100)] == [16, 16, 32, 128]
    assert bucket(17, multiple=3) == 33


# ------------------------------------------------------------------------------------------------------------ generator


@lru_cache
def generator(name: str, scan: bool = True, decode_as: str | None = None) -> Generator:
    """`llama_tiny` on one of the layouts, with weights large enough that the text does not repeat itself."""
    run = F32 if scan else UNROLLED
    mesh, by_name = LAYOUTS[name]
    first, after = on(mesh, by_name, run, "prefill"), on(mesh, LAYOUTS[decode_as or name][1], run, "decode")
    return Generator(
        TINY, run, jax.device_put(weights(scan), first.shardings(weights(scan))), prefill=first, decode=after
    )


def on(mesh: Mapping[str, int], by_name: Mapping[str, ByDim], run: Run, mode: str) -> Partition:
    return Partition.of(lay_out(inventory(TINY, run.model_copy(update={"mode": mode})), mesh, by_name))


@lru_cache
def weights(scan: bool = True) -> Params:
    params = jax.tree.map(lambda x: x * 0.5, random_params(TINY))
    return params if scan else unstacked(params, TINY.layers)


@lru_cache
def alone() -> list[list[int]]:
    """What one device gives."""
    return generator("one").generate(PROMPTS, 24)


def test_one_device_gives_what_the_forward_pass_gives() -> None:
    text = jnp.asarray([PROMPTS[0] + alone()[0]])
    greedy = jax.jit(lambda p: forward(TINY, F32, p, text, constrain=free)[0].argmax(-1))(weights())
    assert greedy[len(PROMPTS[0]) - 1 : -1].tolist() == alone()[0]
    assert len(set(alone()[0])) > 8


@pytest.mark.parametrize("name", ["fsdp_tp", "sp"])
def test_a_layout_gives_the_same_tokens(name: str) -> None:
    assert generator(name).generate(PROMPTS, 24) == alone()


@pytest.mark.slow
@pytest.mark.parametrize("scan", [True, False], ids=["scanned", "unrolled"])
@pytest.mark.parametrize("name", list(LAYOUTS))
def test_every_layout_gives_the_same_tokens(name: str, scan: bool) -> None:
    assert generator(name, scan).generate(PROMPTS, 24) == alone()


def test_decode_may_be_laid_out_otherwise() -> None:
    split = generator("fsdp_tp", decode_as="long_cache")
    # All but embed.w, which both split over mp.
    assert split.notes == ("11 params lie in memory twice: decode places them otherwise than prefill",)
    assert split.generate(PROMPTS, 24) == alone()


def test_what_rests_in_host_memory_is_fetched() -> None:
    """Params, cache and prompts, all of which are split as before."""
    partitions = []
    for mode in ("prefill", "decode"):
        layout = on(*LAYOUTS["fsdp_tp"], F32, mode).layout
        kept = ("param", "cache", "batch")
        places = [replace(p, memory="pinned_host") if p.tensor.namespace in kept else p for p in layout]
        partitions.append(Partition.of(replace(layout, placements=tuple(places))))
    first, after = partitions
    params = jax.device_put(weights(), first.shardings(weights()))
    assert {leaf.sharding.memory_kind for leaf in jax.tree.leaves(params)} == {"pinned_host"}
    assert Generator(TINY, F32, params, prefill=first, decode=after).generate(PROMPTS, 24) == alone()


def test_a_layout_for_another_batch_places_any_number_of_rows() -> None:
    """A layout resolved for a batch and length, because a `when` asked, is no promise of how many rows come."""
    first, after = (on({"dp": 1}, {}, F32.model_copy(update={"batch": 2, "seq": 8}), m) for m in ("prefill", "decode"))
    assert Generator(TINY, F32, weights(), prefill=first, decode=after).generate(PROMPTS, 24) == alone()


def test_partitions_on_different_meshes_are_refused() -> None:
    first, other = on({"dp": 1}, {}, F32, "prefill"), on({"dp": 2}, {}, F32, "decode")
    with pytest.raises(UsageError, match="on the same mesh"):
        Generator(TINY, F32, weights(), prefill=first, decode=other)


def test_stop_tokens_end_their_own_row() -> None:
    first, second, third = alone()
    stop = frozenset({first[3]})
    assert first[3] not in first[:3] + second[:8] + third[:8]
    steps = list(generator("one").stream(PROMPTS, 8, stop=stop))
    assert [step[0] for step in steps] == [*first[:3], None, None, None, None, None]
    assert [step[1] for step in steps] == second[:8]


def test_the_stream_ends_with_the_last_row() -> None:
    expected = alone()[1]
    assert generator("one").generate([PROMPTS[1]], 24, stop=frozenset({expected[4]})) == [expected[:4]]


def test_sampling_depends_on_the_seed_and_not_on_the_layout() -> None:
    how = Sampling(0.8, top_k=50, top_p=0.95)
    one, split = generator("one"), generator("fsdp_tp")
    found = split.generate(PROMPTS * 2, 8, sampling=how, seed=1)
    assert found[0] != found[3]  # equal prompts, different draws
    assert found != split.generate(PROMPTS * 2, 8, sampling=how, seed=2)
    assert one.generate(PROMPTS * 2, 8, sampling=how, seed=1) == found  # without filler rows


def test_the_cache_is_updated_in_place() -> None:
    split = generator("fsdp_tp")
    padded = pad_left(PROMPTS, 4, 32)
    token, cache = split._first(split._params, padded, jax.random.key(0), 64, Sampling())
    step = Step(token, padded.starts, jnp.int32(32))
    compiled = split._next.lower(split._params, cache, step, jax.random.key(0), Sampling()).compile()
    # 2 arrays × 4 layers × 64 slots × 8 kv heads × 8 elements × 4 bytes × 4 rows, over 4 ways of fsdp and 2 of mp
    assert compiled.memory_analysis().alias_size_in_bytes == 2 * 4 * 64 * 8 * 8 * 4 * 4 // 8
    split._next(split._params, cache, step, jax.random.key(0), Sampling())
    assert cache["k"].is_deleted()


@pytest.mark.parametrize(
    ("prompts", "max_new", "message"),
    [
        ([], 4, "nothing to continue"),
        ([[1], []], 4, "every prompt needs at least one token"),
        ([[1]], 0, "0 new tokens: ask for at least one"),
        (
            [[1] * 100],
            TINY.max_seq,
            f"llama_tiny was made for {TINY.max_seq} tokens, and a prompt of 100 with {TINY.max_seq} new ones has "
            f"{TINY.max_seq + 100}: ask for at most {TINY.max_seq - 100} new ones",
        ),
        ([[1] * (TINY.max_seq + 1)], 1, f"shorten it to under {TINY.max_seq} tokens"),
        ([[1, 512]], 4, "token 512 is not one of the 512 of llama_tiny"),
        ([[-1]], 4, "token -1 is not one of"),
    ],
)
def test_what_cannot_be_generated(prompts: list[list[int]], max_new: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        generator("one").stream(prompts, max_new)
