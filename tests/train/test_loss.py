"""The loss of each token against numpy in float64."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sharddsl.train.data.batch import IGNORE
from sharddsl.train.loss import counted, token_losses

LOGITS = np.random.default_rng(0).normal(0, 5, (2, 3, 7))
TARGETS = np.asarray([[0, 6, IGNORE], [3, IGNORE, 3]], np.int32)


def test_cross_entropy_of_the_targets_that_count() -> None:
    chances = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    expected = np.zeros((2, 3))
    for row, column, target in [(0, 0, 0), (0, 1, 6), (1, 0, 3), (1, 2, 3)]:
        expected[row, column] = -np.log(chances[row, column, target])
    found = token_losses(jnp.asarray(LOGITS, jnp.float32), jnp.asarray(TARGETS))
    assert np.asarray(found) == pytest.approx(expected, rel=1e-5)
    assert found.dtype == jnp.float32
    assert int(counted(jnp.asarray(TARGETS))) == 4


def test_what_does_not_count_gives_no_gradient() -> None:
    gradient = jax.grad(lambda x: token_losses(x, jnp.asarray(TARGETS)).sum())(jnp.asarray(LOGITS))
    assert np.array_equal(np.abs(gradient).sum(-1) > 0, TARGETS != IGNORE)


def test_large_logits_do_not_overflow() -> None:
    logits = jnp.asarray([[[1e4, -1e4, 0.0]]])
    assert token_losses(logits, jnp.asarray([[0]])).tolist() == [[0.0]]
    assert token_losses(logits, jnp.asarray([[1]])).tolist() == [[2e4]]
