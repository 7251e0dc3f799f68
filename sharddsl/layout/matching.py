"""Which rules match which tensors, without trying each rule on each tensor.

All patterns of a namespace share one trie over their segments, read from the last to the first, since a pattern names
the end of a path. A path walks that trie as an automaton whose deterministic states are made on first use and kept:
paths that end alike (the same weight in another layer) share their steps, and a step costs one dictionary look-up.
Subscripts cut the layer numbers into ranges, within which every layer behaves the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sharddsl.layout.globs import GlobSet, groups, is_glob
from sharddsl.spec.model import NAMESPACES, Namespace, Pattern, Segment
from sharddsl.tensors.model import Path

ANY_DEPTH = "**"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One alternative of a `{…}` in a rule's pattern: the rule's number, and the alternative's text."""

    rule: int
    text: str
    pattern: Pattern
    """The rule's pattern with this alternative alone in its place."""


@dataclass(frozen=True, slots=True)
class Matches:
    """What matches one path: rules by number, ascending, and the alternatives through which they do."""

    rules: tuple[int, ...] = ()
    alternatives: frozenset[int] = frozenset()


class Matcher:
    """All patterns of a spec, ready to be asked. A rule's number is its place in `patterns`."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.alternatives: tuple[Alternative, ...] = tuple(
            alternative for number, pattern in enumerate(patterns) for alternative in _alternatives(number, pattern)
        )
        entries: list[tuple[Pattern, Matches]] = []
        split = {number for number, pattern in enumerate(patterns) if _single_choice(pattern)}
        for number, pattern in enumerate(patterns):
            if number not in split:
                entries.append((pattern, Matches((number,))))
        for index, alternative in enumerate(self.alternatives):
            rules = (alternative.rule,) if alternative.rule in split else ()
            entries.append((alternative.pattern, Matches(rules, frozenset((index,)))))
        texts = {s.text for pattern, _ in entries for s in pattern.segments if _kind(s) == "glob"}
        globs = {text: index for index, text in enumerate(sorted(texts))}
        matcher = GlobSet(globs)
        self._tries = {
            namespace: _Trie([e for e in entries if e[0].namespace == namespace], globs, matcher)
            for namespace in NAMESPACES
        }

    def match(self, namespace: Namespace, path: Path) -> Matches:
        """Everything that matches this tensor. Equal answers are the same object."""
        return self._tries[namespace].match(path)


def _kind(segment: Segment) -> str:
    if segment.literal:
        return "literal"
    if segment.text == ANY_DEPTH:
        return "depth"
    return "glob" if is_glob(segment.text) else "literal"


def _choices(pattern: Pattern) -> Iterator[tuple[int, int, int, str]]:
    """Every alternative of every `{…}`: the segment's index, the group's start and end in it, and the text."""
    for index, segment in enumerate(pattern.segments):
        if _kind(segment) == "glob":
            for start, end, texts in groups(segment.text):
                for text in texts:
                    yield index, start, end, text


def _single_choice(pattern: Pattern) -> bool:
    """Whether there is one `{…}` only, so that the pattern is the union of its alternatives."""
    return len({choice[:2] for choice in _choices(pattern)}) == 1


def _alternatives(number: int, pattern: Pattern) -> Iterator[Alternative]:
    for index, start, end, text in _choices(pattern):
        segment = pattern.segments[index]
        # within a segment `**` is no more than `*`, also where it is all that is left of the segment
        text_alone = (segment.text[:start] + text + segment.text[end:]).replace(ANY_DEPTH, "*")
        alone = segment.model_copy(update={"text": text_alone})
        segments = (*pattern.segments[:index], alone, *pattern.segments[index + 1 :])
        yield Alternative(number, text, pattern.model_copy(update={"segments": segments}))


# ------------------------------------------------------------------------------------------------------------- the trie


@dataclass
class _Node:
    """A place in a pattern, read from its end: the edges to the segment before, and the entries complete here."""

    literal: dict[str, int] = field(default_factory=dict)
    glob: dict[int, int] = field(default_factory=dict)
    ranged: dict[tuple[Segment, int], int] = field(default_factory=dict)  # a subscripted segment, and its glob's number
    depth: int | None = None
    loops: bool = False  # stands for `**`: stays here over any segment
    suffix: list[int] = field(default_factory=list)
    rooted: list[int] = field(default_factory=list)


@dataclass
class _State:
    nodes: frozenset[int]
    found: frozenset[int]
    """The entries that matched a suffix of the path already."""
    after: dict[tuple[str, int], _State] = field(default_factory=dict)
    answer: Matches | None = None


class _Trie:
    """The patterns of one namespace."""

    def __init__(self, entries: Sequence[tuple[Pattern, Matches]], globs: dict[str, int], matcher: GlobSet) -> None:
        self._globs, self._matcher = globs, matcher
        self._said = [said for _, said in entries]
        self._nodes = [_Node()]
        self._bounds = sorted({b for pattern, _ in entries for s in pattern.segments for b in s.layers or () if b})
        for number, (pattern, _) in enumerate(entries):
            self._add(number, pattern.segments, pattern.rooted)
            if pattern.namespace == "opt" and not pattern.rooted and pattern.segments:
                # `opt.mu.mlp.w_in`: a leaf, then the end of its param's path
                leaf, *rest = pattern.segments
                self._add(number, (leaf, Segment(text=ANY_DEPTH), *rest), rooted=True)
        self._states: dict[tuple[frozenset[int], frozenset[int]], _State] = {}
        self._answers: dict[frozenset[int], Matches] = {}
        self._start = self._state({0}, frozenset())

    def match(self, path: Path) -> Matches:
        state = self._start
        layer, layer_at = path.layer, path.layer_at
        segments = path.segments
        for index in range(len(segments) - 1, -1, -1):
            # -1: no subscript; else the number of the range of layers that it falls into
            part = -1 if layer is None or index != layer_at else bisect_right(self._bounds, layer)
            symbol = (segments[index], part)
            state = state.after.get(symbol) or self._follow(state, symbol, layer)
        return state.answer or self._answer(state)

    def _answer(self, state: _State) -> Matches:
        """Rooted entries count only where the whole path is used up, which is here."""
        found = state.found.union(*(self._nodes[n].rooted for n in state.nodes))
        if found not in self._answers:
            said = [self._said[entry] for entry in found]
            rules = tuple(sorted({rule for s in said for rule in s.rules}))
            self._answers[found] = Matches(rules, frozenset().union(*(s.alternatives for s in said)))
        state.answer = self._answers[found]
        return state.answer

    def _follow(self, state: _State, symbol: tuple[str, int], layer: int | None) -> _State:
        text, part = symbol
        matching = self._matcher.match(text)
        reached: set[int] = set()
        for number in state.nodes:
            node = self._nodes[number]
            if node.loops:
                reached.add(number)
            if text in node.literal:
                reached.add(node.literal[text])
            if node.glob:
                reached.update(node.glob[g] for g in matching & node.glob.keys())
            if part >= 0 and layer is not None:
                for (segment, glob), then in node.ranged.items():
                    fits = glob in matching if glob >= 0 else segment.text == text
                    if fits and _covers(segment.layers, layer):
                        reached.add(then)
        following = state.after[symbol] = self._state(reached, state.found)
        return following

    def _state(self, nodes: Iterable[int], found: frozenset[int]) -> _State:
        reached = set(nodes)
        reached.update(d for n in nodes if (d := self._nodes[n].depth) is not None)
        found = found.union(*(self._nodes[n].suffix for n in reached))
        key = (frozenset(reached), found)
        if key not in self._states:
            self._states[key] = _State(*key)
        return self._states[key]

    def _add(self, entry: int, segments: Sequence[Segment], rooted: bool) -> None:
        at = 0
        for segment in reversed(segments):
            at = self._edge(at, segment)
        # a pattern that begins with `**` is complete before and after it: both nodes are active together
        (self._nodes[at].rooted if rooted else self._nodes[at].suffix).append(entry)

    def _edge(self, at: int, segment: Segment) -> int:
        node, kind = self._nodes[at], _kind(segment)
        if kind == "depth":
            if node.loops:
                return at
            if node.depth is None:
                node.depth = self._new(loops=True)
            return node.depth
        glob = self._globs[segment.text] if kind == "glob" else -1
        if segment.layers is not None:
            if (segment, glob) not in node.ranged:
                node.ranged[segment, glob] = self._new()
            return node.ranged[segment, glob]
        if kind == "glob":
            if glob not in node.glob:
                node.glob[glob] = self._new()
            return node.glob[glob]
        if segment.text not in node.literal:
            node.literal[segment.text] = self._new()
        return node.literal[segment.text]

    def _new(self, loops: bool = False) -> int:
        self._nodes.append(_Node(loops=loops))
        return len(self._nodes) - 1


def _covers(layers: tuple[int | None, int | None] | None, layer: int) -> bool:
    low, high = layers or (None, None)
    return (low is None or low <= layer) and (high is None or layer < high)
