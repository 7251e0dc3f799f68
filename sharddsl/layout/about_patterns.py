"""Findings about patterns: those that match no tensor, and layers that are not there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from sharddsl.findings import Edit, Finding, Location, Span
from sharddsl.layout.matching import ANY_DEPTH, Matcher, Matches
from sharddsl.layout.naming import note_of, pattern_for
from sharddsl.layout.resolution import Resolution
from sharddsl.layout.words import listed
from sharddsl.spec.model import NAMESPACES, Namespace, Pattern, Rule, Segment
from sharddsl.spec.report import nearest
from sharddsl.tensors.model import LAYERS, Path, Tensor

HEAD = Path(("lm_head", "w"))
"""The weight that a model with a tied head does without."""

_NEAR_FOR = 50
_MOST_KINDS = 500
"""What a dead rule may have meant is sought among so many paths, and for so many rules: with more, a name is not what
is wrong."""

_NUMBER = re.compile(r"\d+")


def findings(resolution: Resolution) -> tuple[Finding, ...]:
    """All findings about patterns."""
    out_of_reach = dict(layers_out_of_reach(resolution))
    return (*out_of_reach.values(), *dead_patterns(resolution, frozenset(out_of_reach)))


# ------------------------------------------------------------------------------------------------------- SHD201, SHD310


def dead_patterns(resolution: Resolution, spared: frozenset[int]) -> Iterator[Finding]:
    """SHD201: a rule, or one alternative of its pattern, that matches no tensor; SHD310 where that is the head of a
    model whose head is tied. `spared` are rules that another finding speaks of."""
    judged = {tensor.namespace for tensor in resolution.inventory}
    alive = frozenset().union(*(decision.matches.alternatives for decision in resolution.decided))
    dead = [
        (number, None, rule.pattern)
        for number, rule in resolution.numbered()
        if number not in resolution.matched and number not in spared and rule.pattern.namespace in judged
    ] + [
        (alternative.rule, alternative.text, alternative.pattern)
        for index, alternative in enumerate(resolution.matcher.alternatives)
        if index not in alive and alternative.rule in resolution.matched
    ]
    remedies = _Remedies(resolution)
    for number, text, pattern in sorted(dead, key=lambda item: item[0]):
        rule = resolution.rules[number]
        if resolution.inventory.tied and _names_head(pattern):
            yield _tied_head(rule, resolution)
        else:
            yield _dead(rule, text, *remedies.of(pattern))


def _dead(rule: Rule, text: str | None, help_: str, instead: str | None) -> Finding:
    namespace = "" if rule.pattern.namespace == "param" else f" of {rule.pattern.namespace}"
    if text is None:
        message = f"`{rule.pattern.text}` matches no tensor{namespace}"
    else:
        message = f"`{text}` in `{rule.pattern.text}` matches no tensor{namespace}; the other alternatives do"
    # within a block the text at that place is but the end of the pattern, and a path would not fit there
    span = rule.pattern_at.span
    written_whole = span.line == span.end_line and span.end_column - span.column == len(rule.pattern.text)
    plain = text is None and span.line > 0 and written_whole
    return Finding(
        "SHD201",
        "error",
        message,
        rule.pattern_at,
        help=help_,
        tensor=rule.pattern.text,
        fix=(Edit(rule.pattern_at, instead),) if plain and instead is not None else (),
    )


class _Remedies:
    """What a pattern that matches nothing may have meant. Each remedy comes with the pattern to write instead, where
    there is one that is likely."""

    def __init__(self, resolution: Resolution) -> None:
        self._inventory = resolution.inventory
        self._asked = 0
        self._tails = cache(self._all_tails)
        self._kinds = cache(self._all_kinds)

    def of(self, pattern: Pattern) -> tuple[str, str | None]:
        self._asked += 1
        if self._asked <= _NEAR_FOR:
            for remedy in (self._unrooted, self._longer, self._elsewhere, self._near):
                found = remedy(pattern)
                if found is not None:
                    return found
        known = self._tails(pattern.namespace, max(2, len(pattern.segments)))
        return f"the paths are {listed((pattern_for(pattern.namespace, tail) for tail in known), 6)}", None

    def _unrooted(self, pattern: Pattern) -> tuple[str, str | None] | None:
        """`/mlp.w_in` for what lies deeper."""
        anywhere = pattern.model_copy(update={"rooted": False})
        if not pattern.rooted or not (found := self._matching(anywhere)):
            return None
        names = listed((f"`{_spelled(t.namespace, '/' + '.'.join(t.path.segments))}`" for t in found), 3)
        return f"`/` begins at the root of a path: leave it out, or write {names}", None

    def _longer(self, pattern: Pattern) -> tuple[str, str | None] | None:
        """`embed` for `embed.w`: the beginning or the middle of a path."""
        below = pattern.model_copy(update={"segments": (*pattern.segments, Segment(text=ANY_DEPTH))})
        if not pattern.segments or not (found := self._matching(below)):
            return None
        one = pattern.model_copy(update={"segments": (*pattern.segments, Segment(text="*"))})
        more = "*" if len(self._matching(one)) == len(found) else ANY_DEPTH
        names = listed((t.name for t in found), 3)
        instead = f"{_written(pattern)}.{more}"
        return f"a pattern names the end of a path: `{instead}` is {names}", instead

    def _elsewhere(self, pattern: Pattern) -> tuple[str, str | None] | None:
        """`mlp.hidden` for `act.mlp.hidden`: a path of another namespace."""
        if pattern.namespace != "param" or not pattern.segments:
            return None
        for namespace in NAMESPACES:
            if self._matching(pattern.model_copy(update={"namespace": namespace})):
                instead = _spelled(namespace, _written(pattern))
                return f"did you mean {instead}? A path without a namespace is a param's", instead
        return None

    def _near(self, pattern: Pattern) -> tuple[str, str | None] | None:
        """The ends of paths that look like the pattern, or at least end like it."""
        tails = self._tails(pattern.namespace, max(1, len(pattern.segments)))
        whole = {".".join(tail): tail for tail in tails}
        near = [whole[text] for text in nearest(".".join(s.text for s in pattern.segments), whole)]
        if not near and pattern.segments:
            ends = {tail[-1]: tail for tail in tails}
            near = [ends[end] for end in nearest(pattern.segments[-1].text, ends)]
        if not near:
            return None
        written = [pattern_for(pattern.namespace, tail) for tail in near]
        return f"did you mean {' or '.join(written)}?", None if pattern.rooted else written[0]

    def _matching(self, pattern: Pattern) -> list[Tensor]:
        matcher = Matcher([pattern])
        return [t for t in self._kinds(pattern.namespace) if matcher.match(t.namespace, t.path).rules]

    def _all_kinds(self, namespace: Namespace) -> list[Tensor]:
        """Of the tensors whose paths differ in a layer or another number only, the first."""
        found: dict[tuple[str, ...], Tensor] = {}
        for tensor in self._inventory.of(namespace):
            found.setdefault(_unnumbered(tensor.path.segments), tensor)
        return list(found.values())[:_MOST_KINDS]

    def _all_tails(self, namespace: Namespace, length: int) -> list[tuple[str, ...]]:
        """The ends of paths, `length` segments long. An optimizer leaf and the end of a param's path count as one:
        `mu.mlp.w_in`."""
        return list(dict.fromkeys(end for tensor in self._kinds(namespace) for end in _ends(tensor, length)))


@lru_cache(maxsize=4096)
def _unnumbered_segment(segment: str) -> str:
    return _NUMBER.sub("0", segment)


def _unnumbered(segments: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_unnumbered_segment, segments))


def _ends(tensor: Tensor, length: int) -> Iterable[tuple[str, ...]]:
    segments = tensor.path.segments
    yield segments[-length:]
    if tensor.namespace == "opt" and len(segments) > length:
        yield (segments[0], *segments[len(segments) - length + 1 :])


def _written(pattern: Pattern) -> str:
    """The pattern as text: of one alternative of a rule's pattern, without the others."""
    path = ".".join(f'"{s.text}"' if s.literal and not s.text.isidentifier() else s.text for s in pattern.segments)
    return _spelled(pattern.namespace, f"/{path}" if pattern.rooted else path)


