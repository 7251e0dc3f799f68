"""How codes may be written."""

from __future__ import annotations

import pytest

from sharddsl.findings import NAMES, UsageError
from sharddsl.lint.codes import code_of, codes_of


@pytest.mark.parametrize("text", ["SHD303", "shd303", "splits-a-head", "Splits-A-Head", " SHD303 "])
def test_a_code_or_its_name(text: str) -> None:
    assert code_of(text) == "SHD303"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["SHD303", "rule-never-wins"], {"SHD303", "SHD203"}),
        (["SHD303,SHD203", ""], {"SHD303", "SHD203"}),
        (["SHD00"], {"SHD001", "SHD002", "SHD003", "SHD004", "SHD005", "SHD006", "SHD007", "SHD008"}),
        (["ALL"], set(NAMES)),
        ([], set()),
    ],
)
def test_sets_of_codes(words: list[str], expected: set[str]) -> None:
    assert codes_of(words) == expected


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("SHD330", "did you mean SHD310"),
        ("split-a-head", "did you mean splits-a-head?"),
        ("zzz", "`sharddsl rule` lists all"),
    ],
)
def test_the_nearest_is_named(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"no finding has the code or name `{word}`; .*{hint}"):
        codes_of([word])
