"""Pretrained weights: from GGUF and safetensors files into sharded params."""

from sharddsl.llama.weights.load import load_params
from sharddsl.llama.weights.open import open_weights
from sharddsl.llama.weights.source import WeightSource

__all__ = ["WeightSource", "load_params", "open_weights"]