def _spelled(namespace: Namespace, path: str) -> str:
    return path if namespace == "param" else f"{namespace}.{path}"


def _names_head(pattern: Pattern) -> bool:
    return bool(pattern.segments) and Matcher([pattern]).match(pattern.namespace, _head_path(pattern)).rules != ()


def _head_path(pattern: Pattern) -> Path:
    return Path(("mu", *HEAD.segments)) if pattern.namespace == "opt" else HEAD


def _tied_head(rule: Rule, resolution: Resolution) -> Finding:
    """SHD310."""
    start, end = rule.where.span, rule.where.span
    fix: tuple[Edit, ...] = ()
    if start.line:
        before = Location(rule.where.source, Span(start.line, start.column, start.line, start.column))
        after = Location(rule.where.source, Span(end.end_line, end.end_column, end.end_line, end.end_column))
        fix = (Edit(before, "when not tied { "), Edit(after, " }"))
    return Finding(
        "SHD310",
        "warning",
        f"`{rule.pattern.text}` is for a head of its own, and the head of {resolution.inventory.kind} is tied to the "
        "embedding",
        rule.pattern_at,
        help=f"write it for the models that have one: when not tied {{ {rule.pattern.text}: … }}",
        tensor=rule.pattern.text,
        fix=fix,
    )


