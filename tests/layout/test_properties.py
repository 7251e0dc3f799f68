"""The resolver against one written naively from the language's page, over random specs."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sharddsl.findings import NOWHERE, Location
from sharddsl.layout import OPEN, MeshSizes, Placement, resolve
from sharddsl.spec.model import (
    Axes,
    AxisRef,
    DimEntry,
    Fill,
    Follow,
    Named,
    Namespace,
    Open,
    Pattern,
    Positional,
    Replicated,
    Rule,
    Segment,
    Spec,
)  # fmt: skip
from sharddsl.tensors import Inventory, Path, Tensor
from tests.layout.test_matching import naive

SIZES = {"a": 2, "b": 3, "c": 1}
MESH = MeshSizes(SIZES)
HEADS = ("kv", 2)

# ------------------------------------------------------------------------------------------------ the naive resolver

Entry = Axes | Open


def entries_of(rule: Rule, dims: tuple[str, ...], base: list[Entry] | None) -> list[Entry]:
    """What a rule asks of each dim, `base` being what `..` or `follow` starts from."""
    layout = rule.layout
    if isinstance(layout, Follow):
        return base or [Axes()] * len(dims)
    if isinstance(layout, Named):
        by_name = {item.dim: item.entry for item in layout.entries}
        under = base if layout.inherit and base is not None else [Axes()] * len(dims)
        asked: list[Entry] = []
        for dim, below in zip(dims, under, strict=True):
            entry = by_name.get(dim, below)
            asked.append(Axes() if isinstance(entry, Fill) else entry)
        return asked
    own = [dim for dim in dims if dim != "layers"]
    written = list(layout.entries) if isinstance(layout, Positional) else []
    given_ = [entry for entry in written if not isinstance(entry, Fill)]
    row: dict[str, Entry] = {}
    if any(isinstance(entry, Fill) for entry in written) and len(given_) <= len(own):
        split = next(n for n, entry in enumerate(written) if isinstance(entry, Fill))
        tail = len(given_) - split
        for n, dim in enumerate(own):
            if n < split:
                row[dim] = given_[n]
            elif n >= len(own) - tail:
                row[dim] = given_[n - len(own)]
    else:
        row = dict(zip(own, given_, strict=False))
    return [row.get(dim, Axes()) for dim in dims]


def fits(tensor: Tensor, dim: int, axes: tuple[str, ...]) -> bool:
    units = dict(tensor.heads).get(tensor.dims[dim], tensor.shape[dim])
    return units is None or units % prod(SIZES[axis] for axis in axes) == 0


def expected_axes(tensor: Tensor, asked: list[Entry]) -> list[Any]:
    taken: list[list[str]] = [[] for _ in asked]

    def used(axis: str) -> bool:
        return any(axis in dim for dim in taken)

    for dim, entry in enumerate(asked):
        for ref in entry.axes if isinstance(entry, Axes) and not entry.optional else ():
            if not ref.optional and not used(ref.name):
                taken[dim].append(ref.name)
    for dim, entry in enumerate(asked):
        if isinstance(entry, Open):
            continue
        if entry.optional:
            kept: list[str] = []
            for ref in entry.axes:
                free = not used(ref.name) and ref.name not in kept
                if free and fits(tensor, dim, (*kept, ref.name)):
                    kept.append(ref.name)
                elif not (ref.optional and len(entry.axes) > 1):
                    kept = []
                    break
            taken[dim] += kept
        else:
            for ref in entry.axes:
                if ref.optional and not used(ref.name) and fits(tensor, dim, (*taken[dim], ref.name)):
                    taken[dim].append(ref.name)
    return [
        OPEN if isinstance(entry, Open) else tuple(dict.fromkeys(r.name for r in entry.axes if r.name in taken[dim]))
        for dim, entry in enumerate(asked)
    ]


def naive_entries(spec: Spec, tensor: Tensor, param: list[Entry] | None) -> list[Entry] | None:
    """Rule by rule, oldest first: the last that matches wins, on top of the one before where it has `..`."""
    won: list[Entry] | None = None
    for rule in spec.rules:
        if rule.pattern.namespace == tensor.namespace and naive(rule.pattern, tensor.path):
            under = param if isinstance(rule.layout, Follow) or won is None else won
            won = entries_of(rule, tensor.dims, under)
    return won


# ------------------------------------------------------------------------------------------------------- random input

REFS = st.builds(AxisRef, name=st.sampled_from(["a", "b", "c"]), optional=st.booleans())
AXES = st.builds(Axes, axes=st.lists(REFS, max_size=3).map(tuple), optional=st.booleans()).filter(
    lambda entry: bool(entry.axes) or not entry.optional
)
DIMS = ("layers", "x", "y", "kv")
ENTRY = st.one_of(AXES, AXES, AXES, st.just(Open()))


@st.composite
def positional(draw: st.DrawFn) -> Positional:
    entries: list[Axes | Open | Fill] = list(draw(st.lists(ENTRY, max_size=4)))
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), Fill())
    return Positional(entries=tuple(entries))


NAMED = st.builds(
    Named,
    entries=st.lists(st.builds(DimEntry, dim=st.sampled_from(DIMS), entry=ENTRY), max_size=3, unique_by=lambda i: i.dim)
    .map(tuple),
    inherit=st.booleans(),
)  # fmt: skip
LAYOUTS = st.one_of(positional(), NAMED, st.just(Replicated()))
NAMES = ("w", "v", "mlp")


@st.composite
def rules(draw: st.DrawFn, number: int) -> Rule:
    namespace: Namespace = draw(st.sampled_from(["param", "grad", "opt"]))
    layout = draw(LAYOUTS if namespace == "param" else st.one_of(LAYOUTS, st.just(Follow())))
    text = draw(st.sampled_from(["*", "w", "v", "mlp", "{w,v}", "**", "m*"]))
    last = draw(st.sampled_from(["w", "v", "*"]))
    segments = (Segment(text=text), Segment(text=last)) if draw(st.booleans()) else (Segment(text=last),)
    pattern = Pattern(namespace=namespace, segments=segments, text=".".join(s.text for s in segments))
    where = Location(f"rule {number}", NOWHERE)
    return Rule(pattern=pattern, layout=layout, where=where, pattern_at=where, layout_at=where)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    return Spec(name="random", rules=tuple(draw(rules(n)) for n in range(draw(st.integers(0, 6)))))


@st.composite
def inventories(draw: st.DrawFn) -> Inventory:
    held: list[Tensor] = []
    for first, last in product(("mlp", "w"), ("w", "v")):
        dims = tuple(draw(st.permutations(DIMS)))[: draw(st.integers(1, 4))]
        shape = tuple(draw(st.sampled_from([1, 2, 4, 6, 7, 12, None])) for _ in dims)
        shape = tuple(12 if dim == "kv" else size for dim, size in zip(dims, shape, strict=True))
        heads = (HEADS,) if "kv" in dims else ()
        path = Path((first, last))
        held.append(Tensor("param", path, dims, shape, "float32", None, heads))
        held.append(Tensor("grad", path, dims, shape, "float32", path, heads))
        held.append(Tensor("opt", Path(("mu", first, last)), dims, shape, "float32", path, heads))
    return Inventory("random", tuple(held))


@settings(max_examples=300, deadline=None)
@given(specs(), inventories())
def test_the_resolver_agrees_with_reading_the_rules_one_by_one(spec: Spec, held: Inventory) -> None:
    layout = resolve(spec, held, MESH)
    for tensor in held.of("param"):
        asked = naive_entries(spec, tensor, None)
        nothing: list[Entry] = [Axes()] * len(tensor.dims)
        wanted = expected_axes(tensor, asked or nothing)
        assert list(layout[tensor.name].axes or ()) == wanted
        for follower in (layout[f"grad.{tensor.path}"], layout[f"opt.mu.{tensor.path}"]):
            own = naive_entries(spec, follower.tensor, asked or nothing)
            assert list(follower.axes or ()) == expected_axes(tensor, own or asked or nothing)


@settings(max_examples=200, deadline=None)
@given(specs(), inventories())
def test_what_holds_of_every_placement(spec: Spec, held: Inventory) -> None:
    for placed in resolve(spec, held, MESH):
        assert placed.axes is not None
        split = [axis for axes in placed.axes if axes != OPEN for axis in axes]
        assert len(split) == len(set(split))
        assert_covers(placed)


def assert_covers(placed: Placement) -> None:
    """The parts together are no smaller than the array, and no part is larger than it has to be."""
    assert placed.axes is not None
    assert placed.local_shape is not None
    for size, local, axes in zip(placed.tensor.shape, placed.local_shape, placed.axes, strict=True):
        if size is not None and local is not None:
            ways = 1 if axes == OPEN else prod(SIZES[axis] for axis in axes)
            assert local * ways >= size > (local - 1) * ways
