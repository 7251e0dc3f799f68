"""The devices: an accelerator's where there is one, virtual CPU devices where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import jax

from sharddsl.findings import UsageError

_ACCELERATOR_FILES = ("nvidia[0-9]*", "accel[0-9]*", "vfio/[0-9]*", "kfd", "dxg")
"""What a driver puts into /dev: NVIDIA, TPU (two generations of driver), AMD, and GPUs under Windows' Linux."""


def ensure_devices(count: int) -> list[jax.Device]:
    """The machine's accelerators, all of them, or `count` virtual CPU devices where it has none.

    Call it before anything else touches a device: JAX fixes the number of its CPU devices when its backend starts.
    Raises `UsageError` where the backend already started with fewer CPU devices, or cannot start.
    """
    if _may_have_accelerators():
        # Set before asking: it does no harm where a GPU or TPU turns out to be the default backend.
        started = not _request_cpu_devices(count)
        if (devices := _start())[0].platform != "cpu":
            return devices
        return _cpu_devices(count, started)
    return virtual_devices(count)


def virtual_devices(count: int) -> list[jax.Device]:
    """`count` CPU devices on the CPU platform, whatever else the machine has.

    Raises `UsageError` where the backend already started with fewer, or on another platform.
    """
    started = not _request_cpu_devices(count)
    if not started:
        jax.config.update("jax_platforms", "cpu")
    return _cpu_devices(count, started)


def _may_have_accelerators() -> bool:
    """Whether JAX could find an accelerator, without starting its backend: one that starts with too few CPU devices
    cannot be given more. Who sets JAX_PLATFORMS has decided. Otherwise a driver's device file says so:
    asking the plugins would start them."""
    platforms: str | None = jax.config.jax_platforms  # type: ignore[attr-defined]
    if platforms:
        return platforms.split(",")[0] != "cpu"
    dev = Path(os.sep, "dev")
    return any(True for pattern in _ACCELERATOR_FILES for _ in dev.glob(pattern))


def _request_cpu_devices(count: int) -> bool:
    """Whether the request came in time. JAX refuses it once its backend has started, and tells so in no other way."""
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        return False
    return True


def _start() -> list[jax.Device]:
    """All devices; JAX's backend runs from here on."""
    try:
        return jax.devices()
    except RuntimeError as error:  # a platform that this machine lacks, or that there is not
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"JAX cannot start: {reason}\n  remedy: unset JAX_PLATFORMS, or set JAX_PLATFORMS=cpu"
        ) from error


def _cpu_devices(count: int, started: bool) -> list[jax.Device]:
    devices = _start()
    if devices[0].platform != "cpu" or len(devices) < count:
        reason = (
            "JAX's backend started before they could be asked for"
            if started
            else "JAX does not make that many (is it part of a distributed run?)"
        )
        raise UsageError(
            f"{count} CPU devices are needed, and there are {len(devices)} {devices[0].platform} devices: {reason}. "
            f"Call sharddsl before the first JAX operation, or set JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES={count}."
        )
    return devices[:count]
