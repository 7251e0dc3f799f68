"""SHD203."""

from __future__ import annotations

import pytest

from sharddsl import spec
from sharddsl.findings import Edit, Location, Span
from sharddsl.lint import cases_of_checks, judge
from sharddsl.models import PRESETS
from tests.lint.cases import RUNS, codes, found

BASE = "mesh: [fsdp=4]\n"
REST = "act: {batch: fsdp}\ncache: {batch: fsdp}\ncheck llama_tiny batch 8 seq 64\n"


def test_the_rule_and_what_shadows_it() -> None:
    text = f"{BASE}mlp.w_in: [fsdp, None]  # first\n*: {{embed: fsdp}}\n{REST}"
    (finding,) = found(text, "SHD203")
    assert finding.severity == "warning"
    assert finding.message == "`mlp.w_in` never wins: every tensor that it matches is placed by `*` (line 3)"
    assert finding.where is not None
    assert finding.where.span == Span(2, 1, 2, 23)
    assert [where.span.line for where, _ in finding.related] == [3]
    assert finding.fix == (Edit(Location("my.shard", Span(2, 1, 3, 1)), ""),)


@pytest.mark.parametrize(
    "rules",
    [
        "*: {embed: fsdp}\nmlp.w_in: [fsdp, None]\n",  # the later one has the fewer tensors
        "*: {embed: fsdp}\nmlp.w_in: {ffn: None, ..}\nmlp.w_out: [None, fsdp]\n",  # `..` takes the first one over
        "*: {embed: fsdp}\nwhen mode == decode { mlp.w_in: [fsdp, None] }\n",  # wins in another mode
        "*: {embed: fsdp}\nmlp.{w_in, w_gate}: [fsdp, None]\nmlp.w_in: replicated\n",  # wins for one alternative
    ],
)
def test_a_rule_that_wins_somewhere(rules: str) -> None:
    assert "SHD203" not in codes(BASE + rules + REST)


def test_a_rule_that_matches_nothing_is_another_finding() -> None:
    assert codes(f"{BASE}*: {{embed: fsdp}}\nmlp.w_sideways: [fsdp]\n{REST}") == ["SHD201"]


def test_a_rule_that_the_command_line_shadows_is_not_dead() -> None:
    text = f"{BASE}*: {{embed: fsdp}}\nmlp.w_in: [fsdp, None]\n{REST}"
    loaded = spec.parse(text, "my.shard", rules=("mlp.w_in: replicated",), models=PRESETS, runs=RUNS)
    report = judge("my.shard", loaded, tuple(cases_of_checks(loaded, PRESETS, RUNS)))
    assert "SHD203" not in [judged.finding.code for judged in report.findings]
