"""Which newlines end a statement: the step between the lexer and the parser."""

from __future__ import annotations

from collections.abc import Iterator

from lark import Token

from sharddsl.findings import Span
from sharddsl.syntax.problem import MAX_NAME, MAX_NESTING, Problem

_CLOSERS = frozenset({"RSQB", "RPAR", "RBRACE"})
_BODY = "BODY"
_OPERATORS = frozenset({"OR", "AND", "NOT", "COMPARISON", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})
_NUMBERS = frozenset({"INT", "SIGNED", "NUMBER"})
_NEEDS_MORE = _OPERATORS | {"LBRACE", "COMMA", "COLON", "EQUAL", "DOT", "AT", "LSQB", "LPAR"}
"""Tokens that need another one behind them: a newline after one of these does not count."""


class Newlines:
    """A Lark post-lexer. It drops each NEWLINE that cannot end a statement, and refuses what nests too
    deep and names that are too long.

    It looks back only: a look ahead would lex the next token in the parser's previous state.
    """

    always_accept = ("NEWLINE",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        opened: list[str] = []  # the open brackets; `_BODY` for a brace that holds statements
        previous = "NEWLINE"
        operators = 0
        for token in stream:
            kind = token.type
            if kind == "NEWLINE":
                if previous == "NEWLINE" or previous in _NEEDS_MORE or (opened and opened[-1] != _BODY):
                    continue
                operators = 0
            elif kind in ("LSQB", "LPAR", "LBRACE"):
                # After `:` or `=` a brace holds a layout, elsewhere statements.
                statements = kind == "LBRACE" and previous not in ("COLON", "EQUAL")
                opened.append(_BODY if statements else kind)
                operators = 0 if statements else operators
                if len(opened) > MAX_NESTING:
                    raise Problem(f"brackets nest more than {MAX_NESTING} deep", span_of(token))
            elif kind in _CLOSERS:
                if opened:
                    opened.pop()
            elif kind in _OPERATORS:
                # In a layout `*` and commas alternate: only an expression comes this far without a comma outside `()`.
                operators += 1
                if operators > MAX_NESTING:
                    raise Problem(f"more than {MAX_NESTING} operators in one expression", span_of(token))
            elif kind == "COMMA" and opened[-1:] != ["LPAR"]:
                operators = 0
            elif len(token) > MAX_NAME and kind not in _NUMBERS:
                raise Problem(f"a name of {len(token):,} characters: at most {MAX_NAME:,} are read", span_of(token))
            previous = kind
            yield token


def span_of(token: Token) -> Span:
    """Where a token stands. (Lark's counts are None only for tokens that no lexer made.)"""
    return Span(token.line or 0, token.column or 0, token.end_line or 0, token.end_column or 0)
