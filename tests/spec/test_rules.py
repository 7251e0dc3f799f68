"""What statements become: patterns, layouts and conditions, each expected value written out."""

from __future__ import annotations

import pytest

from sharddsl.findings import Location, Span
from sharddsl.spec import parse
from sharddsl.spec.model import (
    Axes,
    AxisRef,
    Binary,
    DimEntry,
    Entry,
    Fill,
    Follow,
    LayoutSpec,
    Mesh,
    MeshAxis,
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
    Unary,
)


def rules(text: str, **options: object) -> tuple[Rule, ...]:
    return parse(text, **options).checked().rules  # type: ignore[arg-type]


def only(text: str) -> Rule:
    (rule,) = rules(text)
    return rule


# ------------------------------------------------------------------------------------------------------------- patterns

PATTERNS: list[tuple[str, Namespace, tuple[str, ...], bool, str]] = [
    # text of a rule's pattern        namespace  segments                 rooted  as a person would write it
    ("mlp.w_in", "param", ("mlp", "w_in"), False, "mlp.w_in"),
    ("attn.{wq, wk}", "param", ("attn", "{wq,wk}"), False, "attn.{wq, wk}"),
    ("w_{in,gate}", "param", ("w_{in,gate}",), False, "w_{in, gate}"),
    ("*", "param", (), False, "*"),
    ("**", "param", ("**",), False, "**"),
    ("/embed.w", "param", ("embed", "w"), True, "/embed.w"),
    ("/*", "param", ("*",), True, "/*"),
    ("param", "param", (), False, "param"),
    ("param.mlp.w_in", "param", ("mlp", "w_in"), False, "mlp.w_in"),
    ("param.act", "param", ("act",), False, "param.act"),
    ("act", "act", (), False, "act"),
    ("act.*", "act", (), False, "act.*"),
    ("act.attn.q", "act", ("attn", "q"), False, "act.attn.q"),
    ("grad.wq", "grad", ("wq",), False, "grad.wq"),
    ("batch", "batch", (), False, "batch"),
    ("cache.{k, v}", "cache", ("{k,v}",), False, "cache.{k, v}"),
    ("opt./mu.embed.w", "opt", ("mu", "embed", "w"), True, "opt./mu.embed.w"),
    ("mlp.act", "param", ("mlp", "act"), False, "mlp.act"),
    ("actor.w", "param", ("actor", "w"), False, "actor.w"),
]


@pytest.mark.parametrize(("text", "namespace", "segments", "rooted", "written"), PATTERNS)
def test_pattern(text: str, namespace: Namespace, segments: tuple[str, ...], rooted: bool, written: str) -> None:
    assert only(f"{text}: replicated").pattern == Pattern(
        namespace=namespace, segments=tuple(Segment(text=s) for s in segments), rooted=rooted, text=written
    )


def test_quoted_and_integer_segments_are_literal() -> None:
    assert only('blocks."act*".0.w: []').pattern == Pattern(
        namespace="param",
        segments=(
            Segment(text="blocks"),
            Segment(text="act*", literal=True),
            Segment(text="0", literal=True),
            Segment(text="w"),
        ),
        text='blocks."act*".0.w',
    )
    assert only('"act".w: []').pattern.namespace == "param"


@pytest.mark.parametrize(
    ("text", "layers"),
    [("[3]", (3, 4)), ("[0:4]", (0, 4)), ("[:4]", (None, 4)), ("[2:]", (2, None)), ("[:]", (None, None))],
)
def test_layers(text: str, layers: tuple[int | None, int | None]) -> None:
    assert only(f"layers{text}.w: []").pattern.segments == (Segment(text="layers", layers=layers), Segment(text="w"))


