"""The one style of a `.shard` text: `sharddsl fmt`.

Words and comments stay as they are and where they are; spaces, ends of lines and commas before a closing bracket are
the formatter's. It works on tokens, since the tree holds neither comments nor how a number was written; the tree says
where statements begin and end. What comes out is proved: the same tree, the same comments, and no change on a second
run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sharddsl.findings import ShardError
from sharddsl.syntax import tree
from sharddsl.syntax.breaking import WIDEST, broken, on_a_line
from sharddsl.syntax.lines import Line, aligned
from sharddsl.syntax.parse import parse
from sharddsl.syntax.tokens import Token, tokens


def formatted(text: str, source: str = "<text>") -> str:
    """The text in the one style; an empty text stays empty. Raises `ShardError` where it has syntax errors."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    file = _parsed(text, source)
    once = _written(file, text)
    if once == text:
        return text
    again = _parsed(once, source)
    if again != file or [c.text for c in again.comments] != [c.text for c in file.comments]:
        raise AssertionError(f"{source}: formatting would change what the text says")
    if _written(again, once) != once:
        raise AssertionError(f"{source}: formatting twice would not be as once")
    return once


def _parsed(text: str, source: str) -> tree.File:
    parsed = parse(text, source)
    if parsed.findings:
        raise ShardError(parsed.findings, {source: text})
    return parsed.file


def _written(file: tree.File, text: str) -> str:
    return "".join(f"{line}\n" for line in aligned(_Formatter(text).lines(file)))


class _Formatter:
    """Walks the statements of one text, and its tokens with them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._at = 0
        """The first token that is not written yet."""

    def lines(self, file: tree.File) -> Iterator[Line]:
        yield from self._body(file.statements, 0, len(self._text))

    # ------------------------------------------------------------------------------------------------------ statements

    def _body(self, statements: Sequence[tree.Statement], depth: int, end: int) -> Iterator[Line]:
        """The statements of a body that ends at this offset, with the comments between them."""
        first = True
        group: object = object()
        for statement in statements:
            start, stop = self._offsets(statement)
            for line in self._comments(start, depth, first):
                yield line
                first = False
            blank = not first and self._blank_before()
            for line in self._statement(statement, depth, start, stop, group):
                yield replace(line, blank=blank or line.blank)
                blank = first = False
        yield from self._comments(end, depth, first)

    def _comments(self, before: int, depth: int, first: bool) -> Iterator[Line]:
        """The lines of comment up to this offset."""
        while self._at < len(self._tokens) and self._tokens[self._at].start < before:
            token = self._tokens[self._at]
            blank = not first and self._blank_before()
            self._at += 1
            first = False
            yield Line(depth, "", comment=token.text, blank=blank)

    def _blank_before(self) -> bool:
        """Whether an empty line stands before the next token."""
        between = self._text[self._tokens[self._at - 1].end : self._tokens[self._at].start]
        return between.count("\n") > 1

    def _statement(self, statement: tree.Statement, depth: int, start: int, stop: int, group: object) -> Iterator[Line]:
        match statement:
            case tree.Block(body=body) | tree.When(body=body):
                yield from self._with_body(statement, body, depth, stop, group)
            case tree.Check(body=expects) if expects or self._text[stop - 1] == "}":
                yield from self._with_body(statement, expects, depth, stop, group)
            case tree.Rule():
                yield from self._simple(statement, depth, stop, group)
            case _:
                yield from self._simple(statement, depth, stop, None)

    def _with_body(
        self, statement: tree.Statement, body: Sequence[tree.Statement], depth: int, stop: int, group: object
    ) -> Iterator[Line]:
        opens = self._body_opens(body, stop)
        on_a_line = self._on_a_line(statement, body, stop, opens)
        if on_a_line is not None and len(on_a_line) + 2 * depth <= WIDEST:
            self._take(stop)
            yield Line(depth, on_a_line, comment=self._trailing())
            return
        yield from self._ended(broken(self._take(self._tokens[opens].end), self._text, statement, depth))
        yield from self._body(body, depth + 1, stop - 1)
        self._take(stop)
        yield Line(depth, "}", comment=self._trailing())

    def _simple(self, statement: tree.Statement, depth: int, stop: int, group: object) -> Iterator[Line]:
        lines = broken(self._take(stop), self._text, statement, depth)
        yield from self._ended(lines if len(lines) > 1 else [replace(lines[0], group=group)])

    def _ended(self, lines: Sequence[Line]) -> Iterator[Line]:
        """The lines, the last one with the comment behind it."""
        *before, last = lines
        yield from before
        yield replace(last, comment=last.comment or self._trailing())

    # ---------------------------------------------------------------------------------------------------------- tokens

    def _offsets(self, node: tree.Node) -> tuple[int, int]:
        span = node.span
        return self._starts[span.line - 1] + span.column - 1, self._starts[span.end_line - 1] + span.end_column - 1

    def _take(self, stop: int) -> list[Token]:
        """The tokens up to this offset, comments among them."""
        taken = []
        while self._at < len(self._tokens) and self._tokens[self._at].start < stop:
            taken.append(self._tokens[self._at])
            self._at += 1
        return taken

    def _trailing(self) -> str:
        """The comment behind the last token on its line, which is taken; or nothing."""
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.is_comment and "\n" not in self._text[self._tokens[self._at - 1].end : token.start]:
                self._at += 1
                return token.text
        return ""

    def _body_opens(self, body: Sequence[tree.Statement], stop: int) -> int:
        """Which token is the brace that opens the body: the last one before what the body holds."""
        limit = self._offsets(body[0])[0] if body else stop - 1
        return max(
            at
            for at in range(self._at, len(self._tokens))
            if self._tokens[at].start < limit and self._tokens[at].text == "{"
        )

    def _on_a_line(
        self, statement: tree.Statement, body: Sequence[tree.Statement], stop: int, opens: int
    ) -> str | None:
        """The statement on one line, where it has one rule at most and the author has it so."""
        here = self._tokens[self._at : bisect_left(self._tokens, stop, key=lambda token: token.start)]
        several = len(body) > 1 or any(not isinstance(inner, tree.Rule | tree.Expect) for inner in body)
        if several or any(token.is_comment for token in here) or "\n" in self._text[here[0].start : stop]:
            return None
        head = on_a_line(here[: opens - self._at + 1], statement)
        inside = here[opens - self._at + 1 : -1]
        return f"{head} {on_a_line(inside, body[0])} }}" if body else f"{head}}}"
