"""The train step's optimized program under `llama/fsdp_tp` against one with every PartitionSpec written by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import pytest
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.tree_util import tree_map_with_path

from sharddsl.train.program import Program
from tests.llama.test_sharded import HAND_ACTS, HAND_PARAMS, without_metadata
from tests.train.small import TINY, program

ROWS = P(("dp", "fsdp"), None)
OPT_TABLE = P("mp", "fsdp")
"""The one leaf of the moments that the spec splits otherwise than its param: `opt.embed.w`."""


@dataclass(frozen=True)
class ByHand:
    """What a train step asks of a partition, without a layout."""

    mesh: Mesh
    platform: str = "cpu"

    def place(self, spec: P) -> NamedSharding:
        return NamedSharding(self.mesh, spec)

    @property
    def replicated(self) -> NamedSharding:
        return self.place(P())

    def sharding(self, name: str) -> NamedSharding:
        assert name.startswith("batch.")
        return self.place(ROWS)

    def shardings(self, tree: Any, namespace: str = "param") -> Any:
        return tree_map_with_path(lambda path, _: self.place(spec_of([str(key.key) for key in path], namespace)), tree)

    def fetch(self, tree: Any, namespace: str = "param") -> Any:
        return tree

    def constrain(self, x: Array, name: str) -> Array:
        if name.startswith("grad."):
            spec = spec_of(name.split(".")[1:], "grad")
            return self.pin(x, P(*spec[len(spec) - x.ndim :]))  # a layer's slice has no dim of layers
        return self.pin(x, ROWS if name.startswith("batch.") else HAND_ACTS[name])

    def constrain_tree(self, tree: Any, namespace: str) -> Any:
        return tree_map_with_path(lambda path, x: self.pin(x, spec_of([str(key.key) for key in path], namespace)), tree)

    def pin(self, x: Array, spec: P) -> Array:
        pinned: Array = jax.lax.with_sharding_constraint(x, self.place(spec))
        return pinned


def spec_of(path: list[str], namespace: str) -> P:
    if namespace == "opt":
        if path == ["count"]:
            return P()
        path = path[1:]
        if path == ["embed", "w"]:
            return OPT_TABLE
    found: Any = HAND_PARAMS
    for key in path:
        found = found[key]
    assert isinstance(found, P)
    return found


@pytest.mark.slow
def test_the_program_is_that_of_a_step_sharded_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = program("llama/fsdp_tp", {"dp": 1, "fsdp": 4, "mp": 2}, precision="bf16_compute", remat="full", accum=2)
    devices = [[[jax.devices()[2 * f + m] for m in range(2)] for f in range(4)]]
    mesh = Mesh(devices, ("dp", "fsdp", "mp"), axis_types=(AxisType.Auto,) * 3)
    hand: Any = ByHand(mesh)
    monkeypatch.setattr("sharddsl.train.program.constrain_of", lambda partition: partition.constrain)
    by_hand = text(Program(TINY, shipped.run, hand))
    monkeypatch.undo()
    found = text(shipped)
    assert found == by_hand
    assert "all-gather" in found
    assert "donated" in found or "alias" in found


def text(of: Program) -> str:
    compiled: Any = of.lower().compile()
    return without_metadata(compiled.as_text())