BLOCKS = [
    ("attn { wo: [] }", "attn.wo", "param", ("attn", "wo")),
    ("layers { attn { wo: [] } }", "layers.attn.wo", "param", ("layers", "attn", "wo")),
    ("act { attn { q: [] } }", "act.attn.q", "act", ("attn", "q")),
    ("act.attn { q: [] }", "act.attn.q", "act", ("attn", "q")),
    ("act { *: [] }", "act.*", "act", ()),
    ("attn { *: [] }", "attn.*", "param", ("attn", "*")),
    ("opt { /mu.embed.w: [] }", "opt./mu.embed.w", "opt", ("mu", "embed", "w")),
    ("opt { /mu { embed.w: [] } }", "opt./mu.embed.w", "opt", ("mu", "embed", "w")),
    ("/layers { attn.wo: [] }", "/layers.attn.wo", "param", ("layers", "attn", "wo")),
    ("opt { act.w: [] }", "opt.act.w", "opt", ("act", "w")),
    ("param { act.w: [] }", "param.act.w", "param", ("act", "w")),
    ("attn { when tied { opt.w: [] } }", "attn.opt.w", "param", ("attn", "opt", "w")),
]


@pytest.mark.parametrize(("text", "written", "namespace", "segments"), BLOCKS)
def test_block(text: str, written: str, namespace: Namespace, segments: tuple[str, ...]) -> None:
    pattern = only(text).pattern
    assert (pattern.text, pattern.namespace) == (written, namespace)
    assert tuple(segment.text for segment in pattern.segments) == segments
    assert pattern.rooted is ("/" in written)


# -------------------------------------------------------------------------------------------------------------- layouts


def axes(*names: str, optional: bool = False) -> Axes:
    """An entry without its place; a name that ends in `?` is optional."""
    refs = tuple(AxisRef(name=name.removesuffix("?"), optional=name.endswith("?")) for name in names)
    return Axes(axes=refs, optional=optional)


def dims(**entries: Entry) -> tuple[DimEntry, ...]:
    return tuple(DimEntry(dim=dim, entry=entry) for dim, entry in entries.items())


LETS = """\
let data = (dp, fsdp)
let one = mp
let maybe = mp?
let pair = (dp, fsdp)?
let each = (dp?, fsdp)
let all = (pp, data, one)
let alias = data
let col = [data, one]
let row = {embed: data, ffn: maybe}
let same = col
let whole = replicated
"""

LAYOUTS: list[tuple[str, LayoutSpec]] = [
    ("[]", Positional(entries=())),
    ("[fsdp, None]", Positional(entries=(axes("fsdp"), axes()))),
    ("[(dp, fsdp), mp?]", Positional(entries=(axes("dp", "fsdp"), axes("mp?")))),
    ("[(dp, fsdp)?, (dp, fsdp?)]", Positional(entries=(axes("dp", "fsdp", optional=True), axes("dp", "fsdp?")))),
    ("[dp, ...]", Positional(entries=(axes("dp"), Fill()))),
    ("{}", Named(entries=())),
    ("{embed: fsdp, ffn: None}", Named(entries=dims(embed=axes("fsdp"), ffn=axes()))),
    ("{..}", Named(entries=(), inherit=True)),
    ("{.., layers: pp}", Named(entries=dims(layers=axes("pp")), inherit=True)),
    ("replicated", Replicated()),
    ("[data]", Positional(entries=(axes("dp", "fsdp"),))),
    ("[data?]", Positional(entries=(axes("dp", "fsdp", optional=True),))),
    ("[one, one?]", Positional(entries=(axes("mp"), axes("mp?")))),
    ("[maybe]", Positional(entries=(axes("mp?"),))),
    ("[pair]", Positional(entries=(axes("dp", "fsdp", optional=True),))),
    ("[each]", Positional(entries=(axes("dp?", "fsdp"),))),
    ("[all]", Positional(entries=(axes("pp", "dp", "fsdp", "mp"),))),
    ("[(maybe, data)]", Positional(entries=(axes("mp?", "dp", "fsdp"),))),
    ("[(one?, dp)]", Positional(entries=(axes("mp?", "dp"),))),
    ("{batch: alias}", Named(entries=dims(batch=axes("dp", "fsdp")))),
    ("col", Positional(entries=(axes("dp", "fsdp"), axes("mp")))),
    ("same", Positional(entries=(axes("dp", "fsdp"), axes("mp")))),
    ("row", Named(entries=dims(embed=axes("dp", "fsdp"), ffn=axes("mp?")))),
    ("whole", Replicated()),
]


