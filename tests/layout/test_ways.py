"""How conditions of unknown value can come out together."""

from __future__ import annotations

import pytest

from sharddsl import spec
from sharddsl.layout.ways import ways
from sharddsl.spec.evaluate import Value
from sharddsl.spec.model import Condition

KNOWN: dict[str, Value] = {"mp": 4, "devices": 8, "mode": "train", "tied": None, "batch": None, "seq": None}


def conditions(*texts: str) -> list[Condition]:
    made = spec.parse("mesh: [mp=4]\n" + "".join(f"when {text} {{ w{n}: [] }}\n" for n, text in enumerate(texts)))
    return [rule.conditions[0] for rule in made.checked().rules]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["batch > 8"], [(False,), (True,)]),
        (["batch > 8", "batch <= 8"], [(False, True), (True, False)]),
        (["batch > 8", "batch > 4"], [(False, False), (True, True)]),
        (["tied", "not tied"], [(False, True), (True, False)]),
        (["batch == 2 * devices"], [(False,), (True,)]),  # of a product
        (["batch % mp == 0"], [(False,), (True,)]),
        (["batch * seq > 1000000", "batch > 1"], [(False, False), (True, True)]),
        (["batch < 1"], [(False,)]),  # never
        (["batch >= 1"], [(True,)]),  # always
        (["8 / (batch - 1) > 1"], [(False,), (True,)]),  # without a value where it divides by zero
    ],
)
def test_each_condition_comes_out_both_ways_if_it_can(texts: list[str], expected: list[tuple[bool, ...]]) -> None:
    assert list(ways(conditions(*texts), KNOWN)) == expected


def test_there_are_no_more_ways_than_anyone_reads() -> None:
    assert len(ways(conditions(*(f"batch == {n}" for n in range(100, 200, 2))), KNOWN)) == 16
