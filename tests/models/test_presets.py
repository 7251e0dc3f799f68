"""The presets are the published models."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sharddsl.findings import UsageError
from sharddsl.models import PRESETS, LlamaConfig, RopeScaling, parameter_count, preset

PUBLISHED = {
    "llama_7b": 6_738_415_616,
    "llama_13b": 13_015_864_320,
    "llama_33b": 32_528_943_616,
    "llama_65b": 65_285_660_672,
    "llama2_7b": 6_738_415_616,
    "llama2_13b": 13_015_864_320,
    "llama2_70b": 68_976_648_192,
    "llama3_8b": 8_030_261_248,
    "llama3_70b": 70_553_706_496,
    "llama3_1_8b": 8_030_261_248,
    "llama3_1_70b": 70_553_706_496,
    "llama3_1_405b": 405_853_388_800,
    "llama3_2_1b": 1_235_814_400,
    "llama3_2_3b": 3_212_749_824,
    "smollm2_135m": 134_515_008,
    "smollm2_360m": 361_821_120,
    "smollm2_1_7b": 1_711_376_384,
    "llama_tiny": 1_115_264,
}


def test_every_preset_has_a_published_count() -> None:
    assert set(PRESETS) == set(PUBLISHED)


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_parameter_count(name: str, count: int) -> None:
    assert parameter_count(preset(name)) == count


@pytest.mark.parametrize(
    ("name", "facts"),
    [  # rotary base, rotary scaling factor, epsilon of the norms, longest sequence, tied head
        ("llama_7b", (1e4, None, 1e-6, 2048, False)),
        ("llama_65b", (1e4, None, 1e-5, 2048, False)),
        ("llama2_70b", (1e4, None, 1e-5, 4096, False)),
        ("llama3_8b", (5e5, None, 1e-5, 8192, False)),
        ("llama3_1_8b", (5e5, 8.0, 1e-5, 131_072, False)),
        ("llama3_2_1b", (5e5, 32.0, 1e-5, 131_072, True)),
        ("smollm2_135m", (1e5, None, 1e-5, 8192, True)),
        ("smollm2_360m", (1e5, None, 1e-5, 8192, True)),
        ("smollm2_1_7b", (1.3e5, None, 1e-5, 8192, True)),
    ],
)
def test_what_the_count_does_not_show(name: str, facts: tuple[float, float | None, float, int, bool]) -> None:
    config = preset(name)
    scaling = config.rope_scaling
    stretch = None if scaling is None else scaling.factor
    assert (config.rope_theta, stretch, config.norm_eps, config.max_seq, config.tied) == facts
    if scaling is not None:
        assert scaling == RopeScaling(factor=scaling.factor, low_freq_factor=1, high_freq_factor=4, original_seq=8192)


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown model 'llama3_8': did you mean .*llama3_8b"):
        preset("llama3_8")
    with pytest.raises(UsageError, match=r"the models are: llama_7b, .*llama_tiny"):
        preset("?")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm_eps": float("nan")}, "finite number"),
        ({"rope_theta": 0.0}, "greater than 0"),
        ({"vocab": 2**31}, "less than or equal to 2147483647"),
        ({"rope_scaling": {"factor": 8.0, "low_freq_factor": 4.0}}, "low_freq_factor=4.0 must be less than"),
        ({"rope_scaling": {"factor": -1.0}}, "greater than 0"),
    ],
    ids=str,
)
def test_numbers_that_no_model_can_have(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LlamaConfig.model_validate(preset("llama_tiny").model_dump() | change)
