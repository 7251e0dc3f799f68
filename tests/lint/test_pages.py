"""Each code's page is a docstring: the bad example has the finding, the good one has none.

An example without a `check` gets one. `--devices 12` and `--rule '…'` in the words before an example are given with it,
and a `json` block of the page is the inventory that its examples are linted for. A `text` block that begins with
`case: ` is their golden file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from sharddsl.cli.linting import Wanted, lint
from sharddsl.lint.pages import page_of, to_text, written
from sharddsl.tensors import Inventory
from sharddsl.tensors.data import from_data

CHECK = "cache: {batch: fsdp}\ncheck llama3_8b batch 64 seq 2048\n"


@dataclass(frozen=True)
class Example:
    before: str
    """The words between the block before it, if any, and this one."""
    text: str


def examples(body: str) -> list[Example]:
    parts = re.split(r"```shard\n(.*?)```\n", body, flags=re.DOTALL)
    return [Example(before, text) for before, text in zip(parts[::2], parts[1::2], strict=False)]


def held(body: str) -> Inventory | None:
    block = re.search(r"```json\n(.*?)```\n", body, re.DOTALL)
    return None if block is None else from_data(json.loads(block[1]))


def golden(body: str, folder: Path) -> Path | None:
    """The folder with the page's golden file of `my.shard`."""
    block = re.search(r"```text\n(case: .*?)```\n", body, re.DOTALL)
    if block is None:
        return None
    (folder / "my.golden").write_text(block[1])
    return folder


def codes(example: Example, code: str, body: str, inventory: Inventory | None, folder: Path) -> set[str]:
    file = folder / "my.shard"
    checked = inventory is not None or re.search(r"^check ", example.text, re.MULTILINE)
    file.write_text(example.text if checked else example.text + CHECK)
    devices = re.search(r"`--devices (\d+)`", example.before)
    wanted = Wanted(
        rules=tuple(re.findall(r"`--rule '(.*?)'`", example.before)),
        devices=int(devices[1]) if devices else None,
        inventory=inventory,
        ignore=() if code == "SHD006" else ("SHD006",),
        golden=golden(body, folder),
    )
    return {judged.finding.code for judged in lint(file, wanted).report.findings}


@pytest.mark.parametrize("code", written())
def test_the_examples_of_a_page(code: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    page = page_of(code)
    bad, good = examples(page.body)
    assert "Bad" in bad.before
    assert "Good" in good.before
    assert code in codes(bad, code, page.body, held(page.body), tmp_path)
    assert codes(good, code, page.body, held(page.body), tmp_path) == set()


@pytest.mark.parametrize("code", written())
def test_a_page_says_what_to_do(code: str) -> None:
    page = page_of(code)
    assert set(re.findall("error|warning|info", page.severity))
    assert page.body.index("Bad") < page.body.index("Good") < page.body.index("How to mend it:")
    assert len(page.body.split("\n\nBad")[0]) > 60
    assert "```" not in to_text(page)
    assert max(map(len, page.body.splitlines())) <= 120
