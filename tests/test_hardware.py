"""Peaks of accelerators, by the names that JAX gives them."""

from __future__ import annotations

import pytest

from sharddsl.hardware import accelerators, peak_flops


@pytest.mark.parametrize(
    ("kind", "peak"),
    [
        ("TPU v4", 275e12),
        ("TPU v5 lite", 197e12),
        ("TPU v5", 459e12),
        ("TPU v6 lite", 918e12),
        ("TPU7x", 1153.5e12),  # a chip has 2307 and is two devices
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA A100-PCIE-40GB", 312e12),
        ("NVIDIA H100 80GB HBM3", 989.5e12),
        ("NVIDIA H100 PCIe", 756.5e12),
        ("NVIDIA H100 NVL", 835e12),
        ("NVIDIA H200", 989.5e12),
        ("NVIDIA B200", 2250e12),
        ("NVIDIA GB200", 2500e12),
        ("NVIDIA L40S", 362.05e12),
        ("AMD Instinct MI300X", 1307.4e12),
        ("cpu", None),
    ],
)
def test_peak(kind: str, peak: float | None) -> None:
    assert peak_flops(kind) == peak


def test_every_kind_stands_once_and_every_number_has_a_source() -> None:
    kinds = [kind for chip in accelerators() for kind in chip.kinds]
    assert len(kinds) == len(set(kinds))
    assert all(chip.source.startswith("https://") for chip in accelerators())
