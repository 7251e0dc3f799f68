"""A text as tokens with what the formatter wants of each: its place, and whether a space stands before it.

They are finer than the parser's: a glob is several here, so that the tokens of a text and of the same text spaced
otherwise are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Context = Literal["statement", "list", "pattern", "expression"]
"""Where a token stands: among a statement's first words, in what brackets hold and what follows it, in a pattern, or in
an expression."""

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\["\\])*"|#[^\n]*|[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?(?!\w)|[0-9]+[eE][+-]?[0-9]+(?!\w)|\w+'
    r"|\.\.\.|\.\.|\*\*|[=!<>]=|[^\s]"
)

_UNIT = re.compile(r"^([0-9]+)([A-Za-z]+)$")

OPEN = frozenset("([{")
CLOSE = frozenset(")]}")
_OPERATORS = frozenset({"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"})
_KEYWORDS = frozenset({"and", "or", "not", "when", "expect"})


@dataclass(frozen=True, slots=True)
class Token:
    """`start` and `end` are offsets in the text."""

    text: str
    start: int
    end: int

    @property
    def is_comment(self) -> bool:
        return self.text.startswith("#")

    @property
    def is_word(self) -> bool:
        return self.text[0] == '"' or self.text[0].isalnum() or self.text[0] == "_"


def tokens(text: str) -> Iterator[Token]:
    """All tokens of a text, comments among them."""
    for match in _TOKEN.finditer(text):
        yield Token(match[0].rstrip() if match[0].startswith("#") else match[0], match.start(), match.end())


def spaced(words: Sequence[str], contexts: Sequence[Context]) -> list[str]:
    """Each token's text with the space before it, if one belongs there."""
    out: list[str] = []
    for at, (word, context) in enumerate(zip(words, contexts, strict=True)):
        before = words[at - 1] if at else ""
        unary = context == "expression" and before == "-" and _is_sign(words, at - 1)
        apart = at and not unary and _apart(before, word, context, contexts[at - 1])
        out.append(" " * bool(apart) + (_UNIT.sub(r"\1 \2", word) if context == "expression" else word))
    return out


def _is_sign(words: Sequence[str], at: int) -> bool:
    """Whether the minus there has nothing on its left to be taken from."""
    before = words[at - 1] if at else ""
    return before in _OPERATORS or before in _KEYWORDS or before in ("(", ",", "=", "")


def _apart(before: str, word: str, context: Context, former: Context) -> bool:
    if word in (",", ")", "]", ":", "?") or before in ("(", "["):
        return False
    if before == "," or "statement" in (context, former):
        return True
    if context == "pattern" and former == "pattern":
        return False
    if context == "expression":
        return _apart_in_expression(before, word)
    if word == "}" or before == "{":
        return False
    if word == "@" or before == ":":
        return True
    if before == "@" or "=" in (before, word) or before == "-":
        return False
    return word != "("


def _apart_in_expression(before: str, word: str) -> bool:
    if "=" in (before, word) or "." in (before, word):  # an argument's `over=mp`, a dotted name
        return False
    return not (word == "(" and before not in _OPERATORS and before not in _KEYWORDS)
