"""Every shipped layout, read from its file, generates what one device generates."""

from __future__ import annotations

import jax
import pytest

from sharddsl import layout, spec
from sharddsl.llama.generate import Generator
from sharddsl.models import PRESETS, Run, inventory
from sharddsl.partition import Partition
from tests.layouts import lay_out
from tests.llama.small import F32, random_params

TINY = PRESETS["llama_tiny"]
PROMPTS = [[1, 2, 3], [9], [7] * 20]


def shipped(name: str, mode: str, seq: int | None = None) -> Partition:
    run = Run.model_validate({"precision": "f32", "mode": mode, "batch": 8, "seq": seq})
    value = spec.load(name).checked()
    assert value.mesh is not None
    sizes, _ = layout.size_mesh(value.mesh, devices=8)
    assert sizes is not None
    return Partition.of(layout.resolve(value, inventory(TINY, run), sizes))


@pytest.fixture(scope="module")
def alone() -> list[list[int]]:
    first, after = (
        Partition.of(lay_out(inventory(TINY, F32.model_copy(update={"mode": mode})), {"dp": 1}, {}))
        for mode in ("prefill", "decode")
    )
    return Generator(TINY, F32, random_params(TINY), prefill=first, decode=after).generate(PROMPTS, 64)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", spec.list_specs())
def test_shipped_layouts_give_the_same_tokens(name: str, alone: list[list[int]]) -> None:
    first, after = shipped(name, "prefill", seq=32), shipped(name, "decode", seq=128)
    params = jax.device_put(random_params(TINY), first.shardings(random_params(TINY)))
    assert Generator(TINY, F32, params, prefill=first, decode=after).generate(PROMPTS, 64) == alone
