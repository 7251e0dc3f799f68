"""Patterns: the namespace, the prefixes of blocks, and what a path cannot have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sharddsl.findings import Span
from sharddsl.spec.model import NAMESPACES, Namespace, Pattern, Segment
from sharddsl.spec.report import Report
from sharddsl.syntax import to_text, tree

MOST_SEGMENTS = 64
"""The most segments of one pattern, prefixes included."""

MOST_ALTERNATIVES = 256
"""The most alternatives of one pattern, those of all its braces together: each is matched, and judged, by itself."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What the blocks around a rule put before its pattern. `namespace` is None before the outermost block."""

    namespace: Namespace | None = None
    segments: tuple[tree.Segment, ...] = ()
    rooted: bool = False


OUTERMOST = Prefix()


def extend(prefix: Prefix, pattern: tree.Pattern, report: Report) -> Prefix | None:
    """The prefix followed by the pattern; None, with a finding, where they do not go together.

    The first segment of the outermost pattern says the namespace if it is one's name, unquoted; it is no part of the
    path. Without, the pattern speaks of params.
    """
    namespace, segments = prefix.namespace, pattern.segments
    named = False
    if namespace is None:
        namespace, named = _namespace(segments)
        if named and pattern.root == 0:
            _report_rooted_namespace(pattern, segments[0].text, report)
            return None
        if named and segments[0].layers is not None:
            message = f"`{segments[0].text}` is a namespace, which has no layers"
            report.add("SHD007", segments[0].span, message, "put the subscript on a segment: `layers[0:4].mlp.w_in`")
            return None
    own = segments[1:] if named else segments
    rooted = prefix.rooted
    if pattern.root is not None:
        if prefix.segments or pattern.root != (1 if named else 0):
            before = ".".join(s.text for s in (*prefix.segments, *segments[: pattern.root]))
            message = f"`/` begins a path, but here `{before}` stands before it"
            report.add("SHD007", pattern.span, message, "leave out the `/`, or move the rule out of the block")
            return None
        rooted = True
    joined = (*prefix.segments, *own)
    return Prefix(namespace, joined, rooted) if _possible(joined, pattern.span, report) else None


def _namespace(segments: tuple[tree.Segment, ...]) -> tuple[Namespace, bool]:
    """The namespace that a pattern speaks of, and whether its first segment says so."""
    first = segments[0] if segments else None
    if first is not None and not first.quoted:
        for namespace in NAMESPACES:
            if first.text == namespace:
                return namespace, True
    return "param", False


def _report_rooted_namespace(pattern: tree.Pattern, namespace: str, report: Report) -> None:
    rest = ".".join(s.text for s in pattern.segments[1:]) or "…"
    message = f"`/` stands after the namespace, not before it: `/{namespace}` would be a param of that name"
    report.add("SHD007", pattern.span, message, f"write `{namespace}./{rest}`, or `param./{namespace}` for the param")


def _possible(segments: tuple[tree.Segment, ...], span: Span, report: Report) -> bool:
    return _small(segments, span, report) and _layers_possible(segments, report)


def _small(segments: tuple[tree.Segment, ...], span: Span, report: Report) -> bool:
    if len(segments) > MOST_SEGMENTS:
        report.add("SHD007", span, f"a pattern of {len(segments)} segments: at most {MOST_SEGMENTS} are read")
        return False
    alternatives = sum(
        segment.text.count(",") + 1 for segment in segments if not segment.quoted and "{" in segment.text
    )
    if alternatives > MOST_ALTERNATIVES:
        message = f"a pattern of {alternatives:,} alternatives: at most {MOST_ALTERNATIVES} are read"
        report.add("SHD007", span, message, "write several rules")
        return False
    return True


def _layers_possible(segments: tuple[tree.Segment, ...], report: Report) -> bool:
    subscripted = [segment for segment in segments if segment.layers is not None]
    if len(subscripted) > 1:
        message = "a path has one layer subscript at most: no tensor lies in a layer of a layer"
        report.add("SHD007", subscripted[-1].span, message)
        return False
    for segment in subscripted:
        start, stop = segment.layers or (None, None)
        if stop is not None and (start or 0) >= stop:
            message = (
                f"`[{'' if start is None else start}:{stop}]` holds no layer: the end of a range is not part of it"
            )
            report.add("SHD205", segment.span, message)
            return False
    return True


def as_pattern(whole: Prefix) -> Pattern:
    """The pattern of a rule, its prefixes included."""
    namespace: Namespace = whole.namespace or "param"
    every = not whole.rooted and len(whole.segments) == 1 and _is_lone_star(whole.segments[0])
    segments = (
        () if every else tuple(_segment(segment.text, segment.quoted, segment.layers) for segment in whole.segments)
    )
    return Pattern(namespace=namespace, segments=segments, rooted=whole.rooted, text=_text(namespace, whole))


@lru_cache(maxsize=4096)
def _segment(text: str, literal: bool, layers: tuple[int | None, int | None] | None) -> Segment:
    """One value for each segment that is written: a file says `attn` and `layers` often."""
    return Segment(text=text, literal=literal, layers=layers)


def _is_lone_star(segment: tree.Segment) -> bool:
    return segment.text == "*" and not segment.quoted and segment.layers is None


def _text(namespace: Namespace, whole: Prefix) -> str:
    """As a person would write it: `mlp.w_in`, `act`, `opt./mu.embed.w`; `param.act` for what `act` would not be."""
    segments = whole.segments
    if namespace == "param" and segments and not _namespace(segments)[1]:
        return to_text(tree.Pattern(segments, 0 if whole.rooted else None))
    return to_text(tree.Pattern((tree.Segment(namespace), *segments), 1 if whole.rooted else None))
