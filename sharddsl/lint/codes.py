"""Codes and kebab names as people write them: `SHD303`, `splits-a-head`, `SHD3` for all that begin so, `ALL`."""

from __future__ import annotations

from collections.abc import Iterable

from sharddsl.findings import NAMES, UsageError

ALL = "ALL"
_BY_NAME = {name: code for code, name in NAMES.items()}


def code_of(text: str) -> str:
    """The code that this is, or is the name of. Raises `UsageError` with the nearest where there is none."""
    word = text.strip()
    if word.upper() in NAMES:
        return word.upper()
    if word.lower() in _BY_NAME:
        return _BY_NAME[word.lower()]
    raise _unknown(word)


def codes_of(words: Iterable[str]) -> frozenset[str]:
    """All codes that these words name, each a code, a name, the beginning of codes, or `ALL`; lists with commas too."""
    found: set[str] = set()
    for word in (part.strip() for listed in words for part in listed.split(",")):
        if not word:
            continue
        prefixed = {code for code in NAMES if word.upper().startswith("SHD") and code.startswith(word.upper())}
        found |= set(NAMES) if word.upper() == ALL else prefixed or {code_of(word)}
    return frozenset(found)


def _unknown(word: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(word.upper(), NAMES, n=3) or get_close_matches(word.lower(), _BY_NAME, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`sharddsl rule` lists all"
    return UsageError(f"no finding has the code or name `{word}`; {hint}")
