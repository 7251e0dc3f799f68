"""The answers of `sharddsl generate` on stdout, one after the other, while all of them grow at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharddsl.llama.tokenizer import TextStream


@dataclass
class Answer:
    """One prompt, as text and as tokens, and its answer: `text` is what has arrived of it and is not printed yet."""

    prompt: str
    tokens: list[int]
    stream: TextStream
    text: str = ""
    done: bool = False

    def add(self, token: int | None) -> None:
        if token is None:
            self.finish()
        else:
            self.text += self.stream.push(token)

    def finish(self) -> None:
        if not self.done:
            self.text += self.stream.finish()
            self.done = True


class Page:
    """Answers on stdout, one after the other, a blank line between them and, if `headed`, each under its prompt. The
    first that is not done streams; those behind it wait their turn."""

    def __init__(self, rows: list[Answer], headed: bool = True) -> None:
        self._rows = rows
        self._headed = headed
        self._at = 0
        self._open()

    def add(self, tokens: Sequence[int | None]) -> None:
        for row, token in zip(self._rows, tokens, strict=True):
            row.add(token)
        self._print()

    def finish(self) -> None:
        """No more tokens come."""
        for row in self._rows:
            row.finish()
        self._print()

    def _print(self) -> None:
        while self._at < len(self._rows):
            row = self._rows[self._at]
            sys.stdout.write(row.text)
            row.text = ""
            if not row.done:
                break
            sys.stdout.write("\n")
            self._at += 1
            self._open()
        sys.stdout.flush()

    def _open(self) -> None:
        """What sets an answer apart from the one before, where there are several."""
        if len(self._rows) > 1 and self._at < len(self._rows):
            sys.stdout.write("\n" if self._at else "")
            if not self._headed:
                return
            lines = self._rows[self._at].prompt.splitlines()
            more = " …" if len(lines) > 1 else ""
            sys.stdout.write(f"[{self._at + 1}/{len(self._rows)}] {lines[0]}{more}\n")
