"""What accelerators can do at most: `hardware.json`, where every number has its source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from sharddsl.spec.model import Model

_FILE = Path(__file__).with_name("hardware.json")


class Accelerator(Model):
    """What JAX counts as one device: a chip, or half of one. `kinds` are the names that JAX gives it as `device_kind`;
    `bf16_tflops` is its dense peak in 10^12 bfloat16 operations per second; `source` is the page of its maker, or
    of somebody who quotes it."""

    kinds: Annotated[tuple[str, ...], Field(min_length=1)]
    bf16_tflops: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    source: Annotated[str, Field(min_length=1)]


def accelerators() -> tuple[Accelerator, ...]:
    """Those of the data file, validated."""
    return TypeAdapter(tuple[Accelerator, ...]).validate_json(_FILE.read_bytes())


def peak_flops(device_kind: str) -> float | None:
    """Dense bfloat16 operations per second of one device; None where the peak is not known, a CPU's among them."""
    return _peaks().get(device_kind)


@cache
def _peaks() -> Mapping[str, float]:
    return {kind: chip.bf16_tflops * 1e12 for chip in accelerators() for kind in chip.kinds}
