"""Figures about a run, from its records: speed, utilisation, memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import jax

from sharddsl.hardware import peak_flops
from sharddsl.models.config import LlamaConfig
from sharddsl.models.flops import train_flops_per_token
from sharddsl.train.config import Training
from sharddsl.train.loop import Record
from sharddsl.train.program import State


@dataclass(frozen=True)
class Gauge:
    """Turns records into figures for one run on some devices. Tokens per second count every position of the batch,
    filler too, since they all cost the same."""

    config: LlamaConfig
    run: Training
    devices: Sequence[jax.Device]

    @property
    def tokens_per_step(self) -> int:
        """Positions of the batch."""
        return (self.run.batch or 0) * (self.run.seq or 0)

    def tokens_per_second(self, record: Record) -> float:
        """Of all devices together."""
        return self.tokens_per_step / record.seconds

    def utilisation(self, record: Record) -> float | None:
        """Model FLOP utilisation (PaLM, arXiv 2204.02311, appendix B): the model's own operations per second over the
        devices' peak, from 0 to 1; None where the peak is not known."""
        peak = peak_flops(self.devices[0].device_kind)
        if peak is None:
            return None
        flops = train_flops_per_token(self.config, self.run.seq or 0) * self.tokens_per_step
        return flops / record.seconds / (peak * len(self.devices))

    def figures(self, record: Record) -> dict[str, float]:
        """All of a record, by the names that logs and files use."""
        utilisation = self.utilisation(record)
        return {
            "step": record.step,
            "loss": record.loss,
            "grad_norm": record.grad_norm,
            "lr": record.lr,
            "tokens": record.tokens,
            "tokens/s": self.tokens_per_second(record),
            "step_time": record.seconds,
            **({} if utilisation is None else {"mfu": utilisation}),
        }


def typical(records: Sequence[Record]) -> float:
    """The median seconds of a step, without the first where there are more: it waits for what is loaded once."""
    return median(record.seconds for record in records[1:] or records)


def peak_memory(devices: Sequence[jax.Device]) -> int | None:
    """The most bytes in use at once on any device so far; None where the backend does not count them (a CPU)."""
    peaks = [stats["peak_bytes_in_use"] for device in devices if (stats := device.memory_stats())]
    return max(peaks, default=None)


def state_bytes(state: State) -> int:
    """Bytes of params and optimizer state on the device that holds most."""
    held: dict[int, int] = defaultdict(int)
    for leaf in jax.tree.leaves(state):
        for shard in leaf.addressable_shards:
            held[shard.device.id] += shard.data.nbytes
    return max(held.values())
