"""Sampling against a plain numpy account of what is kept."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sharddsl.findings import UsageError
from sharddsl.llama.sampling import GREEDY, Sampling, likely, row_keys, sample

LOGITS = np.random.default_rng(0).normal(0, 2, (3, 12)).astype(np.float32)


def kept(row: Any, how: Sampling) -> set[int]:
    """The tokens that may be drawn: the most likely one by one, until there are k, or their chances reach p."""
    order = sorted(range(len(row)), key=lambda token: -row[token])[: how.top_k]
    scaled = np.exp(np.asarray([row[token] for token in order], np.float64) / how.temperature)
    chances = scaled / scaled.sum()
    nucleus: set[int] = set()
    reached = 0.0
    for token, chance in zip(order, chances, strict=True):
        if how.top_p is not None and reached >= how.top_p:
            break
        nucleus.add(token)
        reached += chance
    return nucleus


@pytest.mark.parametrize(
    "how",
    [
        Sampling(1.0),
        Sampling(0.7, top_k=4),
        Sampling(1.0, top_k=1),
        Sampling(1.0, top_k=100),
        Sampling(1.3, top_p=0.8),
        Sampling(1.0, top_p=1e-6),
        Sampling(0.5, top_k=5, top_p=0.6),
    ],
    ids=str,
)
def test_what_is_kept(how: Sampling) -> None:
    found = np.asarray(likely(jnp.asarray(LOGITS), how))
    for row, left in zip(LOGITS, found, strict=True):
        assert set(np.flatnonzero(np.isfinite(left))) == kept(row, how)
    np.testing.assert_allclose(found[np.isfinite(found)], (LOGITS / how.temperature)[np.isfinite(found)], rtol=1e-6)


def test_equally_likely_tokens_stay_together() -> None:
    tied = jnp.asarray([[0.0, 1.0, 1.0, 0.5]])
    assert np.isfinite(likely(tied, Sampling(1.0, top_k=1)))[0].tolist() == [False, True, True, False]
    assert np.isfinite(likely(tied, Sampling(1.0, top_p=0.2)))[0].tolist() == [False, True, True, False]


def keys(rows: int, seed: int = 0) -> jax.Array:
    return row_keys(jax.random.key(seed), jnp.zeros(rows, jnp.int32))


def test_greedy_takes_the_first_of_the_largest() -> None:
    logits = jnp.asarray([[0.0, 3.0, 3.0], [5.0, 1.0, 2.0]])
    tokens = sample(logits, keys(2), GREEDY)
    assert (tokens.tolist(), tokens.dtype) == ([1, 0], jnp.int32)


def test_frequencies_follow_the_probabilities() -> None:
    logits = jnp.log(jnp.asarray([0.1, 0.6, 0.3]))
    draws = sample(jnp.tile(logits, (20_000, 1)), keys(20_000, seed=3), Sampling(1.0))
    frequency = np.bincount(draws, minlength=3) / 20_000
    np.testing.assert_allclose(frequency, [0.1, 0.6, 0.3], atol=0.02)  # 5 standard deviations


def test_the_key_decides() -> None:
    logits, how = jnp.zeros((64, 100)), Sampling(1.0)
    first, again, other = (sample(logits, keys(64, seed), how).tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_row_draws_the_same_beside_any_others_and_otherwise_at_another_position() -> None:
    logits, key, how = jnp.zeros((8, 1000)), jax.random.key(1), Sampling(1.0)
    among_eight = sample(logits, row_keys(key, jnp.arange(8)), how).tolist()
    among_three = sample(logits[:3], row_keys(key, jnp.arange(3)), how).tolist()
    later = sample(logits, row_keys(key, jnp.arange(8) + 1), how).tolist()
    assert among_eight[:3] == among_three
    assert among_eight != later
    assert len(set(among_eight)) > 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"temperature": -1.0}, "temperature=-1.0: it is 0 (greedy), or from 0.000001 to 1,000,000"),
        ({"temperature": 1e-40}, "temperature=1e-40: it is 0"),
        ({"temperature": float("inf")}, "temperature=inf: it is 0"),
        ({"temperature": float("nan")}, "temperature=nan: it is 0"),
        ({"top_k": 0}, "top_k=0: at least one token"),
        ({"top_p": 0.0}, "top_p=0.0: it is a probability"),
        ({"top_p": 1.5}, "top_p=1.5: it is a probability"),
    ],
)
def test_out_of_range(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Sampling(**how)


@pytest.mark.parametrize("temperature", [1e-6, 1e6])
def test_extreme_temperatures_are_computed(temperature: float) -> None:
    found = likely(jnp.asarray(LOGITS * 10), Sampling(temperature))
    assert np.isfinite(found).all()
    assert (found.argmax(axis=-1) == LOGITS.argmax(axis=-1)).all()
