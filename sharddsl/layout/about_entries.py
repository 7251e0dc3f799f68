"""Findings about the entries of layouts: axes that are unknown or used twice, ranks, `..`, `?`.

Each function puts one kind of problem into words; problems with one root cause (the same entry of the same rule, in
however many tensors) become one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sharddsl.findings import NOWHERE, Edit, Finding, Location
from sharddsl.layout import about_sizes
from sharddsl.layout.naming import names_of, note_of
from sharddsl.layout.problems import AxisTwice, Dropped, NoBase, TooManyEntries, UnknownAxis
from sharddsl.layout.resolution import Resolution
from sharddsl.layout.words import did_you_mean, listed
from sharddsl.spec.model import Fill, Named, Positional
from sharddsl.spec.report import nearest
from sharddsl.tensors.model import LAYERS, Tensor

P = TypeVar("P", TooManyEntries, NoBase, UnknownAxis, AxisTwice, Dropped)


@dataclass(frozen=True)
class Cause(Generic[P]):
    """Problems of one root cause: the first of them, where they are, and the tensors that show it."""

    problem: P
    places: tuple[Location, ...]
    tensors: tuple[Tensor, ...]


def findings(resolution: Resolution) -> tuple[Finding, ...]:
    """All findings about entries, those about sizes included."""
    return (
        *unknown_axes(resolution),
        *axes_twice(resolution),
        *too_many_entries(resolution),
        *entries_for_scalars(resolution),
        *no_base(resolution),
        *about_sizes.findings(resolution),
        *dropped(resolution),
    )


def _causes(
    resolution: Resolution,
    kind: type[P],
    key: Callable[[P, Tensor], Hashable],
    where: Callable[[P], Location],
) -> Iterator[Cause[P]]:
    found: dict[Hashable, list[tuple[P, Sequence[Tensor]]]] = {}
    for decision in resolution.decided:
        for problem in decision.problems:
            if isinstance(problem, kind):
                item = (problem, resolution.tensors_of(decision))
                found.setdefault(key(problem, decision.example), []).append(item)
    for items in found.values():
        places = tuple(dict.fromkeys(where(problem) for problem, _ in items))
        yield Cause(items[0][0], places, tuple(dict.fromkeys(t for _, tensors in items for t in tensors)))


def unknown_axes(resolution: Resolution) -> Iterator[Finding]:
    """SHD101: an axis that the mesh lacks, once for all its uses."""
    known = tuple(resolution.mesh.sizes)
    for cause in _causes(resolution, UnknownAxis, lambda p, _: p.axis.name, _axis_place):
        name = cause.problem.axis.name
        near = nearest(name, known)
        yield Finding(
            "SHD101",
            "error",
            f"axis {name} is not in the mesh {resolution.mesh}",
            cause.places[0],
            help=did_you_mean(name, known, "the mesh has") + _renamed(cause.problem),
            tensor=cause.tensors[0].name,
            count=len(cause.tensors),
            note=note_of(cause.tensors),
            related=tuple((place, f"{name} here too") for place in cause.places[1:]),
            fix=_respelled(name, near[0], cause.places, resolution) if near else (),
        )


def _respelled(name: str, instead: str, places: Sequence[Location], resolution: Resolution) -> tuple[Edit, ...]:
    """The axis under another name wherever it stands, `?` and all. None where it came through a `let`, or from a base
    that calls it otherwise: another text stands there."""
    texts = [resolution.text_at(place) for place in places]
    if not all(text in {name, f"{name}?"} for text in texts):
        return ()
    return tuple(Edit(place, instead + "?" * (text != name)) for place, text in zip(places, texts, strict=True))


def _renamed(problem: UnknownAxis) -> str:
    """The remedy for an axis that a base names and the mesh of a file nearer by does not have."""
    name = problem.axis.name
    return f"\nor give the base's axis its name here: extends … with {name}=…" if problem.rule.origin > 0 else ""


def axes_twice(resolution: Resolution) -> Iterator[Finding]:
    """SHD102: an axis splits two dims of a tensor, or one dim twice."""

    def key(problem: AxisTwice, tensor: Tensor) -> Hashable:
        return (
            problem.rule.where,
            problem.axis.name,
            tensor.dims[problem.first],
            tensor.dims[problem.second],
            _axis_place(problem),
        )

    for cause in _causes(resolution, AxisTwice, key, _axis_place):
        problem, tensor, axis = cause.problem, cause.tensors[0], cause.problem.axis.name
        first, second = tensor.dims[problem.first], tensor.dims[problem.second]
        if problem.first == problem.second:
            message = f"{axis} stands twice on {second} of {tensor.name}"
            help_ = f"write {axis} once"
        elif first == second:
            message = f"{axis} is on two dims called {first} of {tensor.name} ({problem.first} and {problem.second})"
            help_ = "an axis splits one dim of a tensor: say which one in a positional layout"
        else:
            message = f"{axis} is on two dims of {tensor.name}: {first} and {second}"
            help_ = (
                f"an axis splits one dim of a tensor, even an axis of size 1: keep it on {first} and leave {second} "
                f"whole,\nor write `{axis}?` on the dim that can do without"
            )
        yield Finding(
            "SHD102",
            "error",
            message,
            cause.places[0],
            help=help_,
            tensor=tensor.name,
            dim=second,
            count=len(cause.tensors),
            note=note_of(cause.tensors),
        )


def too_many_entries(resolution: Resolution) -> Iterator[Finding]:
    """SHD301: a positional layout with more entries than one layer's tensor has dims."""
    for cause in _causes(resolution, TooManyEntries, lambda p, _: p.rule.where, lambda p: p.rule.layout_at):
        entries, tensor = cause.problem.entries, cause.tensors[0]
        ranks = sorted({_rank(t) for t in cause.tensors})
        others = "" if len(ranks) == 1 else f", and for others of {ranks[0]} to {ranks[-1]} dims"
        most = f"write at most {_count(ranks[0], 'entry', 'entries')}"
        named = "name the dims: {…}"
        help_ = f"{most}, or {named}" if len(ranks) == 1 else f"the tensors differ in rank: {named}"
        if LAYERS in tensor.dims and entries == _rank(tensor) + 1:
            help_ += (
                "\na positional layout speaks of one layer, and the stack of layers is whole: leave its entry out"
                f"\nor split it by name: {{.., {LAYERS}: axis}}"
            )
        yield Finding(
            "SHD301",
            "error",
            f"{entries} entries for the {_count(_rank(tensor), 'dim', 'dims')} of {tensor.name}{others}",
            cause.places[0],
            help=help_,
            tensor=tensor.name,
            count=len(cause.tensors),
            note=note_of(cause.tensors),
        )


