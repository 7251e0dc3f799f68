"""Findings about rules as a whole: those that match nothing, tensors that no rule matches, dims that no tensor has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from sharddsl.findings import Edit, Finding, Location, Span
from sharddsl.layout.decide import Decision
from sharddsl.layout.matching import Matcher, Matches
from sharddsl.layout.naming import names_of, note_of, sized_dims
from sharddsl.layout.resolution import Resolution
from sharddsl.layout.words import did_you_mean, listed, nearest
from sharddsl.spec.model import NAMESPACES, Named, Namespace, Pattern, Rule
from sharddsl.tensors.model import LAYERS, Path, Tensor

HEAD = Path(("lm_head", "w"))
"""The weight that a model with a tied head does without."""

_NEAR_FOR = 50
_MOST_TAILS = 500
"""The nearest paths are sought among so many, and for so many dead rules: with more, a name is not what is wrong."""

_NUMBER = re.compile(r"\d+")


def findings(resolution: Resolution) -> tuple[Finding, ...]:
    """All findings about rules."""
    out_of_reach = dict(layers_out_of_reach(resolution))
    return (
        *out_of_reach.values(),
        *dead_patterns(resolution, frozenset(out_of_reach)),
        *missing_rules(resolution),
        *unknown_dims(resolution),
        *dims_twice(resolution),
        *replaced(resolution),
    )


# --------------------------------------------------------------------------------------------------------------- SHD201


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
    suggestions = 0
    tails = cache(lambda namespace, length: _tails(resolution, namespace, length))
    for number, text, pattern in sorted(dead, key=lambda item: item[0]):
        rule = resolution.rules[number]
        if resolution.inventory.tied and _names_head(pattern):
            yield _tied_head(rule, resolution)
            continue
        length = max(1, len(pattern.segments))
        known = tails(pattern.namespace, length)
        near = _nearest_paths(pattern, known) if suggestions < _NEAR_FOR else []
        suggestions += 1
        yield _dead(rule, text, near, known)


def _dead(rule: Rule, text: str | None, near: Sequence[str], known: Sequence[str]) -> Finding:
    namespace = "" if rule.pattern.namespace == "param" else f" of {rule.pattern.namespace}"
    if text is None:
        message = f"`{rule.pattern.text}` matches no tensor{namespace}"
    else:
        message = f"`{text}` in `{rule.pattern.text}` matches no tensor{namespace}; the other alternatives do"
    # within a block the text at that place is but the end of the pattern, and a path would not fit there
    span = rule.pattern_at.span
    written_whole = span.line == span.end_line and span.end_column - span.column == len(rule.pattern.text)
    plain = text is None and span.line > 0 and len(near) > 0 and not rule.pattern.rooted and written_whole
    return Finding(
        "SHD201",
        "error",
        message,
        rule.pattern_at,
        help=f"did you mean {' or '.join(near)}?" if near else f"paths end in {listed(known, 6)}",
        tensor=rule.pattern.text,
        fix=(Edit(rule.pattern_at, near[0]),) if plain else (),
    )


def _nearest_paths(pattern: Pattern, tails: Sequence[str]) -> list[str]:
    """Of the ends of paths, those that look like the pattern, or at least end like it."""
    wanted = ".".join(segment.text for segment in pattern.segments)
    near = nearest(wanted, tails)
    if not near and pattern.segments:
        ends = {tail.rsplit(".", 1)[-1]: tail for tail in tails}
        near = [ends[end] for end in nearest(pattern.segments[-1].text, ends)]
    prefix = "" if pattern.namespace == "param" else f"{pattern.namespace}."
    return [prefix + path for path in near]


def _tails(resolution: Resolution, namespace: Namespace, length: int) -> list[str]:
    """The ends of paths, `length` segments long; of those that differ in a number only, the first."""
    found: dict[tuple[str, ...], str] = {}
    plain: dict[str, str] = {}
    for tensor in resolution.inventory.of(namespace):
        tail = tensor.path.segments[-length:]
        for segment in tail:
            if segment not in plain:
                plain[segment] = _NUMBER.sub("0", segment)
        found.setdefault(tuple(plain[segment] for segment in tail), ".".join(tail))
    return list(found.values())[:_MOST_TAILS]


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


# --------------------------------------------------------------------------------------------------------------- SHD202


def missing_rules(resolution: Resolution) -> Iterator[Finding]:
    """SHD202: params, inputs, or the cache of a model that generates, without a rule; one finding per namespace."""
    without: dict[Namespace, list[Tensor]] = {}
    for decision in resolution.decided:
        if decision.missing:
            without.setdefault(decision.example.namespace, []).extend(resolution.tensors_of(decision))
    for namespace in NAMESPACES:
        if namespace in without:
            yield _missing(namespace, without[namespace], resolution)


def _missing(namespace: Namespace, tensors: Sequence[Tensor], resolution: Resolution) -> Finding:
    names = names_of(tensors)
    verb = "has" if len(names) == 1 else "have"
    share = _share(namespace, tensors, resolution)
    kinds = {(*t.path.segments, t.namespace): t for t in tensors}
    rules = [f"{_unstacked(t)}: {_whole_layout(t)}  # {sized_dims(t)}" for t in islice(kinds.values(), 8)]
    text = "\n".join(rules)
    return Finding(
        "SHD202",
        "error",
        f"{listed(names, 6)} {verb} no rule{share}",
        _end_of_rules(resolution),
        help=f"add a rule{'' if len(rules) == 1 else ' for each'}, or `*: replicated` as the first one:\n{text}",
        tensor=tensors[0].name,
        count=len(tensors),
        note="the last rule of the file",
        fix=_appended(text, resolution),
    )


def _share(namespace: Namespace, tensors: Sequence[Tensor], resolution: Resolution) -> str:
    held = resolution.inventory.of(namespace)
    total = sum(t.nbytes or 0 for t in held)
    if not total or any(t.nbytes is None for t in held):
        return ""
    percent = 100 * sum(t.nbytes or 0 for t in tensors) / total
    return (
        f": {percent:.0f} % of the bytes of {namespace}" if percent >= 1 else f": under 1 % of the bytes of {namespace}"
    )


def _unstacked(tensor: Tensor) -> str:
    """The path without `layers`, as rules are usually written."""
    segments = [s for s in tensor.path.segments if s != LAYERS]
    path = ".".join(segments)
    return path if tensor.namespace == "param" else f"{tensor.namespace}.{path}"


def _whole_layout(tensor: Tensor) -> str:
    rank = sum(dim != LAYERS for dim in tensor.dims)
    return "[" + ", ".join(["None"] * rank) + "]"


def _own_source(resolution: Resolution) -> str | None:
    """The file that the spec was read from."""
    return next((r.where.source for r in resolution.spec.rules if r.origin == 0 and r.where.span.line), None)


def _end_of_rules(resolution: Resolution) -> Location | None:
    """The last of the file's own rules: what is missing would stand after it."""
    own = [rule.where for rule in resolution.spec.rules if rule.origin == 0 and rule.where.span.line]
    return max(own, key=lambda where: where.span) if own else None


