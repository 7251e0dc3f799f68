"""What a command loads: the weights, and the tokenizer that goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharddsl.cli.progress import Progress
from sharddsl.config.weights import path_of
from sharddsl.models import PRESETS, LlamaConfig

if TYPE_CHECKING:
    from sharddsl.llama.tokenizer import Tokenizer
    from sharddsl.llama.weights import WeightSource

DEMO_MODEL = "smollm2_135m"
"""The preset whose weights the project knows where to fetch."""


def has_demo_weights(model: LlamaConfig) -> bool:
    """Whether `weights=auto` knows weights for this model."""
    return model == PRESETS[DEMO_MODEL]


def open_source(weights: str, shown: Progress) -> WeightSource | None:
    """Where the weights come from; None for random ones."""
    from sharddsl.llama.weights import open_weights

    if weights == "random":
        shown.say("weights: random")
        return None
    path = path_of(weights)
    if path is None:
        from sharddsl.llama.pretrained import demo_weights

        path = demo_weights(shown.amount)
    shown.say(f"weights: {path}")
    return open_weights(path)


def tokenizer_of(model: LlamaConfig, source: WeightSource | None) -> Tokenizer:
    """The weights' own; of random ones the bytes of the text."""
    if source is None:
        from sharddsl.llama.tokenizer import ByteTokenizer

        return ByteTokenizer(model.vocab)
    source.check(model)
    return source.tokenizer()
