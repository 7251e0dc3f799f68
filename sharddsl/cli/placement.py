"""Where a model runs: the layouts of its programs, and the devices that they are for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sharddsl.cli.layouts import lay_out, load_spec, smallest, usable
from sharddsl.config.schema import Config
from sharddsl.findings import UsageError, render
from sharddsl.layout.model import Layout
from sharddsl.layout.totals import sum_known, totals
from sharddsl.layout.words import bytes_text
from sharddsl.models import Run
from sharddsl.spec.model import Mode, Namespace

if TYPE_CHECKING:
    import jax

    from sharddsl.partition import Partition

_MOST_VIRTUAL = 1024
"""CPU devices. JAX makes them, but each has threads of its own, and nobody means to generate on more."""


class Layouts:
    """The layouts of a command's programs, one for each of `modes`, and the devices that they are for: `wanted` virtual
    ones where there is no accelerator, or as many as the mesh takes at least, and at least `fewest` where an axis of it
    is inferred."""

    def __init__(
        self,
        config: Config,
        rules: Sequence[str],
        modes: Sequence[Mode],
        wanted: int | None = None,
        *,
        fewest: int = 1,
    ) -> None:
        self._config, self._modes, self._wanted = config, tuple(modes), wanted
        self._loaded, mesh = load_spec(config, rules)
        self.inferred = [axis.name for axis in mesh.axes if axis.size == -1] if wanted is None else []
        self.least = wanted or max(smallest(mesh), fewest if self.inferred else 1)

    def check(self) -> None:
        """Raises `ShardError` for what does not fit on the fewest devices."""
        if self.least > _MOST_VIRTUAL:
            return  # only accelerators can be as many, and they are counted once jax has started
        for mode in self._modes:
            self._layout(mode, self.least, self._config.run)

    def devices(self) -> list[jax.Device]:
        """The machine's accelerators, or virtual CPU devices where it has none."""
        from sharddsl.partition import ensure_devices

        if self.least <= _MOST_VIRTUAL:
            devices = ensure_devices(self.least)
            if self._wanted not in (None, len(devices)):
                raise UsageError(
                    f"--devices {self._wanted}: this machine has {len(devices)} {devices[0].platform} devices, all of "
                    "which are used; leave it out"
                )
            return devices
        devices = ensure_devices(1)
        if devices[0].platform == "cpu":
            raise UsageError(
                f"the mesh takes {self.least:,} devices; without an accelerator at most {_MOST_VIRTUAL:,} virtual CPU "
                "devices are made: give smaller axes, as in spec.mesh.fsdp=2"
            )
        return devices

    def partitions(self, devices: list[jax.Device], run: Run | None = None) -> dict[Mode, Partition]:
        """Each mode's partition on these devices, for the job's run or another."""
        from sharddsl.partition import Partition

        run = self._config.run if run is None else run
        return {mode: Partition.of(self._layout(mode, len(devices), run), devices) for mode in self._modes}

    def _layout(self, mode: Mode, devices: int, run: Run) -> Layout:
        run = run.model_copy(update={"mode": mode})
        return usable(lay_out(self._loaded, self._config.model, run, devices))


def refuse_too_large(partition: Partition, what: str, *namespaces: Namespace) -> None:
    """Raise `UsageError` where virtual CPU devices, which share the machine's memory, cannot hold these tensors."""
    held = totals(partition.layout)
    per_device = sum_known([held[namespace].local_bytes for namespace in namespaces])
    if partition.platform != "cpu" or per_device is None:
        return
    needed = per_device * partition.layout.mesh.size
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise UsageError(
            f"{what} take {bytes_text(needed)} on {partition.layout.mesh.size} virtual CPU devices together, and "
            f"this machine has {bytes_text(memory)} of memory: split them further, or take a smaller model"
        )


def described(layouts: Layouts, partitions: dict[Mode, Partition]) -> Iterator[str]:
    """What a user should know about where the model runs."""
    partition = next(iter(partitions.values()))
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
