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
class _Position:
    """A place in the globs, those with a common beginning together: by which character one goes on, the position over
    any character (`*`), those reached without one (alternatives), and the globs that end here."""

    step: dict[str, int] = field(default_factory=dict)
    star: int | None = None
    loops: bool = False
    free: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


@dataclass
class _State:
    """A deterministic state: the positions it stands for, and the globs that end here."""

    positions: frozenset[int]
    ended: frozenset[int]
    after: dict[str, _State] = field(default_factory=dict)


class GlobSet:
    """`GlobSet(["w_*", "{q,k}"]).match("w_in")` is {0}: the numbers of the globs that match the whole text."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._positions = [_Position()]
        for number, glob in enumerate(globs):
            self._compile(number, glob)
        self._states: dict[frozenset[int], _State] = {}
        self._start = self._state({0})
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
        reached: set[int] = set()
        for number in state.positions:
            position = self._positions[number]
            if position.loops:
                reached.add(number)
            following = position.step.get(character)
            if following is not None:
                reached.add(following)
        state.after[character] = self._state(reached)
        return state.after[character]

    def _state(self, reached: set[int]) -> _State:
        waiting = list(reached)
        while waiting:
            position = self._positions[waiting.pop()]
            onward = position.free if position.star is None else [position.star, *position.free]
            waiting += [number for number in onward if number not in reached]
            reached.update(onward)
        key = frozenset(reached)
        if key not in self._states:
            self._states[key] = _State(key, frozenset(end for number in key for end in self._positions[number].ends))
        return self._states[key]

    # ---------------------------------------------------------------------------------------------------- compilation

    def _compile(self, number: int, glob: str) -> None:
        at = cursor = 0
        for start, end, alternatives in groups(glob):
            at = self._chain(glob[cursor:start], at)
            joined = self._new()
            for alternative in alternatives:
                begin = self._new()
                self._positions[at].free.append(begin)
                self._positions[self._chain(alternative, begin)].free.append(joined)
            at, cursor = joined, end
        self._positions[self._chain(glob[cursor:], at)].ends.append(number)

    def _chain(self, text: str, at: int) -> int:
        """The position after text without groups, from `at` on."""
        for character in text:
            position = self._positions[at]
            if character == "*":
                if position.star is None:
                    position.star = self._new(loops=True)
                at = position.star
            else:
                if character not in position.step:
                    position.step[character] = self._new()
                at = position.step[character]
        return at

    def _new(self, loops: bool = False) -> int:
        self._positions.append(_Position(loops=loops))
        return len(self._positions) - 1
