"""Findings about rules as a whole: tensors that no rule matches, dims that no tensor has, what an override replaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sharddsl.findings import Edit, Finding, Location, Span
from sharddsl.layout.assign import units_of
from sharddsl.layout.decide import BATCH, RESIDUAL, Decision
from sharddsl.layout.model import OPEN
from sharddsl.layout.naming import names_of, note_of, pattern_for, sized_dims
from sharddsl.layout.resolution import Resolution
from sharddsl.layout.words import did_you_mean, listed
from sharddsl.spec.model import NAMESPACES, Named, Namespace
from sharddsl.tensors.model import LAYERS, Tensor

KEYS = "act.attn.k"
"""The activation that is put into the cache."""

_RULES_SHOWN = 8
_RULES_PROPOSED = 50
"""With more kinds of tensors than this without a rule, the remedy is no list of rules."""


def findings(resolution: Resolution) -> tuple[Finding, ...]:
    """All findings about rules."""
    return (
        *missing_rules(resolution),
        *unknown_dims(resolution),
        *dims_twice(resolution),
        *replaced(resolution),
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
    kinds = {t.path.segments: t for t in tensors}
    rules = [f"{_unstacked(t)}: {_whole_layout(t)}  # {sized_dims(t)}" for t in kinds.values()]
    more = [f"… and {len(rules) - _RULES_SHOWN} more"] if len(rules) > _RULES_SHOWN else []
    each = "" if len(rules) == 1 else " for each"
    where = _first_rule(resolution)
    return Finding(
        "SHD202",
        "error",
        f"{listed(names, 6)} {verb} no rule{share}",
        where or _mesh_place(resolution),
        help="\n".join(
            [f"{_general_rule(namespace, tensors[0], resolution)}, or a rule{each}:", *rules[:_RULES_SHOWN], *more]
        ),
        tensor=tensors[0].name,
        count=len(tensors),
        note="the first rule of the file" if where is not None else None,
        fix=_appended("\n".join(rules), resolution) if len(rules) <= _RULES_PROPOSED else (),
    )


def _general_rule(namespace: Namespace, tensor: Tensor, resolution: Resolution) -> str:
    """One rule that would place them all; `tensor` is one of them."""
    if namespace == "param":
        return "add a first rule for all that others do not name, `*: replicated` or `*: {dim: axis}`"
    if namespace == BATCH and RESIDUAL in resolution.inventory.by_name:
        entry = f"{BATCH}: {_written(_axes_of_rows(resolution))}"
        return f"say how `{RESIDUAL}` is split (`act: {{{entry}}}`), which the inputs follow"
    like = _split_as_keys(tensor, resolution) if namespace == "cache" else {BATCH: _axes_of_rows(resolution)}
    if not like:
        return f"add a rule for all of them, `{namespace}: replicated` or `{namespace}: {{dim: axis}}`"
    entries = ", ".join(f"{dim}: {_written(axes)}" for dim, axes in like.items())
    return f"add a rule for all of them, `{namespace}: {{{entries}}}` or `{namespace}: replicated`"


def _split_as_keys(tensor: Tensor, resolution: Resolution) -> dict[str, tuple[str, ...]]:
    """The axes of each dim that the cache shares with the keys put into it, as far as they divide it; by the rows
    alone where nothing is said of the keys."""
    keys = _decision_of(KEYS, resolution)
    wanted = {BATCH: _axes_of_rows(resolution)} if keys is None or keys.assigned is None else _split_dims(keys)
    units = {dim: units_of(tensor, at)[0] for at, dim in enumerate(tensor.dims)}
    ways = resolution.mesh.ways
    return {dim: axes for dim, axes in wanted.items() if dim in units and (units[dim] or 0) % ways(axes) == 0}


def _axes_of_rows(resolution: Resolution) -> tuple[str, ...]:
    """What splits the batch: of the residual stream, else of any activation, else the mesh's first axis."""
    residual = _decision_of(RESIDUAL, resolution)
    others = (decision for decision in resolution.decided if decision.example.namespace == "act")
    for decision in (*(() if residual is None else (residual,)), *others):
        if axes := _split_dims(decision).get(BATCH):
            return axes
    return tuple(resolution.mesh.sizes)[:1] or ("axis",)


def _decision_of(name: str, resolution: Resolution) -> Decision | None:
    tensor = resolution.inventory.by_name.get(name)
    return next((d for d in resolution.decided if tensor in resolution.tensors_of(d)), None) if tensor else None


def _split_dims(decision: Decision) -> dict[str, tuple[str, ...]]:
    """The dims that are split, each with its axes."""
    axes = () if decision.assigned is None else decision.assigned.axes
    return {dim: split for dim, split in zip(decision.example.dims, axes, strict=False) if split != OPEN and split}


def _written(axes: tuple[str, ...]) -> str:
    """As a rule writes it: `fsdp`, `(dp, fsdp)`."""
    return axes[0] if len(axes) == 1 else f"({', '.join(axes)})"


def _mesh_place(resolution: Resolution) -> Location | None:
    return None if resolution.spec.mesh is None else resolution.spec.mesh.where


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
    inner = [segment for segment in tensor.path.segments if segment != LAYERS]
    return pattern_for(tensor.namespace, inner or tensor.path.segments)


def _whole_layout(tensor: Tensor) -> str:
    rank = sum(dim != LAYERS for dim in tensor.dims)
    return "[" + ", ".join(["None"] * rank) + "]"


def _own_source(resolution: Resolution) -> str | None:
    """The file that the spec was read from."""
    return next((r.where.source for r in resolution.spec.rules if r.origin == 0 and r.where.span.line), None)


def _first_rule(resolution: Resolution) -> Location | None:
    """The first of the file's own rules that always applies: a rule for everything else would stand before it."""
    own = [r.where for r in resolution.spec.rules if r.origin == 0 and r.where.span.line and not r.conditions]
    return min(own, key=lambda where: where.span) if own else None


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
