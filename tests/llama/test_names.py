"""What the model really traces to is what its inventory says, for every preset."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from sharddsl.llama.cache import abstract_cache, cache_names
from sharddsl.llama.forward import Prompts, Step, abstract_params, decode, forward, prefill
from sharddsl.models import PRESETS, LlamaConfig, Run, inventory
from sharddsl.partition.paths import named_leaves
from sharddsl.spec.model import Namespace

Shapes = dict[str, tuple[tuple[int | None, ...], str]]
BATCH, SEQ = 2, 16


def of_inventory(config: LlamaConfig, run: Run, namespace: Namespace) -> Shapes:
    return {tensor.name: (tensor.shape, tensor.dtype) for tensor in inventory(config, run).of(namespace)}


def of_tree(tree: Any, prefix: str = "") -> Shapes:
    return {f"{prefix}{path}": (leaf.shape, str(leaf.dtype)) for path, leaf in named_leaves(tree)[0]}


def small_run(mode: str, scan: bool, precision: str = "bf16_compute") -> Run:
    given = {"mode": mode, "batch": BATCH, "seq": SEQ, "scan": scan, "precision": precision}
    return Run.model_validate(given)


class Recorder:
    """Stands where `constrain` does, and notes what it is given."""

    def __init__(self) -> None:
        self.seen: Shapes = {}

    def __call__(self, x: jax.Array, name: str) -> jax.Array:
        shape = (x.shape, str(x.dtype))
        assert self.seen.setdefault(name, shape) == shape, name
        return x

    def of(self, namespace: str) -> Shapes:
        return {name: shape for name, shape in self.seen.items() if name.startswith(f"{namespace}.")}


def ids(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def record(config: LlamaConfig, run: Run) -> Recorder:
    """Trace the run's mode, without computing anything."""
    noted, params = Recorder(), abstract_params(config, run)
    if run.mode == "train":
        jax.eval_shape(lambda p, t: forward(config, run, p, t, constrain=noted), params, ids(BATCH, SEQ))
    elif run.mode == "prefill":
        prompts = Prompts._make((ids(BATCH, SEQ), ids(BATCH)))
        jax.eval_shape(lambda p, t: prefill(config, run, p, t, SEQ, constrain=noted), params, prompts)
    else:
        step = Step._make((ids(BATCH), ids(BATCH), ids()))
        cache = abstract_cache(config, run, BATCH, SEQ)
        jax.eval_shape(lambda p, c, s: decode(config, run, p, c, s, constrain=noted), params, cache, step)
    return noted


@pytest.mark.parametrize("name", list(PRESETS))
def test_params(name: str) -> None:
    run = small_run("train", scan=True)
    assert of_tree(abstract_params(PRESETS[name], run)) == of_inventory(PRESETS[name], run, "param")


@pytest.mark.parametrize("name", list(PRESETS))
def test_unrolled_params(name: str) -> None:
    config, run = PRESETS[name].model_copy(update={"layers": 2}), small_run("train", scan=False)
    assert of_tree(abstract_params(config, run)) == of_inventory(config, run, "param")


@pytest.mark.parametrize("name", list(PRESETS))
def test_activations(name: str) -> None:
    run = small_run("train", scan=True)
    assert record(PRESETS[name], run).seen == of_inventory(PRESETS[name], run, "act")


@pytest.mark.parametrize("precision", ["f32", "bf16_compute", "bf16_master"])
@pytest.mark.parametrize("scan", [True, False], ids=["scanned", "unrolled"])
def test_activations_under_each_run(scan: bool, precision: str) -> None:
    config, run = PRESETS["llama_tiny"], small_run("train", scan, precision)
    assert record(config, run).seen == of_inventory(config, run, "act")
    assert of_tree(abstract_params(config, run)) == of_inventory(config, run, "param")


@pytest.mark.parametrize("scan", [True, False], ids=["scanned", "unrolled"])
def test_prefill_and_decode(scan: bool) -> None:
    config = PRESETS["llama_tiny"]
    first, after = small_run("prefill", scan), small_run("decode", scan)
    acts = of_inventory(config, first, "act")
    acts["act.final"], acts["act.logits"] = ((BATCH, 1, 128), "bfloat16"), ((BATCH, 1, 512), "float32")
    assert record(config, first).of("act") == acts  # the head sees the last token only
    assert record(config, first).of("cache") == of_inventory(config, first, "cache")
    assert record(config, after).of("act") == of_inventory(config, after, "act")


@pytest.mark.parametrize("scan", [True, False], ids=["scanned", "unrolled"])
def test_cache(scan: bool) -> None:
    config, run = PRESETS["llama_tiny"], small_run("decode", scan)
    expected = of_inventory(config, run, "cache")
    assert of_tree(abstract_cache(config, run, BATCH, SEQ), "cache.") == expected
    assert jax.tree.leaves(cache_names(config, run)) == list(of_tree(abstract_cache(config, run, 1, 1), "cache."))
