"""Small programs and batches to train with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from sharddsl import layout, spec
from sharddsl.llama.forward import abstract_params
from sharddsl.models import PRESETS, LlamaConfig, inventory
from sharddsl.partition import Partition
from sharddsl.train.config import Training
from sharddsl.train.data.batch import IGNORE, Batch
from sharddsl.train.program import Metrics, Program, State

TINY = PRESETS["llama_tiny"]


def program(
    name: str, mesh: Mapping[str, int], config: LlamaConfig = TINY, rules: tuple[str, ...] = (), **run: Any
) -> Program:
    """A shipped layout's train step, float32 and 8 rows of 16 tokens unless said otherwise."""
    training = Training.model_validate({"batch": 8, "seq": 16, "precision": "f32", "steps": 5, **run})
    loaded = spec.load(name, mesh=dict(mesh), rules=rules).checked()
    assert loaded.mesh is not None
    sizes, _ = layout.size_mesh(loaded.mesh, devices=None)
    assert sizes is not None
    placed = layout.resolve(loaded, inventory(config, training), sizes)
    return Program(config, training, Partition.of(placed, jax.devices()[: sizes.size]))


def some_batch(rows: int = 8, seq: int = 16, seed: int = 0, vocab: int = TINY.vocab) -> Batch:
    """Random tokens: two documents to a row, and some filler at the end."""
    tokens = np.random.default_rng(seed).integers(0, vocab, (rows, seq + 1), np.int32)
    segments = np.where(np.arange(seq) < seq // 2, 1, 2) * np.ones((rows, 1), np.int64)
    segments[:, seq - 2 :] = 0
    ends = np.append(segments[:, 1:] != segments[:, :-1], np.ones((rows, 1), bool), axis=1)
    targets = np.where(ends | (segments == 0), IGNORE, tokens[:, 1:])
    return Batch(tokens[:, :-1], targets.astype(np.int32), segments.astype(np.int32))


def begun(of: Program) -> State:
    """The state before the first step, of small random weights: numpy's, which are not compiled as `of.init()` is."""
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda x: rng.normal(0.0, 0.02, x.shape).astype(x.dtype), abstract_params(of.config, of.run))
    return of.state_of(jax.device_put(params, of.partition.shardings(params)))


def train(of: Program, batches: int, state: State | None = None) -> tuple[State, list[Metrics]]:
    """The state and the metrics after some steps, each on a batch of its own."""
    state, step = begun(of) if state is None else state, of.compile()
    found = []
    for seed in range(batches):
        state, metrics = step(state, of.place(some_batch(of.run.batch or 0, of.run.seq or 0, seed, of.config.vocab)))
        found.append(metrics)
    return state, found
