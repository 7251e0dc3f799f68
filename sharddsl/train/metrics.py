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
    filler too, since they all cost the same. `planned_bytes` is `step_bytes` of the compiled step."""

    config: LlamaConfig
    run: Training
    devices: Sequence[jax.Device]
    planned_bytes: int

    @property
    def tokens_per_step(self) -> int:
        """Positions of the batch."""
        return (self.run.batch or 0) * (self.run.seq or 0)

    def utilisation(self, seconds: float) -> float | None:
        """Model FLOP utilisation of a step of so many seconds (PaLM, arXiv 2204.02311, appendix B): the model's own
        operations per second over the devices' peak, from 0 to 1; None where the peak is not known."""
        peak = peak_flops(self.devices[0].device_kind)
        if peak is None:
            return None
        flops = train_flops_per_token(self.config, self.run.seq or 0) * self.tokens_per_step
        return flops / seconds / (peak * len(self.devices))

    def memory(self) -> int:
        """Bytes of the device that holds most: the most in use at once so far, or, where the backend does not count
        them (a CPU), what the step takes by the compiler's plan."""
        peaks = [stats["peak_bytes_in_use"] for device in self.devices if (stats := device.memory_stats())]
        return max(peaks, default=self.planned_bytes)

    def figures(self, record: Record) -> dict[str, float]:
        """All of a record, by the names that logs and files use."""
        utilisation = self.utilisation(record.seconds)
        return {
            "step": record.step,
            "loss": record.loss,
            "grad_norm": record.grad_norm,
            "lr": record.lr,
            "tokens": record.tokens,
            "tokens/s": self.tokens_per_step / record.seconds,
            "step_time": record.seconds,
            "memory": self.memory(),
            **({} if utilisation is None else {"mfu": utilisation}),
        }


def typical(records: Sequence[Record]) -> float:
    """The median seconds of a step, without the first where there are more: it waits for what is loaded once."""
    return median(record.seconds for record in records[1:] or records)


def step_bytes(step: jax.stages.Compiled) -> int:
    """Bytes that a compiled step takes on one device: the state and the batch that go in, what comes out and does not
    take their place, and what lives in between.

    The compiler's own `peak_memory_in_bytes` leaves the latter out on CPUs (jax 0.10.2 and 0.12.0).
    """
    plan = step.memory_analysis()
    assert plan is not None, "XLA's backends for CPU, GPU and TPU all know it"
    kept = plan.output_size_in_bytes - plan.alias_size_in_bytes
    return int(plan.argument_size_in_bytes + kept + plan.temp_size_in_bytes)


def state_bytes(state: State) -> int:
    """Bytes of params and optimizer state on the device that holds most."""
    held: dict[int, int] = defaultdict(int)
    for leaf in jax.tree.leaves(state):
        for shard in leaf.addressable_shards:
            held[shard.device.id] += shard.data.nbytes
    return max(held.values())
