"""Many globs matched at once against one piece of text, in time that grows with the text and not with the globs.

A glob is literal text with `*` (zero or more characters) and `{a,b}` (one of these, which may hold `*` too). All globs
of a set are compiled into one nondeterministic automaton (Thompson 1968), whose deterministic states are made when a
text first needs them and kept. Nothing backtracks: a text of n characters takes n steps at most, whatever the globs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

GLOB_CHARACTERS = frozenset("*{}")


def is_glob(text: str) -> bool:
    """Whether this segment says more than its own text."""
    return not GLOB_CHARACTERS.isdisjoint(text)


def groups(text: str) -> list[tuple[int, int, list[str]]]:
    """The `{…}` groups of a glob: where each begins and ends (exclusive), and its alternatives. A brace without its
    partner is ordinary text."""
    found: list[tuple[int, int, list[str]]] = []
    start = text.find("{")
    while start >= 0:
        end = text.find("}", start)
        if end < 0:
            break
        found.append((start, end + 1, [part.strip() for part in text[start + 1 : end].split(",")]))
        start = text.find("{", end)
    return found


@dataclass
class _State:
    """A deterministic state: the automaton's positions it stands for, and the globs that end here."""

    positions: frozenset[int]
    ended: frozenset[int]
    after: dict[str, _State] = field(default_factory=dict)


class GlobSet:
    """`GlobSet(["w_*", "{q,k}"]).match("w_in")` is {0}: the numbers of the globs that match the whole text."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._step: list[tuple[str | None, int]] = []  # per position: the character taken (None: any) and what follows
        self._free: list[tuple[int, ...]] = []  # per position: where one may go without taking a character
        self._ends: dict[int, int] = {}
        starts = [self._compile(number, glob) for number, glob in enumerate(globs)]
        self._states: dict[frozenset[int], _State] = {}
        self._start = self._state(starts)
        self._known: dict[str, frozenset[int]] = {}

    def match(self, text: str) -> frozenset[int]:
        """The numbers of the globs that match this text from its first character to its last."""
        known = self._known.get(text)
        if known is None:
            state = self._start
            for character in text:
                state = state.after.get(character) or self._follow(state, character)
            known = self._known[text] = state.ended
        return known

    # ------------------------------------------------------------------------------------------ deterministic states

    def _follow(self, state: _State, character: str) -> _State:
        taken = []
        for position in state.positions:
            wanted, then = self._step[position]
            if then >= 0 and (wanted is None or wanted == character):
                taken.append(then)
        following = state.after[character] = self._state(taken)
        return following

    def _state(self, positions: Iterable[int]) -> _State:
        reached: set[int] = set()
        waiting = list(positions)
        while waiting:
            position = waiting.pop()
            if position not in reached:
                reached.add(position)
                waiting += self._free[position]
        key = frozenset(reached)
        if key not in self._states:
            self._states[key] = _State(key, frozenset(self._ends[p] for p in key if p in self._ends))
        return self._states[key]

    # ---------------------------------------------------------------------------------------------------- compilation

    def _position(self) -> int:
        self._step.append((None, -1))
        self._free.append(())
        return len(self._step) - 1

    def _compile(self, number: int, glob: str) -> int:
        """Add one glob; its first position."""
        first = at = self._position()
        cursor = 0
        for start, end, alternatives in groups(glob):
            at = self._chain(glob[cursor:start], at)
            joined = self._position()
            for alternative in alternatives:
                begin = self._position()
                self._free[at] += (begin,)
                self._free[self._chain(alternative, begin)] += (joined,)
            at, cursor = joined, end
        self._ends[self._chain(glob[cursor:], at)] = number
        return first

    def _chain(self, text: str, at: int) -> int:
        """Positions for text without groups, from `at` on; the last of them."""
        for character in text:
            following = self._position()
            if character == "*":
                self._free[at] += (following,)
                self._step[following] = (None, following)
                onward = self._position()
                self._free[following] += (onward,)
                following = onward
            else:
                self._step[at] = (character, following)
            at = following
        return at