def _appended(text: str, resolution: Resolution) -> tuple[Edit, ...]:
    """The rules as lines after the file's last."""
    source = _own_source(resolution)
    whole = resolution.sources.get(source) if source is not None else None
    if source is None or whole is None:
        return ()
    lines = whole.split("\n")
    end = (len(lines), len(lines[-1]) + 1)
    newline = "" if whole.endswith("\n") else "\n"
    return (Edit(Location(source, Span(*end, *end)), f"{newline}{text}\n"),)


# ------------------------------------------------------------------------------------------------------- SHD204, SHD208


def unknown_dims(resolution: Resolution) -> Iterator[Finding]:
    """SHD204: a named layout that names a dim which none of the tensors matched by its rule has."""
    for number, rule in resolution.numbered():
        decisions = resolution.matched.get(number, ())
        if not isinstance(rule.layout, Named) or not decisions:
            continue
        known = dict.fromkeys(dim for decision in decisions for dim in decision.example.dims)
        if any(decision.example.path.layer is not None for decision in decisions):
            known[LAYERS] = None  # naming the stack dim is no error on an unrolled model
        for item in rule.layout.entries:
            if item.dim not in known:
                tensors = [decision.example for decision in decisions]
                yield Finding(
                    "SHD204",
                    "error",
                    f"no tensor that `{rule.pattern.text}` matches has a dim {item.dim}",
                    item.where or rule.layout_at,
                    help=did_you_mean(item.dim, tuple(known), "they have"),
                    tensor=tensors[0].name,
                    dim=item.dim,
                    note=note_of(tensors),
                )


