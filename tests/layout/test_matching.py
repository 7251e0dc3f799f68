"""The indexed matcher against one written naively, over random patterns and paths."""

from __future__ import annotations

import fnmatch
import itertools
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharddsl.layout.globs import GlobSet
from sharddsl.layout.matching import Matcher
from sharddsl.spec.model import Namespace, Pattern, Segment
from sharddsl.tensors import Path

# ------------------------------------------------------------------------------------------------- the naive matcher


def braces(text: str) -> Iterator[str]:
    """Every way to take one alternative of each `{…}`."""
    parts: list[list[str]] = []
    while "{" in text:
        before, _, rest = text.partition("{")
        inside, _, text = rest.partition("}")
        parts += [[before], inside.split(",")]
    for chosen in itertools.product(*parts, [text]):
        yield "".join(chosen)


def segment_matches(segment: Segment, text: str, layer: int | None) -> bool:
    if segment.layers is not None:
        low, high = segment.layers
        if layer is None or layer < (low or 0) or (high is not None and layer >= high):
            return False
    if segment.literal:
        return segment.text == text
    return any(fnmatch.fnmatchcase(text, glob.replace("[", "[[]")) for glob in braces(segment.text))


def from_here(pattern: list[Segment], path: list[tuple[str, int | None]]) -> bool:
    if not pattern:
        return not path
    first, *rest = pattern
    if first.text == "**" and not first.literal:
        return any(from_here(rest, path[skipped:]) for skipped in range(len(path) + 1))
    return bool(path) and segment_matches(first, *path[0]) and from_here(rest, path[1:])


def naive(pattern: Pattern, path: Path) -> bool:
    segments = [
        (text, path.layer if path.layer is not None and at == path.layer_at else None)
        for at, text in enumerate(path.segments)
    ]
    wanted = list(pattern.segments)
    if pattern.rooted:
        return from_here(wanted, segments)
    ends = any(from_here(wanted, segments[start:]) for start in range(len(segments) + 1))
    if pattern.namespace != "opt" or not wanted or ends:
        return ends
    # a leaf, then the end of its param's path
    leaf, *rest = wanted
    return from_here([leaf], segments[:1]) and any(
        from_here(rest, segments[start:]) for start in range(1, len(segments) + 1)
    )


# ------------------------------------------------------------------------------------------------------ random input

NAMES = st.sampled_from(["a", "b", "ab", "w_in", "w_out", "layers", "mu"])
PIECES = st.sampled_from(["a", "b", "ab", "w_", "in", "out", "*", "layers", "mu", "{a,b}", "{w_in,*b}", "{*,ab}"])
RANGES = st.tuples(st.none() | st.integers(0, 4), st.none() | st.integers(0, 5))
GLOBS = st.lists(PIECES, min_size=1, max_size=3).map("".join).filter(lambda text: "**" not in text)
SEGMENTS = st.one_of(
    st.builds(Segment, text=GLOBS, layers=st.none() | RANGES),
    st.builds(Segment, text=NAMES, literal=st.booleans()),
    st.just(Segment(text="**")),
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    namespace: Namespace = draw(st.sampled_from(["param", "opt"]))
    segments = tuple(draw(st.lists(SEGMENTS, max_size=4)))
    rooted = draw(st.booleans()) and bool(segments)
    return Pattern(namespace=namespace, segments=segments, rooted=rooted, text=".".join(s.text for s in segments))


@st.composite
def paths(draw: st.DrawFn) -> Path:
    segments = tuple(draw(st.lists(NAMES, min_size=1, max_size=5)))
    layer = draw(st.none() | st.integers(0, 5))
    return Path(segments, layer, 0 if layer is None else draw(st.integers(0, len(segments) - 1)))


@given(st.lists(patterns(), max_size=8), st.lists(paths(), min_size=1, max_size=8))
def test_the_index_agrees_with_trying_each_pattern(rules: list[Pattern], held: list[Path]) -> None:
    matcher = Matcher(rules)
    namespaces: tuple[Namespace, ...] = ("param", "opt")
    for namespace, path in itertools.product(namespaces, held):
        expected = tuple(
            number for number, rule in enumerate(rules) if rule.namespace == namespace and naive(rule, path)
        )
        assert matcher.match(namespace, path).rules == expected


@given(st.lists(GLOBS, max_size=6), st.text(alphabet="abw_inout", max_size=8))
def test_globs_agree_with_fnmatch(globs: list[str], text: str) -> None:
    expected = {n for n, glob in enumerate(globs) if any(fnmatch.fnmatchcase(text, g) for g in braces(glob))}
    assert GlobSet(globs).match(text) == expected


def test_alternatives_are_known_by_themselves() -> None:
    segments = (Segment(text="attn"), Segment(text="{wq,wz}"))
    matcher = Matcher([Pattern(namespace="param", segments=segments, text="attn.{wq,wz}")])
    alive = matcher.match("param", Path.parse("layers.attn.wq")).alternatives
    assert [matcher.alternatives[index].text for index in alive] == ["wq"]


@pytest.mark.parametrize(
    "glob", ["*a" * 40 + "*b", "{a,aa}" * 12 + "b", "{*a,*aa}" * 12 + "b"], ids=["stars", "alternatives", "both"]
)
def test_no_glob_takes_more_than_a_step_per_character(glob: str) -> None:
    start = time.process_time()
    assert GlobSet([glob]).match("a" * 2000) == frozenset()
    assert time.process_time() - start < 1  # a backtracking matcher would not come back


def test_a_pattern_of_many_alternatives_is_not_multiplied_out() -> None:
    segment = Segment(text="{a,b}" * 30)
    matcher = Matcher([Pattern(namespace="param", segments=(segment,), text=segment.text)])
    assert matcher.match("param", Path(("ab" * 15,))).rules == (0,)
    assert len(matcher.alternatives) == 60
