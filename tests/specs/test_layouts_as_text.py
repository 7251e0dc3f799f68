"""What `show --format golden` and `diff` say of the shipped layouts, against the PartitionSpecs written out by hand."""

from __future__ import annotations

import json
import re
from itertools import permutations

import pytest
from jax.sharding import PartitionSpec as P

from sharddsl.cli.main import main
from tests.specs.test_shipped_partition_specs import EXPECTED, FREE, Specs

Capture = pytest.CaptureFixture[str]
SAME_MESH = [(old, new) for old, new in permutations(EXPECTED, 2) if old[1] == new[1]]


def as_text(tensor: str, by_hand: P | None) -> str:
    """The layout in the language's words; that of one layer."""
    if by_hand is FREE:
        return "unconstrained"
    stacked = ".layers." in f".{tensor}" or tensor.startswith("cache.")
    entries = list(by_hand)[1:] if stacked else list(by_hand)
    if not any(entries):
        return "replicated"
    return "[" + ", ".join(f"({', '.join(e)})" if isinstance(e, tuple) else str(e) for e in entries) + "]"


def sizes(mesh: dict[str, int]) -> list[str]:
    return ["model=llama_tiny", "run.batch=8", "run.seq=64", *(f"spec.mesh.{name}={n}" for name, n in mesh.items())]


@pytest.mark.parametrize(("name", "mesh", "expected"), EXPECTED, ids=[case[0] for case in EXPECTED])
def test_the_golden_format(name: str, mesh: dict[str, int], expected: Specs, capsys: Capture) -> None:
    assert main(["show", f"spec=llama/{name}", *sizes(mesh), "--format", "golden"]) == 0
    rows = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()[1:]]
    said = {row[0]: row[2] for row in rows}
    assert {tensor: said[tensor] for tensor in expected} == {t: as_text(t, by_hand) for t, by_hand in expected.items()}


@pytest.mark.parametrize(("old", "new"), SAME_MESH, ids=[f"{old[0]} {new[0]}" for old, new in SAME_MESH])
def test_what_differs_between_two_layouts(
    old: tuple[str, dict[str, int], Specs], new: tuple[str, dict[str, int], Specs], capsys: Capture
) -> None:
    assert main(["diff", f"llama/{old[0]}", f"llama/{new[0]}", *sizes(old[1]), "--format", "json"]) == 0
    ((check,),) = [file["checks"] for file in json.loads(capsys.readouterr().out)["files"]]
    told = {tensor: (change["before"], change["after"]) for change in check["changes"] for tensor in change["tensors"]}
    both = old[2].keys() & new[2].keys()
    by_hand = {tensor: (as_text(tensor, old[2][tensor]), as_text(tensor, new[2][tensor])) for tensor in both}
    assert {t: told[t] for t in told.keys() & both} == {t: pair for t, pair in by_hand.items() if pair[0] != pair[1]}


def test_there_are_pairs_that_differ() -> None:
    assert {("dp", "zero1"), ("tp", "sp"), ("easylm", "fsdp_tp")} <= {(old[0], new[0]) for old, new in SAME_MESH}
