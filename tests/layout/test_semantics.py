"""What layouts mean: the winner, positions and names, `..`, `?`, `*`, `...`, `follow`, and the fall-backs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharddsl.layout import Drop
from tests.layout.cases import codes, only, place, resolved, tensors, tiny

W = "mlp.w: embed 16, ffn 32"
MESH = "mesh: [a=2, b=2, c=4]\n"


def axes(text: str, *lines: str, of: str = "mlp.w") -> tuple[object, ...] | None:
    layout = resolved(MESH + text, tensors(*(lines or (W,))))
    assert [f for f in layout.findings if f.severity == "error"] == []
    return layout[of].axes


# ------------------------------------------------------------------------------------------------------- the winner


def test_the_last_rule_wins_whole() -> None:
    assert axes("*: {embed: a, ffn: b}\nmlp.w: {ffn: c}") == ((), ("c",))


def test_order_counts_and_precision_does_not() -> None:
    assert axes("mlp.w: [a, b]\n*: {embed: c}") == (("c",), ())


def test_a_rule_under_a_false_condition_does_not_count() -> None:
    text = "*: {embed: a}\nwhen c > 4 { mlp.w: [b, c] }"
    assert axes(text) == (("a",), ())


def test_an_unknown_condition_is_listed_and_its_rules_do_not_count() -> None:
    layout = resolved(MESH + "*: {embed: a}\nwhen batch > 4 { mlp.w: [b, c] }", tensors(W, "other: batch ?"))
    assert layout["mlp.w"].axes == (("a",), ())
    assert layout.unknown == ("batch > 4 (taken not to hold)",)
    assert layout.findings == ()


def test_an_unknown_condition_is_looked_at_both_ways() -> None:
    text = MESH + "*: {embed: a}\nwhen batch > 4 { mlp.w: [b, b] }\nother: [c, c]"
    layout = resolved(text, tensors(W, "other: x 4, batch ?"))
    told = [(f.code, f.severity, f.message) for f in layout.findings]
    assert told == [
        ("SHD102", "error", "c is on two dims of other: x and batch"),  # in any case
        ("SHD102", "warning", "if `batch > 4`: b is on two dims of mlp.w: embed and ffn"),
    ]
    assert layout["mlp.w"].axes == (("a",), ())


def test_a_finding_within_a_when_depends_on_that_alone() -> None:
    text = MESH + "*: [a]\nwhen batch > 4 { mlp.w: [b, b] }\nwhen hosts > 1 { gone: [a] }"
    layout = resolved(text, tensors(W))
    assert [(f.code, f.severity, f.message.partition(":")[0]) for f in layout.findings] == [
        ("SHD102", "warning", "if `batch > 4`"),
        ("SHD201", "warning", "if `hosts > 1`"),
    ]


@pytest.mark.parametrize(
    ("conditions", "axes", "assumed"),
    [
        (("batch > 4", "batch <= 4"), (("a",), ()), (False, True)),
        (("batch % 8 == 0", "not batch % 8 == 0"), (("a",), ()), (False, True)),
        (("tied", "not tied"), (("a",), ()), (False, True)),
        (("batch > 4 or c == 4", "batch > 4"), (("b",), ()), (False,)),
    ],
)
def test_of_conditions_that_exclude_each_other_one_is_taken_to_hold(
    conditions: tuple[str, str], axes: tuple[object, ...], assumed: tuple[bool, ...]
) -> None:
    first, second = conditions
    text = MESH + f"when {first} {{ mlp.w: [b] }}\nwhen {second} {{ mlp.w: [a] }}"
    layout = resolved(text, tensors(W))
    assert layout["mlp.w"].axes == axes
    assert layout.findings == ()
    assert [text.endswith("(taken to hold)") for text in layout.unknown] == list(assumed)


def test_what_only_one_way_lacks_is_said_of_that_way() -> None:
    text = MESH + "when hosts * 2 > devices { mlp.w: [b] }\nwhen hosts * 2 == devices { mlp.w: [a] }"
    layout = resolved(text, tensors(W))
    assert [(f.code, f.severity) for f in layout.findings] == [("SHD202", "error")]
    assert layout.findings[0].message == (
        "if not `hosts * 2 > devices` and not `hosts * 2 == devices`: mlp.w has no rule: 100 % of the bytes of param"
    )
    assert resolved(text, tensors(W), hosts=8)["mlp.w"].axes == (("a",), ())


def test_a_dim_hides_an_axis_of_its_name_and_other_sizes_hide_nothing() -> None:
    text = "mesh: [seq=2, mp=4]\nmlp.w: replicated\nwhen seq > 1 { mlp.w: [seq] }\nwhen mp == 4 { mlp.w: [mp] }"
    held = tensors(W)
    held = type(held)("these", held.tensors, {"mp": 3, "seq": 1})
    assert resolved(text, held)["mlp.w"].axes == (("mp",), ())
    layout = resolved(text.replace("when mp == 4", "when mp == 3"), type(held)("these", held.tensors))
    assert layout["mlp.w"].axes == ((), ())
    assert layout.unknown == ("seq > 1 (taken not to hold)",)


def test_a_condition_without_a_value_is_a_finding() -> None:
    layout = resolved(MESH + "*: {embed: a}\nwhen embed / (c - 4) > 1 { mlp.w: [b, c] }", tensors(W))
    finding = only(layout, "SHD007")
    assert (finding.severity, place(finding)) == ("error", (3, 6))
    assert "embed / (c - 4) > 1" in finding.message
    assert layout["mlp.w"].axes == (("a",), ())


# ------------------------------------------------------------------------------------------- positions, names, layers


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("[a, b]", (("a",), ("b",), (), ())),
        ("[a, ..., b]", (("a",), (), (), ("b",))),
        ("[..., a]", ((), (), (), ("a",))),
        ("[...]", ((), (), (), ())),
        ("[(a, b), None, c]", (("a", "b"), (), ("c",), ())),
        ("[(b, a), None, c]", (("b", "a"), (), ("c",), ())),
        ("replicated", ((), (), (), ())),
        ("{z: c, x: a}", (("a",), (), ("c",), ())),
    ],
)
def test_positions_and_names(entries: str, expected: tuple[object, ...]) -> None:
    assert axes(f"t: {entries}", "t: x 8, y 8, z 8, w 8", of="t") == expected


@pytest.mark.parametrize("dims", ["layers 4, x 8, y 8", "x 8, layers 4, y 8", "x 8, y 8, layers 4"])
def test_a_positional_layout_speaks_of_one_layer(dims: str) -> None:
    layout = resolved(MESH + "t: [a, b]", tensors(f"t: {dims}"))
    expected = {"layers": (), "x": ("a",), "y": ("b",)}
    assert layout["t"].axes == tuple(expected[d.split()[0]] for d in dims.split(", "))


def test_the_stack_of_layers_is_split_where_it_is_named() -> None:
    layout = resolved(MESH + "*: [a, b]\nt: {.., layers: c}", tensors("t: layers 4, x 8, y 8"))
    assert layout["t"].axes == (("c",), ("a",), ("b",))
    assert layout["t"].local_shape == (1, 4, 4)


def test_naming_the_stack_is_no_error_on_an_unrolled_model() -> None:
    layout = resolved(MESH + "*: [a, b]\nt: {.., layers: c}", tensors("layers[0].t: x 8, y 8"))
    assert layout.findings == ()
    assert layout["layers[0].t"].axes == (("a",), ("b",))


def test_scanned_and_unrolled_models_take_the_same_spec() -> None:
    text = "mesh: [a=2, b=2]\n*: {embed: a, ffn: b}\nlayers.mlp.w_out: [b, a]\nact: {batch: a}"
    scanned, unrolled = resolved(text, tiny()), resolved(text, tiny(scan=False))
    for name in ("attn.wq", "mlp.w_in", "mlp.w_out", "attn_norm.scale"):
        stacked = scanned[f"layers.{name}"].axes
        assert stacked is not None
        assert {unrolled[f"layers[{n}].{name}"].axes for n in range(4)} == {stacked[1:]}
    assert codes(scanned) == codes(unrolled) == []


def test_a_range_of_layers() -> None:
    layout = resolved(MESH + "*: replicated\nlayers[1:3].t: [a]", tensors(*(f"layers[{n}].t: x 8" for n in range(4))))
    assert [layout[f"layers[{n}].t"].axes for n in range(4)] == [((),), (("a",),), (("a",),), ((),)]


# ------------------------------------------------------------------------------------------------------------ `..`


def test_inheriting_takes_what_the_last_winner_said() -> None:
    assert axes("*: {embed: a}\nmlp.w: {.., ffn: b}") == (("a",), ("b",))


def test_inheriting_reaches_back_through_several_rules() -> None:
    assert axes("*: [a, b]\nmlp.w: {.., ffn: c}\nmlp.w: {.., embed: None}") == ((), ("c",))


def test_inheriting_carries_optional_entries_and_memory() -> None:
    layout = resolved(MESH + "*: {embed: c?} @pinned_host\nt: {.., y: a}", tensors("t: embed 6, y 8", "u: embed 8"))
    assert layout["t"].axes == ((), ("a",))
    assert layout["t"].dropped == (Drop(("c",), "embed", "embed 6 is not a multiple of c=4"),)
    assert layout["t"].memory == "pinned_host"


def test_inheriting_starts_from_the_param_for_grad_and_opt() -> None:
    layout = resolved(
        MESH + "*: [a, None]\ngrad: {.., ffn: b}\nopt: {.., ffn: c}", tensors(W, f"grad.{W}", f"opt.mu.{W}")
    )
    assert layout["grad.mlp.w"].axes == (("a",), ("b",))
    assert layout["opt.mu.mlp.w"].axes == (("a",), ("c",))


def test_inheriting_from_an_own_rule_before_the_param() -> None:
    layout = resolved(MESH + "*: [a, None]\nopt: [b]\nopt: {.., ffn: c}", tensors(W, f"opt.mu.{W}"))
    assert layout["opt.mu.mlp.w"].axes == (("b",), ("c",))


def test_inheriting_from_nothing_is_an_error() -> None:
    layout = resolved(MESH + "*: {.., embed: a}", tensors(W))
    finding = only(layout, "SHD007")
    assert (finding.severity, finding.tensor) == ("error", "mlp.w")
    assert "`..` has no base" in finding.message


def test_inheriting_needs_a_param_where_there_is_no_rule_before() -> None:
    held = tensors(W, "opt.mu.ema: z 8")
    held = type(held)("these", (held["mlp.w"], replace(held["opt.mu.ema"], param=None)))
    finding = only(resolved(MESH + "*: [a]\nopt: {.., z: a}", held), "SHD007")
    assert finding.message == "`..` has no base: no earlier rule matches opt.mu.ema, which belongs to no param"


# ------------------------------------------------------------------------------------------------------------- `?`


@pytest.mark.parametrize(
    ("layout", "expected", "why"),
    [
        ("[c?]", ((), ()), "x 6 is not a multiple of c=4"),
        ("[a?]", (("a",), ()), None),
        ("[(a, b)?]", ((), ()), "x 6 is not a multiple of a*b=4"),
        ("[(a, b?)]", (("a",), ()), "x 6 is not a multiple of a*b=4"),
        ("[(a?, b?)]", (("a",), ()), "x 6 is not a multiple of a*b=4"),
        ("[a?, a]", ((), ("a",)), "a already splits y"),
        ("[a?, a?]", (("a",), ()), "a already splits x"),
        ("[a, (a, b)?]", (("a",), ()), "a already splits x"),
        ("[a, (a?, b)]", (("a",), ("b",)), "a already splits x"),
    ],
)
def test_optional_axes(layout: str, expected: tuple[object, ...], why: str | None) -> None:
    placed = resolved(MESH + f"t: {layout}", tensors("t: x 6, y 8"))["t"]
    assert placed.axes == expected
    assert [drop.why for drop in placed.dropped] == ([] if why is None else [why])


def test_optional_axes_count_heads_and_not_elements() -> None:
    layout = resolved(MESH + "*: {kv: c?}", tensors("wk: embed 8, kv 64/2"))
    assert layout["wk"].axes == ((), ())
    assert [drop.why for drop in layout["wk"].dropped] == ["2 heads of kv is not a multiple of c=4"]


def test_every_drop_is_a_finding_once() -> None:
    layout = resolved("mesh: [mp=16]\n*: {kv_heads: mp?}", tiny(scan=False))
    finding = only(layout, "SHD307")
    assert finding.severity == "info"
    assert finding.count == 8  # wk and wv of four layers; grads and moments follow their params
    assert finding.message == (
        "mp was dropped on kv_heads of layers[0:4].attn.wk, layers[0:4].attn.wv: kv_heads 8 is not a multiple of mp=16"
    )


# --------------------------------------------------------------------------------------------- `*`, scalars, padding


def test_open_dims_stay_open() -> None:
    layout = resolved(MESH + "*: [a]\nact: [a, *]", tensors(W, "act.h: batch 8, ffn 32"))
    assert layout["act.h"].axes == (("a",), "*")
    assert layout["act.h"].local_shape == (4, 32)


def test_scalars_take_the_empty_spec_whatever_matches() -> None:
    layout = resolved(MESH + "*: {embed: a}\nopt: {embed: b}", tensors(W, "opt.count:", f"opt.mu.{W}"))
    assert (layout["opt.count"].axes, layout["opt.count"].reason) == ((), "scalar")
    assert layout.findings == ()


def test_a_padded_activation_is_as_large_as_its_largest_part() -> None:
    layout = resolved(MESH + "*: replicated\nact: {seq: c}", tensors(W, "act.h: batch 8, seq 10"))
    assert layout["act.h"].local_shape == (8, 3)
    assert codes(layout) == [("SHD302", "warning")]


def test_an_axis_of_size_one_splits_nothing_but_is_there() -> None:
    layout = resolved("mesh: [a=1]\nt: [a]", tensors("t: x 7"))
    assert (layout["t"].axes, layout["t"].local_shape, layout.findings) == ((("a",),), (7,), ())


def test_sizes_that_are_not_known_are_not_judged() -> None:
    layout = resolved(MESH + "act: [(a, c), b]", tensors("act.h: batch ?, seq 7"))
    assert layout["act.h"].local_shape == (None, 4)
    assert codes(layout) == [("SHD302", "warning")]


# -------------------------------------------------------------------------------------------------------- fall-backs


def test_grads_and_moments_follow_their_param() -> None:
    layout = resolved(MESH + "*: [a, b]", tensors(W, f"grad.{W}", f"opt.mu.{W}"))
    for name in ("grad.mlp.w", "opt.mu.mlp.w"):
        placed = layout[name]
        assert (placed.axes, placed.reason, placed.memory) == ((("a",), ("b",)), "follows param", None)
        assert placed.rule == layout["mlp.w"].rule


@pytest.mark.parametrize(
    ("rule", "grad", "mu"),
    [
        ("", None, "pinned_host"),
        ("grad: follow\nopt: follow", None, "pinned_host"),
        ("grad: {.., ffn: c}\nopt: {.., ffn: c}", None, "pinned_host"),
        ("grad: follow @pinned_host\nopt: follow @device", "pinned_host", "device"),
        ("grad: [a] @pinned_host\ngrad: {.., ffn: b}\nopt: [a]", "pinned_host", None),
    ],
)
def test_moments_rest_where_their_param_does_and_gradients_do_not(rule: str, grad: str | None, mu: str | None) -> None:
    held = tensors(W, f"grad.{W}", f"opt.mu.{W}", "opt.row.mlp.w: embed 16")
    layout = resolved(MESH + f"*: [a, b] @pinned_host\n{rule}", held)
    memory = {name: layout[name].memory for name in ("mlp.w", "grad.mlp.w", "opt.mu.mlp.w", "opt.row.mlp.w")}
    assert memory == {"mlp.w": "pinned_host", "grad.mlp.w": grad, "opt.mu.mlp.w": mu, "opt.row.mlp.w": mu}


def test_follow_overrides_an_earlier_rule() -> None:
    layout = resolved(MESH + "*: [a]\nopt: [b]\nopt.nu: follow", tensors(W, f"opt.mu.{W}", f"opt.nu.{W}"))
    assert (layout["opt.mu.mlp.w"].axes, layout["opt.nu.mlp.w"].axes) == ((("b",), ()), (("a",), ()))
    assert layout["opt.nu.mlp.w"].reason == "follows param"


def test_factored_state_goes_by_dim_name_and_what_has_no_such_dim_is_whole() -> None:
    layout = resolved(
        MESH + "*: {embed: a, ffn: b}",
        tensors(W, "opt.v_row.mlp.w: embed 16", "opt.v_col.mlp.w: ffn 32", "opt.v.mlp.w: one 1"),
    )
    assert (layout["opt.v_row.mlp.w"].axes, layout["opt.v_row.mlp.w"].reason) == ((("a",),), "by dim name")
    assert layout["opt.v_col.mlp.w"].axes == (("b",),)
    assert (layout["opt.v.mlp.w"].axes, layout["opt.v.mlp.w"].reason) == (((),), "default")


def test_a_block_of_a_param_takes_what_fits_and_says_so() -> None:
    layout = resolved(MESH + "*: {embed: c}", tensors(W, "opt.scale.mlp.w: embed 2, ffn 32"))
    assert layout["opt.scale.mlp.w"].axes == ((), ())
    assert layout["opt.scale.mlp.w"].dropped == (Drop(("c",), "embed", "embed 2 is not a multiple of c=4"),)


def test_activations_without_a_rule_are_left_to_the_compiler() -> None:
    placed = resolved(MESH + "*: [a]", tensors(W, "act.h: batch 8"))["act.h"]
    assert (placed.axes, placed.reason, placed.local_shape) == (None, "compiler", None)


def test_inputs_are_split_as_the_residual_stream() -> None:
    layout = resolved(
        MESH + "*: [a]\nact.resid: [(a, b), c]",
        tensors(W, "act.resid: batch 8, seq 16, embed 16", "batch.tokens: batch 8, seq 16"),
    )
    placed = layout["batch.tokens"]
    assert (placed.axes, placed.reason) == ((("a", "b"), ()), "batch of act.resid")


def test_inputs_without_the_residual_stream_need_a_rule() -> None:
    layout = resolved(MESH + "*: [a]", tensors(W, "batch.tokens: batch 8, seq 16"))
    assert only(layout, "SHD202").tensor == "batch.tokens"


@pytest.mark.parametrize(("mode", "found"), [("train", []), ("prefill", ["cache.k"]), ("decode", ["cache.k"])])
def test_a_cache_needs_a_rule_when_generating(mode: str, found: list[str]) -> None:
    layout = resolved(MESH + "*: [a]", tensors(W, "cache.k: batch 8", mode=mode))
    assert [f.tensor for f in layout.findings if f.code == "SHD202"] == found


# ------------------------------------------------------------------------------------------- names of optimizer leaves


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("opt", {"mu.layers.mlp.w", "nu.layers.mlp.w", "mu.embed.w"}),
        ("opt.mlp.w", {"mu.layers.mlp.w", "nu.layers.mlp.w"}),
        ("opt.mu.mlp.w", {"mu.layers.mlp.w"}),
        ("opt.mu", {"mu.layers.mlp.w", "mu.embed.w"}),
        ("opt./mu.embed.w", {"mu.embed.w"}),
        ("opt./mu.mlp.w", set()),
        ("opt.{mu, nu}.embed.*", {"mu.embed.w"}),
    ],
)
def test_optimizer_leaves(pattern: str, matched: set[str]) -> None:
    held = tensors(
        "layers.mlp.w: x 8",
        "embed.w: x 8",
        "opt.mu.layers.mlp.w: x 8",
        "opt.nu.layers.mlp.w: x 8",
        "opt.mu.embed.w: x 8",
    )
    layout = resolved(MESH + f"*: replicated\n{pattern}: [a]", held)
    split = {p.tensor.name.removeprefix("opt.") for p in layout if p.tensor.namespace == "opt" and p.axes == (("a",),)}
    assert split == matched


# ---------------------------------------------------------------------------------------------------------- examples


def test_the_zero_stages_are_plain_text() -> None:
    text = "mesh: [dp=8]\n*: replicated\ngrad: {embed: dp}\nopt: {embed: dp}\nact: {batch: dp}"
    layout = resolved(text, tiny())
    assert layout.findings == ()
    assert layout["layers.mlp.w_in"].axes == ((), (), ())
    assert layout["grad.layers.mlp.w_in"].axes == ((), ("dp",), ())
    assert layout["opt.nu.layers.mlp.w_in"].local_shape == (4, 16, 512)
    assert layout["batch.tokens"].axes == (("dp",), ())


def test_fsdp_and_tensor_parallelism_in_one_rule() -> None:
    text = "mesh: [fsdp=2, mp=4]\n*: {embed: fsdp, heads: mp, kv_heads: mp, ffn: mp, vocab: mp}\nact.resid: [fsdp]"
    layout = resolved(text, tiny())
    assert layout.findings == ()
    assert layout["layers.attn.wo"].axes == ((), ("mp",), (), ("fsdp",))
    assert layout["norm.scale"].axes == (("fsdp",),)
    assert layout["lm_head.w"].local_shape == (64, 128)