# --------------------------------------------------------------------------------------------------------------- SHD205


def layers_out_of_reach(resolution: Resolution) -> Iterator[tuple[int, Finding]]:
    """SHD205: a layer subscript on a model whose layers share one array, or on layers that are not there. With the
    rule's number."""
    subscripted = [
        (number, rule)
        for number, rule in resolution.numbered()
        if (wanted := _layers(rule.pattern)) is not None and not _reaches(number, wanted[1], resolution)
    ]
    if not subscripted:
        return
    matcher = Matcher([_without_subscripts(rule.pattern) for _, rule in subscripted])
    counts: dict[Matches, int] = {}  # layers that there are, for what matches them
    stacks: dict[Matches, Tensor] = {}
    for tensor in resolution.inventory:
        matches = matcher.match(tensor.namespace, tensor.path)
        if LAYERS in tensor.dims:
            stacks.setdefault(matches, tensor)
        elif tensor.path.layer is not None:
            counts[matches] = max(counts.get(matches, 0), tensor.path.layer + 1)
    stacked = {subscripted[found][0]: tensor for matches, tensor in stacks.items() for found in matches.rules}
    layers: dict[int, int] = {}
    for matches, count in counts.items():
        for found in matches.rules:
            number = subscripted[found][0]
            layers[number] = max(layers.get(number, 0), count)
    for number, rule in subscripted:
        if number in stacked and number not in resolution.matched:
            yield number, _stacked(rule, stacked[number])
        elif number in layers and (wrong := _out_of_range(rule.pattern, layers[number])) is not None:
            yield number, _beyond(rule, wrong, layers[number])


def _layers(pattern: Pattern) -> tuple[int | None, int | None] | None:
    """The range of the pattern's subscript."""
    return next((segment.layers for segment in pattern.segments if segment.layers is not None), None)


def _reaches(number: int, high: int | None, resolution: Resolution) -> bool:
    """Whether the rule matches a tensor, one in the last layer that it asks for: then all is well with its range."""
    matched = (tensor for d in resolution.matched.get(number, ()) for tensor in resolution.tensors_of(d))
    return any(high is None or tensor.path.layer == high - 1 for tensor in matched)


def _without_subscripts(pattern: Pattern) -> Pattern:
    segments = tuple(segment.model_copy(update={"layers": None}) for segment in pattern.segments)
    return pattern.model_copy(update={"segments": segments})


def _out_of_range(pattern: Pattern, count: int) -> tuple[int | None, int | None] | None:
    low, high = _layers(pattern) or (None, None)
    return (low, high) if (low is not None and low >= count) or (high is not None and high > count) else None


def _stacked(rule: Rule, tensor: Tensor) -> Finding:
    return Finding(
        "SHD205",
        "error",
        f"`{rule.pattern.text}` names single layers of {tensor.name}, whose layers share one array",
        rule.pattern_at,
        help="leave the subscript out, or unroll the model (run.scan=false)",
        tensor=tensor.name,
        note=note_of([tensor]),
    )


def _beyond(rule: Rule, wanted: tuple[int | None, int | None], count: int) -> Finding:
    low, high = wanted
    one = low is not None and high == low + 1
    said = f"layer {low}" if one else f"layers [{'' if low is None else low}:{'' if high is None else high}]"
    open_end = f"an open end takes all there are: [{'' if low is None else low}:]"
    return Finding(
        "SHD205",
        "error",
        f"`{rule.pattern.text}` asks for {said}, and there are {count}, 0 to {count - 1}",
        rule.pattern_at,
        help=open_end if low is None or low < count else f"layers are counted from 0, and the last is {count - 1}",
        tensor=rule.pattern.text,
    )
