"""One statement, or the head of one that has a body, as lines: on one if it fits and no comment stands inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sharddsl.syntax import tree
from sharddsl.syntax.lines import Line
from sharddsl.syntax.tokens import CLOSE, OPEN, Context, Token, spaced

WIDEST = 100
"""Columns. What is longer has its brackets broken, an entry a line."""


def on_a_line(here: Sequence[Token], statement: tree.Statement) -> str:
    """The tokens, none of which is a comment, on one line."""
    words = _without_commas_at_the_end(here)
    return "".join(spaced([token.text for token in words], _contexts(words, statement)))


def broken(here: Sequence[Token], text: str, statement: tree.Statement, depth: int) -> list[Line]:
    """The tokens as lines. A rule on one line has its pattern and colon as the line's head."""
    if not any(token.is_comment for token in here):
        line = on_a_line(here, statement)
        if len(line) + 2 * depth <= WIDEST or not _brackets(here, statement):
            return [_one(line, here, statement, depth)]
    return list(_Breaker(here, text, statement, depth).lines())


def _one(line: str, here: Sequence[Token], statement: tree.Statement, depth: int) -> Line:
    if not isinstance(statement, tree.Rule):
        return Line(depth, line)
    words = _without_commas_at_the_end(here)
    colon = _contexts(words, statement).index("list")
    head = on_a_line(words[: colon + 1], statement)
    return Line(depth, line[len(head) :].lstrip(), head)


def _without_commas_at_the_end(here: Sequence[Token]) -> list[Token]:
    """The tokens without those commas that nothing comes after, or a bracket that closes."""
    return [
        token
        for token, after in zip(here, [*here[1:], None], strict=True)
        if not (token.text == "," and (after is None or after.text in CLOSE))
    ]


def _contexts(here: Sequence[Token], statement: tree.Statement) -> list[Context]:
    """Where each token of a statement stands."""
    match statement:
        case tree.Let():
            return [*_all("statement", 3), *_all("list", len(here) - 3)]
        case tree.Rule():
            return _until(":", here)
        case tree.Block():
            return [*_all("pattern", len(here) - 1), "list"]
        case tree.When():
            return [*_in_expression(here[:-1]), "list"]
        case tree.Expect():
            return _in_expression(here)
        case _:
            return _all("list", len(here))


def _all(context: Context, count: int) -> list[Context]:
    return [context] * count


def _until(mark: str, here: Sequence[Token]) -> list[Context]:
    """A pattern up to this mark outside of brackets, and what follows."""
    contexts: list[Context] = []
    context: Context = "pattern"
    depth = 0
    for token in here:
        if token.text == mark and depth == 0:
            context = "list"
        depth += (token.text in OPEN) - (token.text in CLOSE)
        contexts.append(context)
    return contexts


def _in_expression(here: Sequence[Token]) -> list[Context]:
    """An expression, and the patterns that are its arguments: `of=act.mlp.*`."""
    contexts: list[Context] = []
    depth = 0
    pattern: int | None = None
    for token in here:
        if pattern is not None and (
            (token.text == "," and depth == pattern) or (token.text == ")" and depth == pattern)
        ):
            pattern = None
        contexts.append("expression" if pattern is None else "pattern")
        depth += (token.text in OPEN) - (token.text in CLOSE)
        if token.text == "=":
            pattern = depth
    return contexts


def _brackets(here: Sequence[Token], statement: tree.Statement) -> list[int]:
    """The outermost brackets that entries stand in, by the number of the token that opens each."""
    found, depth = [], 0
    for at, (token, context) in enumerate(zip(here, _contexts(here, statement), strict=True)):
        if context == "list" and depth == 0 and token.text in ("[", "{") and at < len(here) - 1:
            found.append(at)
        depth += (token.text in OPEN) - (token.text in CLOSE)
    return found


@dataclass
class _Breaker:
    """Writes the tokens of one statement, and begins a line where one is due."""

    here: Sequence[Token]
    text: str
    statement: tree.Statement
    depth: int
    _line: list[str] = field(default_factory=list)
    _line_depth: int = 0
    _begun: bool = False
    _inside: list[bool] = field(default_factory=list)
    """For each bracket that is open, whether its entries stand on lines of their own."""

    def lines(self) -> Iterator[Line]:
        """The lines; those between the first and the last align their comments."""
        words = _without_commas_at_the_end([token for token in self.here if not token.is_comment])
        contexts = _contexts(words, self.statement)
        pieces = dict(zip(words, spaced([word.text for word in words], contexts), strict=True))
        following = dict(zip(words, [*(word.text for word in words[1:]), ""], strict=True))
        brackets = {word for word, context in zip(words, contexts, strict=True) if context == "list"}
        broken = self._broken(words) & brackets
        group = object()
        due = False
        for before, token in zip([None, *self.here], self.here, strict=False):
            if token.is_comment:
                if before is not None and "\n" in self.text[before.end : token.start]:
                    yield from self._flush(group)
                yield from self._flush(group, token.text)
                due = False
                continue
            if token not in pieces:
                continue
            closes = token in brackets and token.text in CLOSE and self._inside.pop()
            if due or closes:
                yield from self._flush(group)
            self._write(pieces[token], closes=closes)
            if token in brackets and token.text in OPEN:
                self._inside.append(token in broken)
                due = token in broken
                continue
            entries = bool(self._inside) and self._inside[-1]
            if entries and following[token] in CLOSE and following[token]:
                self._line.append(",")
            due = entries and token.text == ","
        yield from self._flush(group)

    def _broken(self, words: Sequence[Token]) -> set[Token]:
        """The brackets that hold comments; where there are no comments, and the line is too long, the outermost."""
        found: set[Token] = set()
        opened: list[Token] = []
        for token in self.here:
            if token.is_comment:
                found.update(opened)
            elif token.text in OPEN:
                opened.append(token)
            elif token.text in CLOSE:
                opened.pop()
        if any(token.is_comment for token in self.here):
            return {token for token in found if token.text != "("}
        return {words[at] for at in _brackets(words, self.statement)}

    def _write(self, piece: str, *, closes: bool) -> None:
        if not self._line:
            goes_on = self._begun and not closes and not any(self._inside)
            self._line_depth = self.depth + sum(self._inside) + goes_on
            piece = piece.lstrip()
        self._begun = True
        self._line.append(piece)

    def _flush(self, group: object, comment: str = "") -> Iterator[Line]:
        """The line that is under way, if there is one, with this comment; else the comment by itself."""
        if self._line:
            own = group if self._line_depth > self.depth else None
            yield Line(self._line_depth, "".join(self._line), comment=comment, group=own)
            self._line.clear()
        elif comment:
            yield Line(self.depth + max(1, sum(self._inside)), "", comment=comment, group=group)
