"""LLaMA configs, presets and their inventory, in plain Python."""

from sharddsl.models.config import LlamaConfig, Precision, RopeScaling, Run
from sharddsl.models.llama import inventory, parameter_count
from sharddsl.models.presets import PRESETS, preset

__all__ = [
    "PRESETS",
    "LlamaConfig",
    "Precision",
    "RopeScaling",
    "Run",
    "inventory",
    "parameter_count",
    "preset",
]
