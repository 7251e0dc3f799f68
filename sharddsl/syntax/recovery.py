"""Reading a text that does not parse as a whole: statement by statement, each by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from lark import Token, UnexpectedInput
from lark.exceptions import UnexpectedToken

from sharddsl.findings import NOWHERE, Finding, Span
from sharddsl.syntax import tree
from sharddsl.syntax.messages import Stop, explain
from sharddsl.syntax.pieces import Piece, body, code_end, innermost, split, unpaired
from sharddsl.syntax.places import Lines
from sharddsl.syntax.problem import Problem, syntax_error
from sharddsl.syntax.table import parser

MAX_FINDINGS = 50
"""So many syntax errors are told one by one; of further ones only the number."""


_ENOUGH = 1000
"""So many further errors are counted; after them the text is not read on. It is no spec."""

_DEEPEST = 8
"""Blocks within blocks are searched for errors of their own to this depth; below it, a block has one error at most."""


def recover(text: str, source: str) -> tuple[tree.File, tuple[Finding, ...]]:
    """The statements that can be read, and the errors of the others, in order. `text` has LF newlines."""
    reader = _Reader(text, source)
    statements = tuple(reader.statements(Piece(0, len(text)), _FILE))
    span = statements[0].span.to(statements[-1].span) if statements else NOWHERE
    return tree.File(statements, span=span), reader.findings()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where statements stand: which kinds may, and how that place is called."""

    kinds: tuple[type[tree.Node], ...]
    name: str


_FILE = _Place((tree.Node,), "a file")
_BODY = _Place((tree.Rule, tree.Block, tree.When), "a block, which holds rules, blocks and `when`")
_CHECK = _Place((tree.Expect,), "a check, which holds `expect`")


class _Reader:
    """Reads statements of one text, and keeps what there is to say about those that cannot be read."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._lines = Lines(text)
        self._unpaired = unpaired(text)
        self._lark = parser()
        self._found: list[Finding] = []
        self._more: list[Span] = []

    def findings(self) -> tuple[Finding, ...]:
        if not self._more:
            return tuple(self._found)
        count = len(self._more)
        how_many = f"{count}" if count < _ENOUGH else f"{count} or more"
        message = f"further syntax errors, in {how_many} statement{'s' if count > 1 else ''}: the first is here"
        return (*self._found, syntax_error(message, self._more[0], self._source))

    def statements(self, where: Piece, place: _Place, depth: int = 0) -> list[tree.Statement]:
        """What can be read there; the rest becomes findings."""
        read: list[tree.Statement] = []
        for piece in split(self._text, where, self._unpaired):
            if len(self._more) >= _ENOUGH:
                break
            for statement in self._piece(piece, depth):
                if isinstance(statement, place.kinds):
                    read.append(statement)
                else:
                    self._say(f"this statement cannot stand in {place.name}", statement.span)
        return read

    def _piece(self, piece: Piece, depth: int) -> tuple[tree.Statement, ...]:
        try:
            return self._parse(piece, self._text[piece.start : piece.end])
        except (Problem, _Stopped) as error:
            inner = self._within(piece, depth) if depth < _DEEPEST else None
            if inner is not None:
                return inner
            self._tell(error, piece)
            return ()

    def _within(self, piece: Piece, depth: int) -> tuple[tree.Statement, ...] | None:
        """The statement with a body, read without it, and then with those statements of the body that can be read.

        None, and no finding, where the error is not in the body alone.
        """
        inside = body(self._text, piece, self._unpaired)
        if inside is None:
            return None
        try:
            read = self._parse(piece, self._text[piece.start : inside.start] + "}")
        except (Problem, _Stopped):
            return None
        head = read[0]
        if not isinstance(head, tree.Block | tree.When | tree.Check):
            return None
        said = len(self._found) + len(self._more)
        statements = tuple(self.statements(inside, _CHECK if isinstance(head, tree.Check) else _BODY, depth + 1))
        if said == len(self._found) + len(self._more):
            return None
        span = head.span.to(self._lines.span(inside.end, inside.end + 1))
        return (replace(head, body=statements, span=span),)  # type: ignore[arg-type]

    def _parse(self, piece: Piece, text: str) -> tuple[tree.Statement, ...]:
        """The statements of one piece. Its first token stands where the piece begins."""
        interactive = self._parser(piece, text)
        last: Token | None = None
        read = 0
        try:
            for token in interactive.lexer_thread.lex(interactive.parser_state):
                last = token
                interactive.feed_token(token)
                read += 1
            file: tree.File = interactive.feed_eof(last)
        except UnexpectedInput as error:
            token = error.token if isinstance(error, UnexpectedToken) else None
            at_end = token is not None and token.type == "$END"
            offset = len(text) if at_end or error.pos_in_stream is None else error.pos_in_stream
            raise _Stopped(offset, read) from None
        return file.statements

    def _accepted(self, piece: Piece, text: str, read: int) -> frozenset[str]:
        """The terminals that could stand behind the first `read` tokens of a piece.

        They are read anew: the token that failed has led the parser astray by then, to a state that expects less.
        """
        interactive = self._parser(piece, text)
        for token in islice(interactive.lexer_thread.lex(interactive.parser_state), read):
            interactive.feed_token(token)
        return frozenset(interactive.accepts())

    def _parser(self, piece: Piece, text: str) -> Any:
        """A parser of this text that can be driven token by token. (Lark leaves most of its methods untyped.)"""
        interactive: Any = self._lark.parse_interactive(text)
        counter = interactive.lexer_thread.state.line_ctr
        counter.line, counter.column = self._lines.at(piece.start)
        counter.line_start_pos = 1 - counter.column
        return interactive

    def _tell(self, error: Problem | _Stopped, piece: Piece) -> None:
        if len(self._found) >= MAX_FINDINGS:
            self._more.append(self._lines.span(piece.start, piece.start + 1))
        elif isinstance(error, Problem):
            self._say(error.message, error.span, error.remedy)
        else:
            text = self._text[piece.start : piece.end]
            accepted = self._accepted(piece, text, error.read)
            if error.offset >= len(text):
                text = text[: code_end(text)]
            offset = min(error.offset, len(text))
            words = explain(Stop(text, offset, accepted, innermost(text, offset)))
            self._say(words.message, self._lines.span(piece.start + words.start, piece.start + words.end), words.remedy)

    def _say(self, message: str, span: Span, remedy: str | None = None) -> None:
        if len(self._found) >= MAX_FINDINGS:
            self._more.append(span)
        else:
            self._found.append(syntax_error(message, span, self._source, remedy))


class _Stopped(Exception):
    """The parser met a token that it did not accept, at this offset, after so many that it did."""

    def __init__(self, offset: int, read: int) -> None:
        self.offset = offset
        self.read = read
        super().__init__(offset)