def _rank(tensor: Tensor) -> int:
    """The dims that a positional layout speaks of: those of one layer."""
    return sum(dim != LAYERS for dim in tensor.dims)


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def entries_for_scalars(resolution: Resolution) -> Iterator[Finding]:
    """SHD301: a layout with entries whose rule matches scalars alone. A rule that matches others too just does not
    reach the scalars."""
    for number, rule in enumerate(resolution.rules):
        decisions = resolution.matched.get(number, ())
        if not isinstance(rule.layout, Positional) or not decisions or any(d.example.dims for d in decisions):
            continue
        entries = [entry for entry in rule.layout.entries if not isinstance(entry, Fill)]
        if entries:
            tensors = [tensor for decision in decisions for tensor in resolution.tensors_of(decision)]
            yield Finding(
                "SHD301",
                "error",
                f"{_count(len(entries), 'entry', 'entries')} for {listed(names_of(tensors), 3)}, "
                f"which {'is a scalar' if len(tensors) == 1 else 'are scalars'}",
                rule.layout_at,
                help="a scalar has no dims to split: leave the rule out, or write `replicated`",
                tensor=tensors[0].name,
                count=len(tensors),
            )


def no_base(resolution: Resolution) -> Iterator[Finding]:
    """SHD007: `..` or `follow` where there is nothing to start from."""
    for cause in _causes(resolution, NoBase, lambda p, _: p.rule.where, lambda p: p.rule.layout_at):
        tensor = cause.tensors[0]
        if isinstance(cause.problem.rule.layout, Named):
            message = f"`..` has no base: no earlier rule matches {listed(names_of(cause.tensors), 3)}"
            if tensor.namespace in {"grad", "opt"}:
                message += f", which {'belongs' if len(cause.tensors) == 1 else 'belong'} to no param"
            help_ = "write the layout whole, or put a rule for these tensors before this one"
        else:
            message = f"`follow` has no param to follow for {listed(names_of(cause.tensors), 3)}"
            help_ = "`follow` is for grad and opt tensors; write the layout"
        yield Finding(
            "SHD007",
            "error",
            message,
            cause.places[0],
            help=help_,
            tensor=tensor.name,
            count=len(cause.tensors),
            note=note_of(cause.tensors),
        )


def dropped(resolution: Resolution) -> Iterator[Finding]:
    """SHD307: each optional axis that was not used, with the reason."""

    def place(problem: Dropped) -> Location:
        return problem.where or (problem.rule.layout_at if problem.rule else Location("", NOWHERE))

    for cause in _causes(resolution, Dropped, lambda p, _: (place(p), p.drop), place):
        drop, tensor = cause.problem.drop, cause.tensors[0]
        axes = drop.axes[0] if len(drop.axes) == 1 else f"({', '.join(drop.axes)})"
        yield Finding(
            "SHD307",
            "info",
            f"{axes} was dropped on {drop.dim} of {listed(names_of(cause.tensors), 4)}: {drop.why}",
            cause.places[0],
            tensor=tensor.name,
            dim=drop.dim,
            count=len(cause.tensors),
        )


def _axis_place(problem: UnknownAxis | AxisTwice) -> Location:
    return problem.axis.where or problem.rule.layout_at
