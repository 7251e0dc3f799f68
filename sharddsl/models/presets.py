"""The published LLaMA-architecture models, by name.

Sources: the LLaMA paper (Touvron et al. 2023, table 2) and its released `params.json` for `llama_*`; the Llama 2 paper
(Touvron et al. 2023) for `llama2_*`; "The Llama 3 Herd of Models" (2024, table 3) and the model cards of Llama 3, 3.1
and 3.2 for `llama3*`; the released `config.json` of SmolLM2 (Ben Allal et al. 2025) for `smollm2_*`. `llama_tiny` is
this project's own: small enough for a test, with sizes that divide on every mesh of eight devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sharddsl.findings import UsageError
from sharddsl.models.config import LlamaConfig, RopeScaling
from sharddsl.spec.report import nearest


def _llama(name: str, *, embed: int, ffn: int, layers: int, heads: int, norm_eps: float) -> LlamaConfig:
    return LlamaConfig(
        name=name, vocab=32_000, embed=embed, layers=layers, heads=heads, kv_heads=heads, head_dim=128, ffn=ffn,
        norm_eps=norm_eps, max_seq=2048,
    )  # fmt: skip


def _llama2(name: str, *, embed: int, ffn: int, layers: int, heads: int, kv_heads: int) -> LlamaConfig:
    return LlamaConfig(
        name=name, vocab=32_000, embed=embed, layers=layers, heads=heads, kv_heads=kv_heads, head_dim=128, ffn=ffn,
        norm_eps=1e-5, max_seq=4096,
    )  # fmt: skip


def _llama3(
    name: str,
    *,
    embed: int,
    ffn: int,
    layers: int,
    heads: int,
    head_dim: int = 128,
    tied: bool = False,
    stretch: float | None = None,
) -> LlamaConfig:
    """`stretch` is the rotary scaling factor of the long-context releases (3.1: 8, 3.2: 32)."""
    return LlamaConfig(
        name=name, vocab=128_256, embed=embed, layers=layers, heads=heads, kv_heads=8, head_dim=head_dim, ffn=ffn,
        tied=tied, norm_eps=1e-5, rope_theta=500_000.0,
        rope_scaling=None if stretch is None else RopeScaling(factor=stretch),
        max_seq=8192 if stretch is None else 131_072,
    )  # fmt: skip


def _smollm2(
    name: str, *, embed: int, ffn: int, layers: int, heads: int, kv_heads: int, rope_theta: float
) -> LlamaConfig:
    return LlamaConfig(
        name=name, vocab=49_152, embed=embed, layers=layers, heads=heads, kv_heads=kv_heads, head_dim=64, ffn=ffn,
        tied=True, norm_eps=1e-5, rope_theta=rope_theta, max_seq=8192,
    )  # fmt: skip


_ALL = (
    _llama("llama_7b", embed=4096, ffn=11_008, layers=32, heads=32, norm_eps=1e-6),
    _llama("llama_13b", embed=5120, ffn=13_824, layers=40, heads=40, norm_eps=1e-6),
    _llama("llama_33b", embed=6656, ffn=17_920, layers=60, heads=52, norm_eps=1e-6),
    _llama("llama_65b", embed=8192, ffn=22_016, layers=80, heads=64, norm_eps=1e-5),
    _llama2("llama2_7b", embed=4096, ffn=11_008, layers=32, heads=32, kv_heads=32),
    _llama2("llama2_13b", embed=5120, ffn=13_824, layers=40, heads=40, kv_heads=40),
    _llama2("llama2_70b", embed=8192, ffn=28_672, layers=80, heads=64, kv_heads=8),
    _llama3("llama3_8b", embed=4096, ffn=14_336, layers=32, heads=32),
    _llama3("llama3_70b", embed=8192, ffn=28_672, layers=80, heads=64),
    _llama3("llama3_1_8b", embed=4096, ffn=14_336, layers=32, heads=32, stretch=8.0),
    _llama3("llama3_1_70b", embed=8192, ffn=28_672, layers=80, heads=64, stretch=8.0),
    _llama3("llama3_1_405b", embed=16_384, ffn=53_248, layers=126, heads=128, stretch=8.0),
    _llama3("llama3_2_1b", embed=2048, ffn=8192, layers=16, heads=32, head_dim=64, tied=True, stretch=32.0),
    _llama3("llama3_2_3b", embed=3072, ffn=8192, layers=28, heads=24, tied=True, stretch=32.0),
    _smollm2("smollm2_135m", embed=576, ffn=1536, layers=30, heads=9, kv_heads=3, rope_theta=100_000.0),
    _smollm2("smollm2_360m", embed=960, ffn=2560, layers=32, heads=15, kv_heads=5, rope_theta=100_000.0),
    _smollm2("smollm2_1_7b", embed=2048, ffn=8192, layers=24, heads=32, kv_heads=32, rope_theta=130_000.0),
    LlamaConfig(
        name="llama_tiny", vocab=512, embed=128, layers=4, heads=16, kv_heads=8, head_dim=8, ffn=512, max_seq=2048,
    ),
)  # fmt: skip

PRESETS: Mapping[str, LlamaConfig] = MappingProxyType({config.name: config for config in _ALL})
"""Every preset, by name, smallest generation first."""


def preset(name: str) -> LlamaConfig:
    """The preset of this name. Raises `UsageError` with the nearest names."""
    if name in PRESETS:
        return PRESETS[name]
    near = nearest(name, PRESETS)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"the models are: {', '.join(PRESETS)}"
    raise UsageError(f"unknown model {name!r}: {remedy}")
