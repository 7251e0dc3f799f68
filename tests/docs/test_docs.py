"""The README and `docs/` are run: every `shard` block parses, every `python` block runs, every `console` block prints
what it shows.

In a `console` block a line `$ command` is followed by what it prints; a line `…` stands for any number of lines. Blocks
that run the pretrained model are slow tests. Figures that depend on the machine (seconds, tokens/s) are not compared.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sharddsl import syntax

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```(?P<language>[\w-]+)[^\n]*\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    body: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(language: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            if match["language"] == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append(Block(page.name, line, language, match["body"]))
    return found


@dataclass(frozen=True)
class Command:
    words: list[str]
    expected: str
    place: str

    def __str__(self) -> str:
        return f"{self.place} {' '.join(self.words[:2])}"


def commands() -> list[Command]:
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
            line, _, expected = part.replace("\\\n", " ").partition("\n")
            found.append(Command(shlex.split(line), expected, str(block)))
    return found


def child(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=500, check=False, cwd=cwd, env=environment
    )


def as_pattern(expected: str) -> re.Pattern[str]:
    """What the page shows, as a pattern: `…` lines match anything, figures of time any figure."""
    lines = [r"(?:.*\n)*?" if line == "…" else _comparable(re.escape(line)) + r"\n" for line in expected.splitlines()]
    return re.compile("".join(lines))


def _comparable(escaped: str) -> str:
    return re.sub(r"\d+(\\\.\d+)?(?=(\\ |)(tokens/s|s\b))", r"[0-9.]+", escaped)


@pytest.mark.parametrize("block", blocks("shard"), ids=str)
def test_every_spec_on_a_page_parses(block: Block) -> None:
    parsed = syntax.parse(block.body, str(block))
    assert not parsed.findings


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_program_on_a_page_runs(block: Block, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(block.body, encoding="utf-8")
    done = child([str(program)], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("command", [c for c in commands() if c.words[0] == "sharddsl"], ids=str)
def test_every_command_on_a_page_prints_what_is_shown(command: Command) -> None:
    done = child(["-m", "sharddsl", *command.words[1:]], ROOT)
    printed = done.stdout + done.stderr
    assert as_pattern(command.expected).fullmatch(printed), printed


def test_the_pages_have_examples_of_each_kind() -> None:
    assert len(blocks("shard")) >= 10
    assert len(blocks("python")) >= 1
    assert len(commands()) >= 5


def test_a_wrong_page_would_be_noticed() -> None:
    assert as_pattern("a\n…\nz 1.5 s\n").fullmatch("a\nb\nc\nz 2.25 s\n")
    assert not as_pattern("a\n…\nz\n").fullmatch("a\nb\n")
