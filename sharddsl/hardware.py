"""What accelerators can do at most, from their makers' data sheets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PEAK_BF16_FLOPS: Mapping[str, float] = MappingProxyType(
    {
        # https://cloud.google.com/tpu/docs: v4 275, v5e 197, v5p 459, v6e 918 TFLOP/s per chip
        "TPU v4": 275e12,
        "TPU v5 lite": 197e12,
        "TPU v5e": 197e12,
        "TPU v5": 459e12,
        "TPU v5p": 459e12,
        "TPU v6 lite": 918e12,
        "TPU v6e": 918e12,
        # NVIDIA data sheets, dense (half of what they print with sparsity): A100 312, H100 and H200 SXM 989.4,
        # B200 2250
        "NVIDIA A100-SXM4-40GB": 312e12,
        "NVIDIA A100-SXM4-80GB": 312e12,
        "NVIDIA A100 80GB PCIe": 312e12,
        "NVIDIA H100 80GB HBM3": 989.4e12,
        "NVIDIA H200": 989.4e12,
        "NVIDIA B200": 2250e12,
    }
)
"""Dense bfloat16 operations per second of one device, by the `device_kind` that JAX gives it."""


def peak_flops(device_kind: str) -> float | None:
    """Of one device; None where it is not known, a CPU's among them."""
    return PEAK_BF16_FLOPS.get(device_kind)