@pytest.mark.parametrize(("text", "expected"), LAYOUTS, ids=[text for text, _ in LAYOUTS])
def test_layout(text: str, expected: LayoutSpec) -> None:
    assert placeless(only(f"{LETS}w: {text}").layout) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("act.w: [*, mp]", Positional(entries=(Open(), axes("mp")))),
        ("grad.w: {embed: *}", Named(entries=dims(embed=Open()))),
        ("grad: follow", Follow()),
        ("opt.w: follow", Follow()),
        ("let o = {embed: *}\nact: o", Named(entries=dims(embed=Open()))),
        ("let f = follow\nopt: f", Follow()),
    ],
)
def test_layout_that_only_some_namespaces_have(text: str, expected: LayoutSpec) -> None:
    assert placeless(only(text).layout) == expected


def placeless(layout: LayoutSpec) -> LayoutSpec:
    """The layout without the places of its entries."""
    match layout:
        case Positional(entries=entries):
            return Positional(entries=tuple(_placeless(entry) for entry in entries))
        case Named(entries=items, inherit=inherit):
            found = (DimEntry(dim=item.dim, entry=_placeless(item.entry)) for item in items)
            return Named(entries=tuple(found), inherit=inherit)
        case _:
            return layout


def _placeless(entry: Entry) -> Entry:
    match entry:
        case Axes(axes=refs, optional=optional):
            return Axes(axes=tuple(AxisRef(name=r.name, optional=r.optional) for r in refs), optional=optional)
        case Open():
            return Open()
        case Fill():
            return Fill()


def test_places_are_where_a_rule_says_it() -> None:
    rule = only("let data = (dp, fsdp)\nattn { wq: [data, (mp, pp)] @pinned_host }")

    def at(column: int, end: int) -> Location:
        return Location("<text>", Span(2, column, 2, end))

    assert (rule.where, rule.pattern_at, rule.layout_at) == (at(8, 41), at(8, 10), at(12, 28))
    assert isinstance(rule.layout, Positional)
    first, second = rule.layout.entries
    assert isinstance(first, Axes)
    assert isinstance(second, Axes)
    assert [ref.where for ref in first.axes] == [at(13, 17), at(13, 17)]
    assert [ref.where for ref in second.axes] == [at(20, 22), at(24, 26)]
    assert (first.where, second.where) == (at(13, 17), at(19, 27))
    assert rule.memory == "pinned_host"


def test_a_layout_by_name_lies_where_it_is_used() -> None:
    rule = only("let col = {embed: mp}\nw: col")
    here = Location("<text>", Span(2, 4, 2, 7))
    assert isinstance(rule.layout, Named)
    (item,) = rule.layout.entries
    assert isinstance(item.entry, Axes)
    assert (rule.layout_at, item.where, item.entry.where, item.entry.axes[0].where) == (here, here, here, here)


def test_lets_may_come_after_their_use_and_long_chains_resolve() -> None:
    assert placeless(only("w: [a]\nlet a = (b, c)\nlet b = x").layout) == Positional(entries=(axes("x", "c"),))
    chain = "".join(f"let a{i} = a{i + 1}\n" for i in range(5000))
    assert placeless(only(f"{chain}let a5000 = x\nw: [a0]").layout) == Positional(entries=(axes("x"),))


def test_lets_that_double_are_stopped_at_a_finding() -> None:
    doubling = "let a0 = x\n" + "".join(f"let a{i} = (a{i - 1}, a{i - 1})\n" for i in range(1, 60))
    loaded = parse(f"{doubling}w: [a59]")
    assert [finding.code for finding in loaded.findings] == ["SHD007"]
    assert "one dim over 128 axes" in loaded.findings[0].message


def test_uses_of_large_lets_are_stopped_at_a_finding() -> None:
    tuple_of_64 = f"let t = ({', '.join(f'x{i}' for i in range(64))})\n"
    layout_of_250 = f"let l = [{', '.join(['t'] * 250)}]\n"
    loaded = parse(tuple_of_64 + layout_of_250 + "".join(f"w{i}: l\n" for i in range(100)))
    assert [finding.message for finding in loaded.findings] == [
        "the `let`s of this file expand to more than 500,000 axes"
    ]


