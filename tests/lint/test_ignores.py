"""`# shd: ignore[CODE] reason`."""

from __future__ import annotations

import pytest

from sharddsl.lint.fixes import fixed
from sharddsl.lint.settings import Settings
from sharddsl.lint.silence import told
from tests.lint.cases import linted

HEAD = "mesh: [fsdp=4]\n*: {embed: fsdp}\n"
TAIL = "act: {batch: fsdp}\ncache: {batch: fsdp}\ncheck llama3_8b batch 8 seq 64\n"
WHOLE = "embed.w: [None, None]"
"""SHD304, on line 3."""


def said(text: str, settings: Settings) -> list[str]:
    """`line code message`, of each finding that is told."""
    report = told(linted(text), settings)
    return [f"{f.where.span.line} {f.code} {f.message}" for f in (j.finding for j in report.findings) if f.where]


@pytest.mark.parametrize(
    "rule",
    [
        f"{WHOLE}  # shd: ignore[SHD304] two tables fit",
        f"{WHOLE}  # shd: ignore[large-and-replicated] two tables fit",
        f"{WHOLE}  # shd:ignore [ shd304 ]: two tables fit",
        f"# shd: ignore[SHD304] two tables fit\n{WHOLE}",
        f"# shd: ignore[SHD304] two tables fit\n# (of 1 GiB each)\n\n{WHOLE}",
        "embed.w: [\n  None,  # shd: ignore[SHD304] the finding is on all of the layout\n  None,\n]",
    ],
)
def test_a_finding_is_silenced(rule: str) -> None:
    report = told(linted(f"{HEAD}{rule}\n{TAIL}"), Settings())
    assert report.findings == ()
    assert report.silenced == {"comments": 1}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            f"{WHOLE}  # shd: ignore[SHD304]",
            ["3 SHD005 this ignore silences nothing: it gives no reason: `# shd: ignore[SHD304] why`", "3 SHD304"],
        ),
        (
            f"{WHOLE}  # shd: ignore it is small",
            ["3 SHD005 this ignore silences nothing: it names no code: `# shd: ignore[SHD304] reason`", "3 SHD304"],
        ),
        (
            f"{WHOLE}  # shd: ignore[SHD3O4] it is small",
            [
                "3 SHD005 this ignore silences nothing: no finding has the code or name `SHD3O4`",
                "3 SHD304",
            ],
        ),
        (
            f"{WHOLE}  # shd: ignore[SHD203] it is small",
            ["3 SHD005 this ignore silences nothing: there is no SHD203 on line 3", "3 SHD304"],
        ),
        (
            f"# shd: ignore[SHD304] it is another line's\nmlp.w_in: {{embed: fsdp, ffn: None}}\n{WHOLE}",
            ["3 SHD005 this ignore silences nothing: there is no SHD304 on line 4", "5 SHD304"],
        ),
        ("embed.w: replicated  # shd: ignore[SHD304] old", ["3 SHD005 this ignore silences nothing: there is no"]),
    ],
)
def test_an_ignore_that_silences_nothing(rule: str, expected: list[str]) -> None:
    found = said(f"{HEAD}{rule}\n{TAIL}", Settings())
    found.sort(key=lambda line: line.split()[:2])
    assert len(found) == len(expected)
    for line, begins in zip(found, expected, strict=True):
        assert line.startswith(begins)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("embed.w: replicated  # shd: ignore[SHD304] old", "embed.w: replicated"),
        ("# shd: ignore[SHD304] old\nembed.w: replicated", "embed.w: replicated"),
        (f"{WHOLE}  # shd: ignore[SHD304, SHD203] small", f"{WHOLE}  # shd: ignore[SHD304] small"),
    ],
)
def test_the_fix_of_one_that_silences_nothing(before: str, after: str) -> None:
    report = told(linted(f"{HEAD}{before}\n{TAIL}"), Settings())
    made = fixed([judged.finding for judged in report.findings], report.sources)
    assert made.texts == {"my.shard": f"{HEAD}{after}\n{TAIL}"}
    assert told(linted(f"{HEAD}{after}\n{TAIL}"), Settings()).findings == ()


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}embed.w: replicated  # shd: ignore[SHD304] not looked for without a check\n",
        f"{HEAD}embed.w: replicated  # shd: ignore[SHD304] not looked for with an error\nw: [\n{TAIL}",
        f'{HEAD}"# shd: ignore".w: replicated\n',  # no comment
    ],
)
def test_what_was_not_looked_for_is_not_called_idle(text: str) -> None:
    assert [line for line in said(text, Settings()) if "SHD005" in line] == []


def test_a_code_that_is_left_out_is_not_called_idle() -> None:
    text = f"{HEAD}embed.w: replicated  # shd: ignore[SHD304] old\n{TAIL}"
    assert said(text, Settings(ignore=frozenset({"SHD304"}))) == []


def test_the_report_of_an_idle_ignore_can_be_silenced_itself() -> None:
    text = f"{HEAD}embed.w: replicated  # shd: ignore[SHD304, SHD005] used by another mesh\n{TAIL}"
    assert said(text, Settings()) == []
