"""`sharddsl rule`: pages by code and by name, as text, Markdown and JSON."""

from __future__ import annotations

import json

import pytest

from sharddsl.cli.main import main


def told(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(argv) == 0
    return capsys.readouterr().out


def test_a_code_and_its_name_have_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = told(["rule", "SHD106"], capsys)
    assert page.startswith("SHD106 axis-never-used (warning)\n\nAn axis of the mesh")
    assert "\n    mesh: [fsdp=4, mp=2]\n" in page
    assert told(["rule", "axis-never-used"], capsys) == page
    assert told(["lint", "--explain", "shd106"], capsys) == page


@pytest.mark.parametrize("columns", ["40", "80"])
def test_words_fill_the_terminal_and_examples_stay(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = told(["rule", "SHD106"], capsys).splitlines()
    assert all(len(line) <= int(columns) for line in lines if not line.startswith("    "))
    assert max(len(line) for line in lines) > int(columns) - 12
    assert "    act: {batch: fsdp, heads: mp, ffn: mp}" in lines


def test_several_pages_are_set_apart(capsys: pytest.CaptureFixture[str]) -> None:
    page = told(["rule", "SHD001,unknown-name"], capsys)
    assert page.index("SHD001 syntax-error (error)\n") < page.index("\n\n\nSHD002 unknown-name (error)\n")
    assert "SHD106" not in page


def test_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    (page,) = json.loads(told(["rule", "SHD304", "--format", "json"], capsys))
    assert (page["code"], page["name"], page["severity"]) == ("SHD304", "large-and-replicated", "warning")
    assert "```shard\n" in page["body"]


def test_without_a_code_there_is_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(["rule"], capsys).splitlines()
    assert ["SHD106", "axis-never-used", "warning"] in [line.split() for line in lines]
    assert [line[:6] for line in lines] == sorted(line[:6] for line in lines)


def test_a_code_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "split-a-head"]) == 2
    assert "did you mean splits-a-head" in capsys.readouterr().err
