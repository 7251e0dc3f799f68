"""Every code has a file of snippets, and everything is found in them that is listed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl.cli.linting import Wanted, lint
from sharddsl.findings import Finding
from sharddsl.lint import Report
from sharddsl.lint.fixes import fixed
from tests.layout.cases import tensors
from tests.lint.snippets import FOLDER, Snippet, snippets

FILES = sorted(FOLDER.glob("SHD*.txt"))
ALL = [(file, snippet) for file in FILES for snippet in snippets(file)]


def linted(snippet: Snippet, text: str, code: str) -> Report:
    """The report on the file `my.shard` in the folder that the test stands in."""
    file = Path("my.shard")
    file.write_text(text, encoding="utf-8")
    golden = None if snippet.golden is None else Path("golden")
    if golden is not None and snippet.golden:
        golden.mkdir(exist_ok=True)
        (golden / "my.golden").write_text(snippet.golden, encoding="utf-8")
    wanted = Wanted(
        rules=snippet.rules,
        devices=snippet.devices,
        inventory=tensors(*snippet.tensors) if snippet.tensors else None,
        ignore=() if code == "SHD006" else ("SHD006",),
        golden=golden,
    )
    return lint(file, wanted).report


def told(finding: Finding, expected: str) -> str:
    """The finding in the form of the one that is expected."""
    place = ""
    if finding.where is not None:
        span = finding.where.span
        end = f"{span.end_line}:" * (span.end_line != span.line) + str(span.end_column)
        own = "" if finding.where.source == "my.shard" else f"{finding.where.source}:"
        place = f"{own}{span.line}:{span.column}-{end} "
    line = f"{place}{finding.severity} {finding.code} {finding.message}"
    if "\n  help: " in expected:
        line += "\n  help: " + (finding.help or "").replace("\n", "\n        ")
    return line


@pytest.mark.parametrize(("file", "snippet"), ALL, ids=[f"{file.stem}: {snippet.title}" for file, snippet in ALL])
def test_a_snippet(file: Path, snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    found = [judged.finding for judged in linted(snippet, snippet.text, file.stem).findings]
    expected = [*snippet.found, *[""] * (len(found) - len(snippet.found))]
    assert [told(finding, line) for finding, line in zip(found, expected, strict=False)] == list(snippet.found)
    assert len(found) == len(snippet.found)
    own = [finding for finding in found if finding.code == file.stem]
    if snippet.fixed is not None:
        mended = fixed(own, {"my.shard": snippet.text}).texts["my.shard"]
        assert mended == snippet.fixed
        assert file.stem not in [judged.finding.code for judged in linted(snippet, mended, file.stem).findings]
    else:
        assert not any(finding.fix for finding in own), "the snippet says nothing of the fix: -- fixed"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_bad_and_good_snippets(file: Path) -> None:
    bad = [s for s in snippets(file) if any(f" {file.stem} " in f" {line} " for line in s.found)]
    assert len(bad) >= 2
    assert len(snippets(file)) > len(bad)
