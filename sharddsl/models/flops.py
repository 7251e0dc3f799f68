"""The arithmetic of a train step, counted from the model: a compiled program counts a loop's body once."""

from __future__ import annotations

from sharddsl.models.config import LlamaConfig
from sharddsl.models.llama import parameter_count


def train_flops_per_token(config: LlamaConfig, seq: int) -> int:
    """Floating-point operations per token of a step, forward and backward, nothing rematerialized (PaLM, arXiv
    2204.02311, appendix B): 6 per weight that is multiplied with, and 12 · layers · heads · head_dim · seq of
    attention, of which a causal mask saves nothing by that count. The table's lookup multiplies with nothing; a tied
    head does.
    """
    table = 0 if config.tied else config.vocab * config.embed
    attention = 12 * config.layers * config.heads * config.head_dim * seq
    return 6 * (parameter_count(config) - table) + attention