def dims_twice(resolution: Resolution) -> Iterator[Finding]:
    """SHD208: a named layout that names a dim which a tensor has twice."""
    told: set[tuple[Location, str]] = set()
    for decision in resolution.decided:
        if decision.rule is None or decision.reason != "rule" or not isinstance(decision.rule.layout, Named):
            continue
        tensor = decision.example
        for item in decision.rule.layout.entries:
            place = item.where or decision.rule.layout_at
            if tensor.dims.count(item.dim) > 1 and (place, item.dim) not in told:
                told.add((place, item.dim))
                yield Finding(
                    "SHD208",
                    "warning",
                    f"{tensor.name} has {tensor.dims.count(item.dim)} dims called {item.dim}, and a named layout says "
                    "the same for each: any axis would be there twice",
                    place,
                    help="write a positional layout for it",
                    tensor=tensor.name,
                    dim=item.dim,
                    note=note_of(resolution.tensors_of(decision)),
                )


# --------------------------------------------------------------------------------------------------------------- SHD205


def layers_out_of_reach(resolution: Resolution) -> Iterator[tuple[int, Finding]]:
    """SHD205: a layer subscript on a model whose layers share one array, or on layers that are not there. With the
    rule's number."""
    subscripted = [
        (number, rule)
        for number, rule in resolution.numbered()
        if any(segment.layers is not None for segment in rule.pattern.segments)
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


def _without_subscripts(pattern: Pattern) -> Pattern:
    segments = tuple(segment.model_copy(update={"layers": None}) for segment in pattern.segments)
    return pattern.model_copy(update={"segments": segments})


def _out_of_range(pattern: Pattern, count: int) -> tuple[int | None, int | None] | None:
    for segment in pattern.segments:
        low, high = segment.layers or (None, None)
        if (low is not None and low >= count) or (high is not None and high > count):
            return low, high
    return None


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
    said = f"{'' if low is None else low}:{'' if high is None else high}"
    return Finding(
        "SHD205",
        "error",
        f"`{rule.pattern.text}` asks for layers [{said}], and there are {count}, 0 to {count - 1}",
        rule.pattern_at,
        help=f"an open end takes them all: [{'' if low is None or low >= count else low}:]",
        tensor=rule.pattern.text,
    )


# --------------------------------------------------------------------------------------------------------------- SHD207


def replaced(resolution: Resolution) -> Iterator[Finding]:
    """SHD207: what an override from the command line takes the place of."""
    before: dict[int, dict[int, list[Decision]]] = {}
    for decision in resolution.decided:
        *earlier, winner = decision.matches.rules or (None,)
        if winner is None or resolution.rules[winner].origin != -1:
            continue
        own = [number for number in earlier if number is not None and resolution.rules[number].origin != -1]
        if own:
            before.setdefault(winner, {}).setdefault(own[-1], []).append(decision)
    for winner, losers in sorted(before.items()):
        rule = resolution.rules[winner]
        tensors = {n: [t for d in ds for t in resolution.tensors_of(d)] for n, ds in losers.items()}
        texts = [f"`{resolution.rules[number].pattern.text}`" for number in sorted(losers)]
        yield Finding(
            "SHD207",
            "info",
            f"`{rule.pattern.text}` replaces {listed(texts, 4)}",
            rule.where,
            tensor=rule.pattern.text,
            count=sum(map(len, tensors.values())),
            related=tuple(
                (resolution.rules[number].where, f"replaced for {listed(names_of(ts), 4)}")
                for number, ts in sorted(tensors.items())
            ),
        )
