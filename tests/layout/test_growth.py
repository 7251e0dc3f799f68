"""Resolving does not grow as rules times tensors."""

from __future__ import annotations

from benchmarks.matching import rules, seconds, tensors


def test_a_hundred_times_the_rules_cost_less_than_ten_times() -> None:
    held = tensors(20_000)
    few, many = seconds(rules(10), held), seconds(rules(1000), held)
    # trying each rule on each tensor would take a hundred times as long; the index takes two to three
    assert many < 10 * few
