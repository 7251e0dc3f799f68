"""Weights from disk, run through a plain forward pass, and tokenizers, against Hugging Face transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from sharddsl.llama.pretrained import demo_weights
from sharddsl.llama.weights import WeightSource, load_params, open_weights
from tests.llama import reference
from tests.llama.golden.texts import LONG, TRICKY

GOLDEN = Path(__file__).parents[1] / "golden"
TINY = GOLDEN / "tiny"

# Both sides hold the same float32 weights; the oracle adds in float64, transformers in float32. A wrong permutation,
# epsilon or rotary base moves logits by 0.1 and more.
TOLERANCE = 1e-3


def one_device(tree: Any) -> Any:
    """Everything on the first device."""
    return jax.tree.map(lambda _: jax.sharding.SingleDeviceSharding(jax.devices()[0]), tree)


def test_sharded_safetensors_give_the_golden_logits() -> None:
    source = open_weights(TINY)
    with np.load(GOLDEN / "tiny.npz") as golden:
        ids, expected = golden["ids"], golden["logits"]
    assert source.tokenizer().prompt(LONG)[: len(ids)] == ids.tolist()
    params = load_params(source, source.config(), one_device, scan=False)
    np.testing.assert_allclose(reference.logits(source.config(), params, ids.tolist()), expected, atol=TOLERANCE)


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