# ----------------------------------------------------------------------------------------------------------- conditions

MESH = "mesh: [dp=1, fsdp=4, seq=2]\n"


def greater(left: str, right: int) -> Binary:
    return Binary(op=">", left=Name(text=left), right=Number(value=right))


CONDITIONS = [
    ("tied", Name(text="tied")),
    ("not tied", Unary(op="not", operand=Name(text="tied"))),
    ("mode == decode", Binary(op="==", left=Name(text="mode"), right=Name(text="decode"))),
    ("dp > 1", greater("dp", 1)),
    ("mesh.dp > 1", greater("mesh.dp", 1)),
    ("seq > 1", greater("seq", 1)),
    ("mesh.seq > 1", greater("mesh.seq", 1)),
    ("vocab > 4 KiB", greater("vocab", 4096)),
    ("vocab > 3 TB", greater("vocab", 3_000_000_000_000)),
    (
        "heads % (fsdp * 2) == -1",
        Binary(
            op="==",
            left=Binary(
                op="%",
                left=Name(text="heads"),
                right=Binary(op="*", left=Name(text="fsdp"), right=Number(value=2)),
            ),
            right=Unary(op="-", operand=Number(value=1)),
        ),
    ),
]


@pytest.mark.parametrize(("text", "expected"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_condition(text: str, expected: Binary | Unary | Name) -> None:
    (condition,) = only(f"{MESH}when {text} {{ w: [] }}").conditions
    assert condition.expr == expected
    assert condition.text == text
    assert condition.where == Location("<text>", Span(2, 6, 2, 6 + len(text)))


def test_nested_conditions_add_up_from_the_outside_in() -> None:
    first, second, third = rules("when tied { a: []\nx { when not tied { b: [] } } }\nc: []")
    assert [[condition.text for condition in rule.conditions] for rule in (first, second, third)] == [
        ["tied"],
        ["tied", "not tied"],
        [],
    ]


def test_a_fragment_may_ask_about_axes_that_it_does_not_have_yet() -> None:
    (condition,) = only("when mp > 1 { w: [] }").conditions
    assert condition.expr == greater("mp", 1)


# ------------------------------------------------------------------------------------------------------------- the rest


def test_mesh() -> None:
    spec = parse("mesh: [dp=1 @dcn, fsdp=32 @dcn(4), mp=-1 @dcn(2)] allow_idle").checked()

    def at(column: int, end: int) -> Location:
        return Location("<text>", Span(1, column, 1, end))

    assert spec.mesh == Mesh(
        axes=(
            MeshAxis(name="dp", size=1, dcn="whole", where=at(8, 17)),
            MeshAxis(name="fsdp", size=32, dcn=4, where=at(19, 34)),
            MeshAxis(name="mp", size=-1, dcn=2, where=at(36, 49)),
        ),
        allow_idle=True,
        where=at(1, 61),
    )


def test_sizes_from_outside_replace_those_of_the_mesh() -> None:
    mesh = parse("mesh: [dp=-1, fsdp=4 @dcn, mp=2]", mesh={"fsdp": 8, "dp": 1, "mp": -1}).checked().mesh
    assert mesh is not None
    assert [(axis.name, axis.size, axis.dcn) for axis in mesh.axes] == [
        ("dp", 1, None),
        ("fsdp", 8, "whole"),
        ("mp", -1, None),
    ]
    assert mesh.axes[1].where == Location("spec.mesh.fsdp", Span(1, 1, 1, 17))


def test_rules_from_outside_come_last_and_may_use_the_files_lets() -> None:
    found = rules("let data = (dp, fsdp)\nw: [mp]", rules=["act: [data]", "w: replicated"])
    assert [(rule.origin, rule.pattern.text, rule.where.source) for rule in found] == [
        (0, "w", "<text>"),
        (-1, "act", "--rule 1"),
        (-1, "w", "--rule 2"),
    ]
    assert placeless(found[1].layout) == Positional(entries=(axes("dp", "fsdp"),))
