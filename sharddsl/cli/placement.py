"""Where a generating model runs: the layouts of its two programs, and the devices that they are for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sharddsl.cli.layouts import lay_out, load_spec, smallest, usable
from sharddsl.config.schema import Config
from sharddsl.findings import UsageError, render
from sharddsl.layout.model import Layout
from sharddsl.layout.totals import totals
from sharddsl.layout.words import bytes_text
from sharddsl.spec.model import Mode

if TYPE_CHECKING:
    import jax

    from sharddsl.partition import Partition

_MOST_VIRTUAL = 1024
"""CPU devices. JAX makes them, but each has threads of its own, and nobody means to generate on more."""


class Layouts:
    """The layouts of the two programs, prefill and decode, and the devices that they are for."""

    def __init__(self, config: Config, rules: Sequence[str]) -> None:
        self._config = config
        self._loaded, mesh = load_spec(config, rules)
        self.least = smallest(mesh)
        self.inferred = [axis.name for axis in mesh.axes if axis.size == -1]

    def check(self) -> None:
        """Raises `ShardError` for what does not fit on the fewest devices."""
        if self.least > _MOST_VIRTUAL:
            return  # only accelerators can be as many, and they are counted once jax has started
        for mode in ("prefill", "decode"):
            self._layout(mode, self.least, None)

    def devices(self) -> list[jax.Device]:
        """The machine's accelerators, or as many virtual CPU devices as the mesh takes where it has none."""
        from sharddsl.partition import ensure_devices

        if self.least <= _MOST_VIRTUAL:
            return ensure_devices(self.least)
        devices = ensure_devices(1)
        if devices[0].platform == "cpu":
            raise UsageError(
                f"the mesh takes {self.least:,} devices; without an accelerator at most {_MOST_VIRTUAL:,} virtual CPU "
                "devices are made: give smaller axes, as in spec.mesh.fsdp=2"
            )
        return devices

    def partitions(self, devices: list[jax.Device], rows: int) -> dict[Mode, Partition]:
        """Prefill's and decode's partition on these devices, for as many prompts."""
        from sharddsl.llama.generate import fill_batch

        partitions = self._partitions(devices, None)
        # A `when` may ask about the batch, which is known once the mesh says what it must be a multiple of.
        return self._partitions(devices, fill_batch(rows, _batch_multiple(partitions)))

    def _partitions(self, devices: list[jax.Device], batch: int | None) -> dict[Mode, Partition]:
        from sharddsl.partition import Partition

        modes: tuple[Mode, ...] = ("prefill", "decode")
        return {mode: Partition.of(self._layout(mode, len(devices), batch), devices) for mode in modes}

    def _layout(self, mode: Mode, devices: int, batch: int | None) -> Layout:
        run = self._config.run.model_copy(update={"mode": mode, "batch": batch})
        return usable(lay_out(self._loaded, self._config.model, run, devices))


def refuse_too_large(partition: Partition) -> None:
    """Raise `UsageError` where virtual CPU devices, which share the machine's memory, cannot hold the weights."""
    per_device = totals(partition.layout)["param"].local_bytes
    if partition.platform != "cpu" or per_device is None:
        return
    needed = per_device * partition.layout.mesh.size
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise UsageError(
            f"the weights take {bytes_text(needed)} on {partition.layout.mesh.size} virtual CPU devices together, and "
            f"this machine has {bytes_text(memory)} of memory: split them further, or take a smaller model"
        )


def _batch_multiple(partitions: dict[Mode, Partition]) -> int:
    from math import lcm

    return lcm(*(partition.multiple_of("batch", "act", "batch", "cache") for partition in partitions.values()))


def described(layouts: Layouts, partitions: dict[Mode, Partition]) -> Iterator[str]:
    """What a user should know about where the model runs."""
    partition = partitions["prefill"]
    mesh, platform = partition.layout.mesh, partition.platform
    if platform == "cpu":
        yield f"mesh {mesh}: {mesh.size} virtual CPU device{'s' * (mesh.size > 1)}, as there is no accelerator"
        for axis in layouts.inferred:
            yield f"  {axis}=-1 is {mesh.sizes[axis]} on virtual devices; another size: spec.mesh.{axis}=N"
    else:
        yield f"mesh {mesh}: {mesh.size} {platform} devices"
    yield from (f"  {note}" for note in partition.notes)
    unknown = dict.fromkeys(text for part in partitions.values() for text in part.layout.unknown)
    yield from (f"  not known here: {text}" for text in unknown)
    findings = {finding: None for part in partitions.values() for finding in part.layout.findings}
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if warnings:
        yield render(warnings, partition.layout.sources)
