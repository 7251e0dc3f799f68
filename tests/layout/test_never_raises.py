"""Whatever a spec and an inventory hold, resolving them and saying what came out never raises."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from sharddsl.findings import Location, Span, render
from sharddsl.layout import MeshSizes, resolve
from sharddsl.layout.report import to_json, to_text
from sharddsl.spec.model import (
    NAMESPACES,
    Axes,
    AxisRef,
    Binary,
    Condition,
    DimEntry,
    Fill,
    Follow,
    Mesh,
    MeshAxis,
    Mode,
    Name,
    Named,
    Namespace,
    Number,
    Open,
    Pattern,
    Positional,
    Replicated,
    Rule,
    Segment,
    Spec,
)  # fmt: skip
from sharddsl.tensors import Inventory, Path, Tensor

SOURCE = "my.shard"
MESHES = st.fixed_dictionaries({"a": st.sampled_from([1, 2, 6]), "mp": st.sampled_from([1, 3, 4])})
DIMS = ("layers", "batch", "seq", "embed", "heads", "kv_heads", "fused")
WORDS = ("layers", "mlp", "w", "lm_head", "mu", "resid", "count", "0")


def at(line: int) -> Location:
    return Location(SOURCE, Span(line, 1, line, 2))


REFS = st.builds(
    AxisRef, name=st.sampled_from(["a", "mp", "unknown"]), optional=st.booleans(), where=st.none() | st.just(at(1))
)
AXES = st.builds(Axes, axes=st.lists(REFS, max_size=3).map(tuple), optional=st.booleans())
ENTRIES = st.one_of(AXES, st.just(Open()), st.just(Fill()))
ITEMS = st.builds(DimEntry, dim=st.sampled_from((*DIMS, "nowhere")), entry=ENTRIES)
LAYOUTS = st.one_of(
    st.lists(ENTRIES, max_size=5).map(lambda entries: Positional(entries=tuple(entries))),
    st.builds(Named, entries=st.lists(ITEMS, max_size=3).map(tuple), inherit=st.booleans()),
    st.just(Replicated()),
    st.just(Follow()),
)
RANGES = st.none() | st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
TEXTS = st.sampled_from((*WORDS, "*", "**", "{w,gone}", "m*", "{mlp,w}_{a,b}"))
SEGMENTS = st.builds(Segment, text=TEXTS, literal=st.booleans(), layers=RANGES)
CONDITIONS = st.builds(
    lambda op, name, number: Condition(
        expr=Binary(op=op, left=Name(text=name), right=Number(value=number)), text=f"{name} {op} {number}"
    ),
    st.sampled_from(["<", "/", "==", "%"]),
    st.sampled_from(["mp", "batch", "tied", "mode", "hosts", "embed"]),
    st.integers(0, 2),
)


@st.composite
def rules(draw: st.DrawFn, line: int) -> Rule:
    namespace: Namespace = draw(st.sampled_from(NAMESPACES))
    segments = tuple(draw(st.lists(SEGMENTS, max_size=3)))
    text = ".".join(segment.text for segment in segments)
    return Rule(
        pattern=Pattern(namespace=namespace, segments=segments, rooted=draw(st.booleans()), text=text),
        layout=draw(LAYOUTS),
        memory=draw(st.sampled_from([None, "pinned_host"])),
        conditions=tuple(draw(st.lists(CONDITIONS, max_size=1))),
        where=at(line),
        pattern_at=at(line),
        layout_at=at(line),
        origin=draw(st.sampled_from([0, 0, 1, -1])),
    )


@st.composite
def tensors(draw: st.DrawFn, namespace: Namespace) -> Tensor:
    segments = tuple(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)))
    layer = draw(st.none() | st.integers(0, 4))
    dims = tuple(draw(st.lists(st.sampled_from(DIMS), max_size=4)))
    shape = tuple(draw(st.sampled_from([None, 0, 1, 6, 8, 50])) for _ in dims)
    param = draw(st.sampled_from([None, Path(("mlp", "w")), Path(("w",))])) if namespace in {"grad", "opt"} else None
    heads = (("fused", 2),) if "fused" in dims else ()
    return Tensor(namespace, Path(segments, layer), dims, shape, "bfloat16", param, heads)


@st.composite
def inventories(draw: st.DrawFn) -> Inventory:
    held = [draw(tensors(namespace)) for namespace in draw(st.lists(st.sampled_from(NAMESPACES), max_size=8))]
    unique = {tensor.name: tensor for tensor in held}
    sizes: dict[str, int | None] = {"heads": 8, "kv_heads": draw(st.sampled_from([None, 0, 2, 8])), "batch": None}
    mode: Mode = draw(st.sampled_from(["train", "prefill", "decode"]))
    return Inventory("random", tuple(unique.values()), sizes, draw(st.sampled_from([None, True, False])), mode)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 6).flatmap(lambda count: st.tuples(*(rules(line + 1) for line in range(count)))),
    inventories(),
    MESHES,
    st.sampled_from([None, "mp"]),
    st.sampled_from([None, 1, 2, 5]),
)
def test_never_raises(
    lines: tuple[Rule, ...], held: Inventory, sizes: dict[str, int], inferred: str | None, hosts: int | None
) -> None:
    mesh = Mesh(axes=tuple(MeshAxis(name=name, size=size) for name, size in sizes.items()))
    sources = {SOURCE: "one\ntwo\nthree\n"}
    spec = Spec(name="random", mesh=mesh, rules=lines)
    layout = resolve(spec, held, MeshSizes(sizes, {}, None, inferred), hosts=hosts, sources=sources)
    assert [placement.tensor for placement in layout] == list(held.tensors)
    assert json.loads(json.dumps(to_json(layout)))["version"] == 1
    assert to_text(layout, 80).startswith("random")
    for finding in layout.findings:
        assert finding.name in render([finding], sources)
