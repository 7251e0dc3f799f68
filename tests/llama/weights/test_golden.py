"""Weights from disk, run through a plain forward pass, against the logits of Hugging Face transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from sharddsl.llama.pretrained import demo_weights
from sharddsl.llama.weights import WeightSource, load_params, open_weights
from tests.llama import plain
from tests.llama.golden.texts import CHATS, LONG, TRICKY

GOLDEN = Path(__file__).parents[1] / "golden"
TINY = GOLDEN / "tiny"

# Both sides hold the same float32 weights; the oracle adds in float64, transformers in float32. The sums have up to
# 1,536 terms in each of 30 layers, so errors of a few times 1e-5 of the logits' size (about 20) are expected; a wrong
# permutation, epsilon or rotary base moves logits by 0.1 and more.
TOLERANCE = 1e-3


def one_device(tree: Any) -> Any:
    """Everything on the first device."""
    return jax.tree.map(lambda _: jax.sharding.SingleDeviceSharding(jax.devices()[0]), tree)


def loaded(source: WeightSource) -> plain.Params:
    """The source's params on one device, by path and layer."""
    tree = load_params(source, source.config(), one_device)

    def param(path: str, layer: int) -> plain.Array:
        array: Any = tree
        for segment in path.split("."):
            array = array[segment]
        return np.asarray(array)[layer] if path.startswith("layers.") else np.asarray(array)

    return param


def test_sharded_safetensors_give_the_golden_logits() -> None:
    source = open_weights(TINY)
    with np.load(GOLDEN / "tiny.npz") as golden:
        ids, expected = golden["ids"], golden["logits"]
    assert source.tokenizer().prompt(LONG)[: len(ids)] == ids.tolist()
    np.testing.assert_allclose(plain.logits(loaded(source), source.config(), ids), expected, atol=TOLERANCE)


def test_the_tiny_models_config() -> None:
    config = open_weights(TINY).config()
    sizes = (config.vocab, config.embed, config.layers, config.heads, config.kv_heads, config.head_dim, config.ffn)
    assert sizes == (384, 64, 3, 4, 2, 32, 96)
    assert not config.tied
    scaling = config.rope_scaling
    assert scaling is not None
    numbers = (scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_seq)
    assert numbers == (8.0, 1.0, 4.0, 32)


def test_a_tokenizer_json_gives_the_golden_ids() -> None:
    tokenizer = open_weights(TINY).tokenizer()
    with np.load(GOLDEN / "tiny.npz") as golden:
        expected = json.loads(str(golden["tricky"]))
    assert [tokenizer.encode(text, special=True) for text in TRICKY] == expected


@pytest.fixture(scope="module")
def smollm2() -> WeightSource:
    return open_weights(demo_weights())


@pytest.mark.slow
@pytest.mark.parametrize("text", ["long", *(f"chat{i}" for i in range(len(CHATS)))])
def test_the_gguf_gives_the_golden_logits(smollm2: WeightSource, text: str) -> None:
    with np.load(GOLDEN / "smollm2_135m.npz") as file:
        golden = {key.removeprefix(f"{text}."): file[key] for key in file.files if key.startswith(f"{text}.")}
    logits = plain.logits(loaded(smollm2), smollm2.config(), golden["ids"])
    peak = logits.max(axis=-1)
    total = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=-1))
    np.testing.assert_allclose(total, golden["logsumexp"], atol=TOLERANCE)
    some = logits[golden["positions"]]
    np.testing.assert_allclose(some[:, golden["columns"]], golden["at_columns"], atol=TOLERANCE)
    top = np.take_along_axis(some, golden["top_ids"], axis=-1)
    np.testing.assert_allclose(top, golden["top_logits"], atol=TOLERANCE)
    clear = np.diff(np.partition(logits, -2, axis=-1)[:, -2:], axis=-1)[:, 0] > 2 * TOLERANCE
    assert clear.mean() > 0.95
    assert (logits.argmax(axis=-1) == golden["argmax"])[clear].all()


@pytest.mark.slow
def test_the_ggufs_tokenizer_gives_the_golden_ids(smollm2: WeightSource) -> None:
    tokenizer = smollm2.tokenizer()
    golden = json.loads((GOLDEN / "smollm2_tokens.json").read_text(encoding="utf-8"))
    for row in golden["texts"]:
        assert tokenizer.encode(row["text"]) == row["plain"], row["text"]
        assert tokenizer.encode(row["text"], special=True) == row["special"], row["text"]
        assert tokenizer.decode(row["plain"]) == row["text"]
    for row in golden["chats"]:
        assert tokenizer.chat([{"role": "user", "content": row["user"]}]) == row["ids"]
    assert tokenizer.stop_ids == {0, 2}
