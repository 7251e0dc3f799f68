"""From text to tree, with every syntax error of the text in one run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from lark import Token, UnexpectedInput
from lark.exceptions import UnexpectedToken

from sharddsl.findings import NOWHERE, Finding, Location, Span
from sharddsl.syntax import tree
from sharddsl.syntax.messages import Stop, explain
from sharddsl.syntax.pieces import Lines, Piece, body, comments, innermost, split
from sharddsl.syntax.problem import MAX_NESTING, Problem
from sharddsl.syntax.table import parser

MAX_CHARACTERS = 2_000_000
"""The longest text that is read: 40,000 rules and more. A longer one is some other file."""

MAX_FINDINGS = 50
"""So many syntax errors are told one by one; of further ones only the number."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The statements that could be read, and a finding for each that could not."""

    file: tree.File
    findings: tuple[Finding, ...] = ()


def decode(data: bytes, source: str) -> tuple[str, tuple[Finding, ...]]:
    """The text of a file's bytes, which are UTF-8, with or without a byte-order mark. Anything else is one finding."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    try:
        text = data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        return "", (_not_text(f"not UTF-8 text: {error.reason} at byte {start + error.start}", source),)
    if "\0" in text:
        at = start + len(text[: text.index("\0")].encode())
        return "", (_not_text(f"not a text file: a zero byte at byte {at}", source),)
    return text, ()


def parse(text: str, source: str = "<text>") -> Parsed:
    """The tree of `text`, and its syntax errors (SHD001) in the order of their places. Never raises on any text.

    Lines end with LF, CRLF or CR. `source` is what findings call the text: a file's path, or an option's name.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"too long: {len(text):,} characters, and a spec may have {MAX_CHARACTERS:,}"
        return Parsed(tree.File(()), (_finding(message, Span(1, 1, 1, 2), source),))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        file = _whole(text)
        findings: tuple[Finding, ...] = ()
    except (Problem, UnexpectedInput):
        reader = _Reader(text, source)
        statements = reader.statements(Piece(0, len(text)), _FILE)
        span = statements[0].span.to(statements[-1].span) if statements else NOWHERE
        file = tree.File(tuple(statements), span=span)
        findings = reader.findings()
    return Parsed(replace(file, comments=comments(text)), findings)


def parse_rule(text: str, source: str) -> tuple[tree.Rule | None, tuple[Finding, ...]]:
    """The one rule that `text` holds, as an option of the command line gives it, or why it is none."""
    parsed = parse(text, source)
    if parsed.findings:
        return None, parsed.findings
    match parsed.file.statements:
        case (tree.Rule() as rule,):
            return rule, ()
        case ():
            return None, (_finding("expected a rule, found nothing", Span(1, 1, 1, 2), source, _RULE_FORM),)
        case (tree.Rule(), second, *_):
            return None, (_finding("expected one rule, found more", second.span, source, _RULE_FORM),)
        case (first, *_):
            return None, (_finding("expected a rule, found another statement", first.span, source, _RULE_FORM),)
    raise AssertionError("every sequence of statements is one of these")


_RULE_FORM = "a rule is a pattern, `:` and a layout: `attn.wq: [fsdp, mp]`"


def _whole(text: str) -> tree.File:
    file: tree.File = parser().parse(text)  # type: ignore[assignment]
    return file


@dataclass(frozen=True, slots=True)
class _Place:
    """Where statements stand: which kinds may, and how that place is called."""

    kinds: tuple[type[tree.Node], ...]
    name: str


_FILE = _Place((tree.Node,), "a file")
_BODY = _Place((tree.Rule, tree.Block, tree.When), "a block, which holds rules, blocks and `when`")
_CHECK = _Place((tree.Expect,), "a check, which holds `expect`")


class _Reader:
    """Reads the statements of a text that does not parse as a whole, each by itself."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._lines = Lines(text)
        self._lark = parser()
        self._found: list[Finding] = []
        self._more: list[Span] = []

    def findings(self) -> tuple[Finding, ...]:
        if not self._more:
            return tuple(self._found)
        count = len(self._more)
        message = f"{count} more statement{'s' if count > 1 else ''} with a syntax error, the first of them here"
        return (*self._found, _finding(message, self._more[0], self._source))

    def statements(self, where: Piece, place: _Place, depth: int = 0) -> list[tree.Statement]:
        """What can be read there; the rest becomes findings."""
        read: list[tree.Statement] = []
        for piece in split(self._text, where.start, where.end):
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
            inner = self._within(piece, depth) if depth < MAX_NESTING else None
            if inner is not None:
                return inner
            self._tell(error, piece)
            return ()

    def _within(self, piece: Piece, depth: int) -> tuple[tree.Statement, ...] | None:
        """The statement with a body, read without it, and then with those statements of the body that can be read.

        None, and no finding, where the error is not in the body alone.
        """
        inside = body(self._text, piece)
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
        interactive: Any = self._lark.parse_interactive(text)  # Lark leaves most of its methods untyped
        lexer: Any = interactive.lexer_thread
        counter = lexer.state.line_ctr
        counter.line, counter.column = self._lines.at(piece.start)
        counter.line_start_pos = 1 - counter.column
        last: Token | None = None
        try:
            for token in lexer.lex(interactive.parser_state):
                last = token
                interactive.feed_token(token)
            file: tree.File = interactive.feed_eof(last)
        except UnexpectedInput as error:
            token = error.token if isinstance(error, UnexpectedToken) else None
            at_end = token is not None and token.type == "$END"
            offset = len(text) if at_end or error.pos_in_stream is None else error.pos_in_stream
            raise _Stopped(offset, frozenset(interactive.accepts())) from None
        return file.statements

    def _tell(self, error: Problem | _Stopped, piece: Piece) -> None:
        if len(self._found) >= MAX_FINDINGS:
            self._more.append(self._lines.span(piece.start, piece.start + 1))
        elif isinstance(error, Problem):
            self._say(error.message, error.span, error.remedy)
        else:
            text = self._text[piece.start : piece.end]
            offset = min(error.offset, len(_CODE_END.sub("", text))) if error.offset >= len(text) else error.offset
            words = explain(Stop(text, offset, error.accepted, innermost(text, offset)))
            self._say(words.message, self._lines.span(piece.start + words.start, piece.start + words.end), words.remedy)

    def _say(self, message: str, span: Span, remedy: str | None = None) -> None:
        if len(self._found) >= MAX_FINDINGS:
            self._more.append(span)
        else:
            self._found.append(_finding(message, span, self._source, remedy))


_CODE_END = re.compile(r"(?:\s+|#[^\n]*)+$")


class _Stopped(Exception):
    """The parser met a token that it did not accept."""

    def __init__(self, offset: int, accepted: frozenset[str]) -> None:
        self.offset = offset
        self.accepted = accepted
        super().__init__(offset)


def _not_text(message: str, source: str) -> Finding:
    return _finding(message, NOWHERE, source, "a spec is a UTF-8 text file")


def _finding(message: str, span: Span, source: str, remedy: str | None = None) -> Finding:
    return Finding("SHD001", "error", message, Location(source, span), remedy)
