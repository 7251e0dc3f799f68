"""Each rule's page is its docstring: the bad example has the finding, the good one has none."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from sharddsl.findings import NAMES
from sharddsl.lint.rules import WHOLE_FILE, axis_never_used, large_and_replicated, rule_never_wins
from tests.lint.cases import codes

RULES = [axis_never_used, rule_never_wins, large_and_replicated]
CHECK = "cache: {batch: fsdp}\ncheck llama3_8b batch 64 seq 2048\n"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.rpartition(".")[2])
def test_the_examples_of_a_page(rule: ModuleType) -> None:
    page = rule.__doc__ or ""
    title = re.match(r"(SHD\d{3}) ([a-z-]+) \((error|warning|info)\)\n", page)
    assert title is not None
    assert NAMES[title[1]] == title[2]
    bad, good = re.findall(r"```shard\n(.*?)```", page, re.DOTALL)
    assert title[1] in codes(bad + CHECK)
    assert codes(good + CHECK) == []


def test_every_rule_has_a_page() -> None:
    assert {check.__module__ for check in WHOLE_FILE} == {rule.__name__ for rule in RULES}
