"""The loop over steps, and what it measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from sharddsl.findings import UsageError
from sharddsl.hardware import peak_flops
from sharddsl.models import PRESETS
from sharddsl.models.flops import train_flops_per_token
from sharddsl.train.config import Training
from sharddsl.train.loop import Loop, Record
from sharddsl.train.metrics import Gauge, step_bytes, typical
from sharddsl.train.program import Metrics


@dataclass(frozen=True)
class Placed:
    """In place of a `Program`: batches are numbers."""

    def place(self, batch: Any) -> Any:
        return batch


def a_step(losses: list[float], layers: Any = None) -> Any:
    """A step that counts itself, and whose losses are given."""

    def step(state: int, batch: int) -> tuple[int, Metrics]:
        assert batch == state
        numbers = jnp.float32(losses[state]), jnp.int32(100), jnp.float32(2.0), jnp.float32(0.1)
        return state + 1, Metrics(*numbers, layers)

    return step


def loop(losses: list[float], layers: Any = None) -> Loop:
    program: Any = Placed()
    state: Any = 0
    return Loop(program, a_step(losses, layers), state)


def numbers() -> Iterator[Any]:
    yield from range(100)


def test_a_record_of_every_step_in_order() -> None:
    running = loop([3.0, 2.0, 1.0])
    found = list(running.run(numbers(), 3))
    assert [(r.step, r.loss, r.tokens, r.grad_norm) for r in found] == [
        (1, 3.0, 100, 2.0),
        (2, 2.0, 100, 2.0),
        (3, 1.0, 100, 2.0),
    ]
    assert all(r.seconds > 0 for r in found)
    state: Any = running.state
    assert state == 3


def test_a_step_is_read_when_the_next_one_is_under_way() -> None:
    running = loop([3.0, 2.0, 1.0])
    records = running.run(numbers(), 3)
    assert next(records).step == 1
    state: Any = running.state
    assert state == 2


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_the_run_at_its_step(loss: float) -> None:
    records = loop([3.0, loss, 1.0]).run(numbers(), 3)
    assert next(records).step == 1
    with pytest.raises(UsageError) as refused:
        next(records)
    assert str(refused.value).startswith(f"step 2: the loss is {loss}: training stops here")
    assert "--layer-stats" in str(refused.value)


def test_layer_statistics_name_the_layers_that_are_not_finite() -> None:
    layers = {
        "embed.w": {"param": jnp.float32(1), "grad": jnp.float32(0.5), "finite": jnp.bool_(True)},
        "layers.mlp.w_in": {
            "param": jnp.asarray([1.0, 2.0]),
            "grad": jnp.asarray([0.5, jnp.inf]),
            "finite": jnp.asarray([True, False]),
        },
    }
    with pytest.raises(UsageError) as refused:
        list(loop([float("nan")], layers).run(numbers(), 1))
    lines = str(refused.value).splitlines()
    assert lines[1].strip() == "1 of 3 params have values that are not finite (root mean squares):"
    assert lines[2].split() == ["layers[1].mlp.w_in", "param", "2", "gradient", "inf", "not", "finite"]
    assert [line.split()[0] for line in lines[3:]] == ["embed.w", "layers[0].mlp.w_in"]


# ------------------------------------------------------------------------------------------------------------- figures


@dataclass(frozen=True)
class Device:
    device_kind: str
    peak: int | None = None

    def memory_stats(self) -> dict[str, int] | None:
        return None if self.peak is None else {"bytes_in_use": 1, "peak_bytes_in_use": self.peak}


def gauge(kind: str, devices: int = 2) -> Gauge:
    some: Any = [Device(kind)] * devices
    return Gauge(PRESETS["llama3_8b"], Training(batch=8, seq=8192), some, planned_bytes=3 * 2**30)


STEP = Record(step=3, loss=2.0, grad_norm=1.0, lr=1e-3, tokens=60_000, seconds=4.0)


def test_model_flops_of_llama3_8b() -> None:
    """By hand: 8,030,261,248 weights less the table's 128256·4096, times 6; and 12 · 32 layers · 4096 · 8192."""
    assert train_flops_per_token(PRESETS["llama3_8b"], 8192) == 6 * 7_504_924_672 + 12_884_901_888
    tied = PRESETS["smollm2_135m"]  # whose table is the head too: all of its 134,515,008 weights
    assert train_flops_per_token(tied, 2048) == 6 * 134_515_008 + 12 * 30 * 576 * 2048


def test_utilisation() -> None:
    """65,536 tokens in 4 s are 16,384/s; times 57.9 GFLOP a token, over two of 459 TFLOP/s."""
    assert gauge("TPU v5").figures(STEP)["mfu"] == pytest.approx(16_384 * 57_914_449_920 / (2 * 459e12))
    assert gauge("TPU v5").figures(STEP)["tokens/s"] == 16_384


def test_memory_is_what_the_backend_counted_and_else_the_plan() -> None:
    devices: Any = [Device("TPU v5", peak=5 * 2**30), Device("TPU v5", peak=7 * 2**30)]
    assert replace(gauge("TPU v5"), devices=devices).figures(STEP)["memory"] == 7 * 2**30
    assert gauge("cpu").figures(STEP)["memory"] == 3 * 2**30


def test_the_plan_of_a_step_has_what_goes_in_and_what_lives_in_between() -> None:
    """By hand: 1,024 float32 in, donated and out in their place; their products with each other, 4 MiB, in between."""

    def step(x: jax.Array) -> jax.Array:
        table = jax.lax.optimization_barrier(x[:, None] * x[None, :])
        kept: jax.Array = jax.lax.optimization_barrier(table)
        return jnp.sum(kept.T, axis=0) + kept[0]

    planned = step_bytes(jax.jit(step, donate_argnums=0).lower(jax.ShapeDtypeStruct((1024,), "float32")).compile())
    assert 4096 + 4 * 2**20 <= planned <= 1.01 * 4 * 2**20 + 2 * 4096


def test_without_a_known_peak_there_is_no_utilisation() -> None:
    assert peak_flops(jax.devices()[0].device_kind) is None
    assert "mfu" not in gauge("cpu").figures(STEP)


def test_the_first_step_is_no_typical_one() -> None:
    records = [Record(n, 0.0, 0.0, 0.0, 0, seconds) for n, seconds in enumerate([90.0, 1.0, 3.0, 2.0])]
    assert typical(records) == 2.0
    assert typical(records[:1]) == 90.0
