"""Findings about rules and entries: what, where, and what would work."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl import spec
from sharddsl.layout import MeshSizes, resolve
from sharddsl.models import PRESETS, inventory
from sharddsl.models.config import Run
from tests.layout.cases import codes, only, place, resolved, tensors, tiny

W = "mlp.w: embed 16, ffn 32"
MESH = "mesh: [dp=2, fsdp=2, mp=4]\n"


# ---------------------------------------------------------------------------------------------------------- the mesh


def test_an_unknown_axis_is_one_finding_for_all_its_uses() -> None:
    layout = resolved(MESH + "*: [fsdpp, mp]\nu: [fsdpp]", tensors(W, "u: x 8", "v: x 8, y 8"))
    finding = only(layout, "SHD101")
    assert finding.message == "axis fsdpp is not in the mesh [dp=2, fsdp=2, mp=4]"
    assert (place(finding), finding.count) == ((2, 5), 3)
    assert finding.help == "did you mean fsdp?"
    assert [(edit.where.span.line, edit.text) for edit in finding.fix] == [(2, "fsdp"), (3, "fsdp")]
    assert layout["mlp.w"].axes == ((), ("mp",))


def test_an_axis_of_a_base_may_have_another_name_here(tmp_path: Path) -> None:
    (tmp_path / "base.shard").write_text("mesh: [mp=2]\nw: [mp]\n")
    loaded = spec.parse('extends "base.shard"\nmesh: [model=2]\n', cwd=tmp_path)
    layout = resolve(loaded.checked(), tensors("w: x 8"), MeshSizes({"model": 2}))
    help_ = only(layout, "SHD101").help
    assert help_ == "the mesh has: model\nor give the base's axis its name here: extends … with mp=…"


def test_an_axis_on_two_dims_names_both() -> None:
    layout = resolved(MESH + "mlp.w: [mp, mp]", tensors(W))
    finding = only(layout, "SHD102")
    assert finding.message == "mp is on two dims of mlp.w: embed and ffn"
    assert (place(finding), finding.dim) == ((2, 13), "ffn")
    assert finding.help is not None
    assert "`mp?`" in finding.help


def test_an_axis_twice_in_one_tuple() -> None:
    finding = only(resolved(MESH + "mlp.w: [(mp, dp, mp)]", tensors(W)), "SHD102")
    assert finding.message == "mp stands twice on embed of mlp.w"


def test_an_axis_of_size_one_twice_is_still_illegal() -> None:
    layout = resolved("mesh: [sp=1]\nt: [sp, sp]", tensors("t: q 7, k 7"))
    assert codes(layout) == [("SHD102", "error")]


def test_an_inferred_axis_that_outgrew_the_kv_heads() -> None:
    text = "mesh: [dp=1, mp=-1]\n*: {heads: mp, kv_heads: mp?}\nact.resid: [dp]"
    layout = resolved(text, tiny(), devices=16)
    finding = only(layout, "SHD108")
    assert finding.severity == "warning"
    assert finding.message == "mp=-1 became 16, more than the 8 kv_heads: it splits heads, and grew with the 16 devices"
    assert finding.help is not None
    assert "mp in {1, 2, 4, 8} (spec.mesh.mp=8)" in finding.help
    assert codes(resolved(text, tiny(), devices=8)) == []
    assert "SHD108" not in dict(codes(resolved(text.replace("-1", "16"), tiny())))


def test_an_inferred_axis_yields_to_the_head_that_it_splits() -> None:
    layout = resolved("mesh: [dp=1, mp=-1]\n*: {heads: mp, kv_heads: mp}\nact.resid: [dp]", tiny(), devices=16)
    assert codes(layout) == [("SHD303", "error")]
    help_ = layout.findings[0].help
    assert help_ is not None
    assert "mp was -1 and grew with the 16 devices" in help_


# --------------------------------------------------------------------------------------------------- rules and tensors


def test_a_rule_that_matches_nothing_names_the_nearest_paths() -> None:
    layout = resolved(MESH + "*: replicated\nmlp.w_inn: [fsdp]\nbatch: [dp]", tiny())
    finding = only(layout, "SHD201")
    assert (finding.message, place(finding)) == ("`mlp.w_inn` matches no tensor", (3, 1))
    assert finding.help is not None
    assert finding.help.startswith("did you mean mlp.w_in")
    assert finding.fix[0].text == "mlp.w_in"


def test_each_dead_alternative_is_reported_by_itself() -> None:
    layout = resolved(MESH + "*: replicated\nattn.{wq, wz, w_k}: [fsdp]\nbatch: [dp]", tiny())
    dead = [f.message for f in layout.findings if f.code == "SHD201"]
    assert dead == [
        "`wz` in `attn.{wq, wz, w_k}` matches no tensor; the other alternatives do",
        "`w_k` in `attn.{wq, wz, w_k}` matches no tensor; the other alternatives do",
    ]


def test_a_namespace_is_told() -> None:
    finding = only(resolved(MESH + "*: replicated\nact: [dp]\nact.mlp.hiden: [dp]", tiny()), "SHD201")
    assert finding.message == "`act.mlp.hiden` matches no tensor of act"
    assert finding.help == "did you mean act.mlp.hidden?"


@pytest.mark.parametrize(
    ("pattern", "help_", "instead"),
    [
        ("embed", "a pattern names the end of a path: `embed.*` is embed.w", "embed.*"),
        ("attn", "`attn.*` is layers.attn.wq, layers.attn.wk, layers.attn.wv and 1 more", "attn.*"),
        ("layers", "`layers.**` is layers.attn_norm.scale", "layers.**"),
        ("act.mlp", "`act.mlp.*` is act.mlp.norm, act.mlp.hidden, act.mlp.out", "act.mlp.*"),
        ("mlp.hidden", "did you mean act.mlp.hidden?", "act.mlp.hidden"),
        ("tokens", "did you mean batch.tokens?", "batch.tokens"),
        ("/mlp.w_in", "`/` begins at the root of a path: leave it out, or write `/layers.mlp.w_in`", None),
        ("opt.mmu", "did you mean opt.mu?", "opt.mu"),
        ("opt.mu.mpl.w_in", "did you mean opt.mu.mlp.w_in", "opt.mu.mlp.w_in"),
        ("cache.key", "the paths are cache.k, cache.v", None),
        ("nothing.like.it", "the paths are embed.w, layers.attn_norm.scale, ", None),
    ],
)
def test_a_dead_pattern_says_what_it_may_have_meant(pattern: str, help_: str, instead: str | None) -> None:
    finding = only(resolved(MESH + f"*: replicated\n{pattern}: replicated\nbatch: [dp]", tiny()), "SHD201")
    assert finding.help is not None
    assert help_ in finding.help
    assert [edit.text for edit in finding.fix] == ([] if instead is None else [instead])


def test_of_a_dead_alternative_only_itself_is_written_otherwise() -> None:
    finding = only(resolved(MESH + "*: replicated\n{w_in, attn}: [fsdp]\nbatch: [dp]", tiny()), "SHD201")
    assert finding.help == (
        "a pattern names the end of a path: `attn.*` is layers.attn.wq, layers.attn.wk, layers.attn.wv and 1 more"
    )
    assert finding.fix == ()


def test_rules_that_the_inventory_says_nothing_about_are_not_judged() -> None:
    layout = resolved(MESH + "*: replicated\nact: [dp]\ncache.k: [dp]", tensors(W))
    assert layout.findings == ()
    assert layout.unknown == ("rules for act (the inventory has none)", "rules for cache (the inventory has none)")


def test_params_without_a_rule_are_one_finding_with_their_share() -> None:
    held = tensors("a.w: x 300", "layers[0].b: x 50, y 1", "layers[1].b: x 50, y 1", "c: x 600")
    layout = resolved("mesh: [fsdp=2]\nc: [fsdp]", held)
    finding = only(layout, "SHD202")
    assert finding.message == "a.w, layers[0:2].b have no rule: 40 % of the bytes of param"
    assert (finding.severity, finding.count) == ("error", 3)
    assert finding.help is not None
    assert finding.help.splitlines() == [
        "add a first rule for all that others do not name, `*: replicated` or `*: {dim: axis}`, or a rule for each:",
        "a.w: [None]  # (x 300)",
        "b: [None, None]  # (x 50, y 1)",
    ]
    (edit,) = finding.fix
    assert edit.text == "\na.w: [None]  # (x 300)\nb: [None, None]  # (x 50, y 1)\n"
    assert (edit.where.span.line, edit.where.span.column) == (2, 10)


def test_the_proposed_rules_make_the_finding_go_away() -> None:
    text = "mesh: [fsdp=2]\nattn.*: [fsdp]\nact.resid: [fsdp]\n"
    (edit,) = only(resolved(text, tiny(scan=False)), "SHD202").fix
    assert codes(resolved(text + edit.text, tiny(scan=False))) == []


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [
        ("train", "say how `act.resid` is split (`act: {batch: fsdp}`), which the inputs follow, or a rule for each:"),
        ("decode", "add a rule for all of them, `cache: {batch: fsdp}` or `cache: replicated`, or a rule for each:"),
    ],
)
def test_the_remedy_for_inputs_and_cache_is_not_a_rule_for_params(mode: str, remedy: str) -> None:
    text = "mesh: [fsdp=2]\n*: replicated\n" + ("act: {batch: fsdp}" if mode == "decode" else "")
    help_ = only(resolved(text, tiny(mode=mode)), "SHD202").help
    assert help_ is not None
    assert help_.splitlines()[0] == remedy


@pytest.mark.parametrize(
    ("mesh", "act", "proposed"),
    [
        ("mp=8", "{heads: mp, kv_heads: mp}", "{kv_heads: mp}"),
        ("dp=2, fsdp=2, mp=2", "{batch: (dp, fsdp), heads: mp, kv_heads: mp}", "{batch: (dp, fsdp), kv_heads: mp}"),
        ("mp=16", "{batch: None, kv_heads: mp?}", None),
        ("mp=3", "{kv_heads: mp}", None),  # an activation may be padded, the cache may not
        ("dp=4", "replicated", None),
    ],
)
def test_the_cache_is_split_as_the_keys_are(mesh: str, act: str, proposed: str | None) -> None:
    text = f"mesh: [{mesh}]\n*: replicated\nact: {act}\nbatch: replicated"
    help_ = only(resolved(text, tiny(mode="decode")), "SHD202").help
    assert help_ is not None
    rules = f"`cache: {proposed}` or `cache: replicated`" if proposed else "`cache: replicated` or `cache: {dim: axis}`"
    assert help_.splitlines()[0] == f"add a rule for all of them, {rules}, or a rule for each:"


def test_where_nothing_is_said_of_the_keys_the_cache_and_the_inputs_go_by_the_rows() -> None:
    text = "mesh: [dp=2, fsdp=2, mp=2]\n*: replicated\nact.mlp.*: [(fsdp, dp)]"
    batch, cache = (f.help for f in resolved(text, tiny(mode="decode")).findings if f.code == "SHD202")
    assert cache is not None
    assert "`cache: {batch: (fsdp, dp)}`" in cache
    assert batch is not None
    assert "`act: {batch: (fsdp, dp)}`" in batch


@pytest.mark.parametrize(
    ("rules", "line", "note"),
    [
        ("when dp > 8 { a: [dp] }\nb: [dp]\nb: [None]\nwhen dp > 1 { b: [dp] }", 3, "the first rule of the file"),
        ("when dp > 1 { b: [dp] }", 1, None),
    ],
)
def test_a_missing_rule_is_blamed_at_the_first_that_always_applies(rules: str, line: int, note: str | None) -> None:
    finding = only(resolved(f"mesh: [dp=2]\n{rules}", tensors("a: x 2", "b: x 2", "c: x 2")), "SHD202")
    assert (place(finding), finding.note) == ((line, 1), note)


def test_findings_come_errors_first_in_the_order_of_the_text() -> None:
    text = "mesh: [dp=2]\nact.h: [dp]\na: [None, dp]\nb: [dp]\nnone.such: [dp]\nc: [mp]"
    layout = resolved(text, tensors("a: x 2", "b: x 3", "c: x 2", "act.h: y 3"))
    assert [(f.code, f.where.span.line) for f in layout.findings if f.where is not None] == [
        ("SHD301", 3),
        ("SHD302", 4),
        ("SHD201", 5),
        ("SHD101", 6),
        ("SHD302", 2),
    ]


def test_a_spec_without_rules_is_blamed_at_its_mesh() -> None:
    finding = only(resolved("\nmesh: [fsdp=2]\n", tensors(*(f"w{n}: x 2" for n in range(60)))), "SHD202")
    assert (place(finding), finding.note, finding.fix) == ((2, 1), None, ())
    assert finding.help is not None
    assert finding.help.splitlines()[-1] == "… and 52 more"


def test_a_dim_that_no_matched_tensor_has() -> None:
    layout = resolved(MESH + "*: {embed: fsdp, head: mp}\nbatch: [dp]", tiny())
    finding = only(layout, "SHD204")
    assert (finding.dim, place(finding)) == ("head", (2, 18))
    assert finding.help == "did you mean heads or kv_heads or head_dim?"


def test_a_dim_that_one_matched_tensor_has_is_enough() -> None:
    assert codes(resolved(MESH + "*: {embed: fsdp, ffn: mp}", tensors(W, "norm: embed 16"))) == []


def test_a_dim_of_a_scalar() -> None:
    finding = only(resolved(MESH + "*: replicated\nopt.count: {x: dp}", tensors(W, "opt.count:")), "SHD204")
    assert finding.help == "they have: none"


def test_naming_the_stack_where_there_are_no_layers() -> None:
    assert only(resolved(MESH + "norm: {layers: dp}", tensors("norm: embed 16")), "SHD204").dim == "layers"


def test_a_layer_of_a_stacked_model() -> None:
    finding = only(resolved(MESH + "*: replicated\nlayers[0:2].mlp.w_in: [fsdp]\nbatch: [dp]", tiny()), "SHD205")
    assert finding.message == (
        "`layers[0:2].mlp.w_in` names single layers of layers.mlp.w_in, whose layers share one array"
    )
    assert finding.help is not None
    assert "run.scan=false" in finding.help


def test_a_layer_that_is_not_there() -> None:
    layout = resolved(MESH + "*: replicated\nlayers[2:6].mlp.w_in: [fsdp]\nbatch: [dp]", tiny(scan=False))
    finding = only(layout, "SHD205")
    assert finding.message == "`layers[2:6].mlp.w_in` asks for layers [2:6], and there are 4, 0 to 3"
    assert codes(layout) == [("SHD205", "error")]
    assert finding.help == "an open end takes all there are: [2:]"


def test_one_layer_that_is_not_there() -> None:
    layout = resolved(MESH + "*: replicated\nlayers[9].mlp.w_in: [fsdp]\nbatch: [dp]", tiny(scan=False))
    finding = only(layout, "SHD205")
    assert finding.message == "`layers[9].mlp.w_in` asks for layer 9, and there are 4, 0 to 3"
    assert finding.help == "layers are counted from 0, and the last is 3"


def test_an_override_lists_what_it_replaces() -> None:
    text = MESH + "*: replicated\nact: [dp]\nact.resid: [fsdp]\nbatch: [dp]"
    layout = resolved(text, tiny(), rules=("act: [(dp, fsdp)]",))
    finding = only(layout, "SHD207")
    assert (finding.severity, finding.count) == ("info", 13)
    assert finding.message == "`act` replaces `act`, `act.resid`"
    assert [(where.span.line, what.split()[-1]) for where, what in finding.related][1] == (4, "act.resid")


def test_a_dim_name_twice() -> None:
    layout = resolved(MESH + "e: {vocab: None}", tensors("e: vocab 8, vocab 8"))
    assert codes(layout) == [("SHD208", "warning")]
    assert codes(resolved(MESH + "e: [mp, None]", tensors("e: vocab 8, vocab 8"))) == []


def test_a_head_rule_on_a_tied_model() -> None:
    held = tensors("embed.w: vocab 8, embed 4", tied=True)
    text = MESH + "embed.w: [mp]\nlm_head.w: [None, mp]"
    finding = only(resolved(text, held), "SHD310")
    assert (finding.severity, place(finding)) == ("warning", (3, 1))
    assert finding.message == ("`lm_head.w` is for a head of its own, and the head of these is tied to the embedding")
    assert [edit.text for edit in finding.fix] == ["when not tied { ", " }"]
    assert codes(resolved(MESH + "embed.w: [mp]\nwhen not tied { lm_head.w: [None, mp] }", held)) == []
    assert codes(resolved(MESH + "{embed, lm_head}.w: [mp]", held)) == [("SHD310", "warning")]


# -------------------------------------------------------------------------------------------------------------- ranks


def test_more_entries_than_dims() -> None:
    layout = resolved(MESH + "mlp.w: [dp, fsdp, mp]", tensors(W))
    finding = only(layout, "SHD301")
    assert finding.message == "3 entries for the 2 dims of mlp.w"
    assert finding.note == "mlp.w: (embed 16, ffn 32)"
    assert place(finding) == (2, 8)


def test_one_layout_that_is_too_long_for_several_ranks_is_one_finding() -> None:
    finding = only(resolved(MESH + "*: [dp, fsdp, None, mp]", tensors(W, "t: x 2, y 2, z 4", "s: x 2")), "SHD301")
    assert finding.message == "4 entries for the 2 dims of mlp.w, and for others of 1 to 3 dims"
    assert (finding.count, finding.help) == (3, "the tensors differ in rank: name the dims: {…}")


def test_an_entry_for_the_stack_of_layers_is_one_too_many() -> None:
    held = tensors("layers.mlp.w: layers 4, embed 16, ffn 32")
    finding = only(resolved(MESH + "mlp.w: [None, fsdp, mp]", held), "SHD301")
    assert finding.help is not None
    assert "speaks of one layer" in finding.help
    assert "{.., layers: axis}" in finding.help


def test_alike_layers_are_one_finding_with_a_count() -> None:
    held = tensors(*(f"layers[{n}].w: x 7" for n in range(126)))
    layout = resolved("mesh: [fsdp=2]\nw: [fsdp]", held)
    finding = only(layout, "SHD302")
    assert (finding.count, len(layout.findings)) == (126, 1)
    assert finding.message == "x 7 of layers[0:126].w is not a multiple of fsdp=2 (remainder 1)"


# ------------------------------------------------------------------------------------------------------ heads and sizes


def test_splitting_heads_names_every_way_out() -> None:
    text = "mesh: [dp=1, fsdp=1, mp=16]\n*: replicated\nattn.{wq, wk, wv}: [fsdp, mp]\nact.resid: [dp]"
    finding = only(resolved(text, tiny()), "SHD303")
    assert finding.message == "mp=16 is more than the 8 kv_heads of layers.attn.wk, layers.attn.wv"
    assert (finding.severity, place(finding), finding.count) == ("error", (3, 27), 2)
    assert finding.note == ("layers.attn.wk, layers.attn.wv: (embed 128, kv_heads 8, head_dim 8), 4 layers")
    assert finding.help == (
        "mp in {1, 2, 4, 8} divides both 16 heads and 8 kv_heads; or write `mp?` to replicate k and v over mp,\n"
        "or give the other factor to fsdp: mesh: [dp=1, fsdp=2, mp=8]"
    )
    assert [edit.text for edit in finding.fix] == ["mp?"]


def test_one_axis_against_one_head_count_is_one_finding() -> None:
    text = "mesh: [mp=16]\n*: {kv_heads: mp}\nact: {kv_heads: mp}\ncache: {kv_heads: mp}\nbatch: replicated"
    layout = resolved(text, tiny())
    finding = only(layout, "SHD303")
    assert finding.count == 6  # wk, wv, act.attn.k, act.attn.v, cache.k, cache.v
    assert [where.span.line for where, _ in finding.related] == [3, 4]
    assert codes(layout) == [("SHD303", "error")]


def test_heads_that_do_not_divide() -> None:
    held = tensors("wq: embed 576, heads 9, head_dim 64", "wk: embed 576, kv_heads 3, head_dim 64")
    finding = only(resolved("mesh: [mp=2]\n*: {heads: mp, kv_heads: mp}", held), "SHD303")
    assert finding.message == "mp=2 does not divide the 9 heads of wq and the 3 kv_heads of wk"
    assert finding.count == 2
    assert finding.help is not None
    assert finding.help.startswith("mp in {1, 3} divides both 9 heads and 3 kv_heads; or write `mp?`")


@pytest.mark.parametrize(
    ("mesh", "remedies"),
    [
        ("mp=2", ["or use the nearest size that fits: spec.mesh.mp=3"]),
        ("mp=7", ["or use the nearest size that fits: spec.mesh.mp=9"]),
        ("mp=18", ["or use the nearest size that fits: spec.mesh.mp=9"]),
        (
            "fsdp=1, mp=2",
            [
                "or use the nearest size that fits: spec.mesh.mp=3,",
                "or give the other factor to fsdp: mesh: [fsdp=2, mp=1]",
            ],
        ),
        ("fsdp=1, mp=6", ["or give the other factor to fsdp: mesh: [fsdp=2, mp=3]"]),
    ],
)
def test_an_axis_that_fits_no_heads_is_told_a_size_that_does(mesh: str, remedies: list[str]) -> None:
    held = tensors("wq: heads 9, head_dim 64, embed 576")
    help_ = only(resolved(f"mesh: [{mesh}]\n*: [mp]", held), "SHD303").help
    assert help_ is not None
    assert help_.splitlines()[1:] == remedies


def test_one_head_has_no_size_that_fits_but_one() -> None:
    help_ = only(resolved("mesh: [mp=2]\nwk: [mp]", tensors("wk: kv_heads 1, head_dim 64")), "SHD303").help
    assert help_ == "mp in {1} divides 1 kv_head; or write `mp?` to replicate k and v over mp"


def test_heads_of_an_activation_alone_are_a_warning() -> None:
    held = tensors("w: x 4", "act.q: batch 4, heads 9")
    assert codes(resolved("mesh: [mp=2]\n*: [mp]\nact: {heads: mp}", held)) == [("SHD303", "warning")]


def test_a_fused_dim_counts_heads() -> None:
    layout = resolved("mesh: [tp=16]\nwk: [None, tp]", tensors("wk: hidden 4096, kv 1024/8"))
    finding = only(layout, "SHD303")
    assert finding.message == "tp=16 is more than the 8 heads in kv of wk"
    assert codes(resolved("mesh: [tp=8]\nwk: [None, tp]", tensors("wk: hidden 4096, kv 1024/8"))) == []


@pytest.mark.parametrize(
    ("tensor", "severity"),
    [
        ("w: x 7", "error"),
        ("opt.mu.w: x 7", "error"),
        ("grad.w: x 7", "error"),
        ("batch.tokens: x 7", "error"),
        ("cache.k: x 7", "error"),
        ("act.h: x 7", "warning"),
    ],
)
def test_severity_goes_by_the_role(tensor: str, severity: str) -> None:
    name = tensor.partition(":")[0]
    layout = resolved(f"mesh: [a=2]\n*: replicated\n{name}: [a]", tensors(tensor, "other: x 8"))
    assert [severity for code, severity in codes(layout) if code == "SHD302"] == [severity]


def test_a_size_that_does_not_divide_lists_what_would() -> None:
    layout = resolved("mesh: [mp=8]\nw: [mp]", tensors("w: vocab 50, embed 64"))
    help_ = only(layout, "SHD302").help
    assert help_ is not None
    assert help_.splitlines() == [
        "sizes of mp that divide 50: {1, 2, 5, 10, 25, 50}",
        "or another size of vocab: 48 or 56; padding to 56 changes the checkpoint's shape",
        "or split embed instead: {embed: mp}",
        "or keep vocab whole where it does not divide, `mp?`: 12.5 KiB per device for w",
    ]


@pytest.mark.parametrize(
    ("ways", "sizes"),
    [
        (7, "{1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, …}"),
        (50, "{…, 24, 30, 36, 40, 45, 48, 60, 72, 80, 90, 120, 144, …}"),
        (700, "{…, 45, 48, 60, 72, 80, 90, 120, 144, 180, 240, 360, 720}"),
    ],
)
def test_of_many_sizes_that_divide_those_near_the_axis_are_shown(ways: int, sizes: str) -> None:
    help_ = only(resolved(f"mesh: [mp={ways}]\nw: [mp]", tensors("w: vocab 720")), "SHD302").help
    assert help_ is not None
    assert help_.splitlines()[0] == f"sizes of mp that divide 720: {sizes}"


def test_a_batch_that_does_not_fill_the_mesh() -> None:
    held = tensors("w: x 8", "act.resid: batch 6, seq 8", "batch.tokens: batch 6, seq 8")
    layout = resolved("mesh: [dp=2, fsdp=2]\nw: [fsdp]\nact.resid: [(dp, fsdp)]", held, hosts=2)
    finding = only(layout, "SHD302")
    assert codes(layout) == [("SHD302", "error")]  # the activation and the input are one cause
    assert finding.message == "batch 6 of batch.tokens is not a multiple of dp*fsdp=4 (remainder 2)"
    assert finding.help == (
        "batch sizes that this mesh allows are multiples of 4: 4, 8, 12\n"
        "at 6, each of 2 processes feeds 3 rows for 2 of 4 parts\n"
        "at 8, each of 2 processes feeds 4 rows\n"
        "or sizes of dp*fsdp that divide 6: {1, 2, 3, 6}"
    )


def test_rows_of_activations_alone() -> None:
    held = tensors("w: x 8", "act.resid: batch 6, seq 8", "batch.tokens: batch 6, seq 8")
    layout = resolved("mesh: [dp=4]\nw: [dp]\nact.resid: [dp]\nbatch: replicated", held)
    assert codes(layout) == [("SHD308", "error")]
    assert layout.findings[0].message == "batch 6 over dp=4 is not a whole number of rows per device, in act.resid"


def test_a_microbatch_that_does_not_fill_the_mesh() -> None:
    held = inventory(PRESETS["llama_tiny"], Run(batch=8, seq=16, accum=4))
    layout = resolved("mesh: [dp=4]\nparam: replicated\nact: {batch: dp}\nbatch: [dp]", held)
    finding = only(layout, "SHD308")
    assert finding.message.startswith("batch 8 in 4 microbatches of 2 over dp=4 is not a whole number of rows per dev")
    assert finding.help == (
        "batch sizes that this mesh allows with accum=4 are multiples of 16: 16, 32\nor, for batch 8, accum in {1, 2}"
    )


def test_an_uneven_batch_is_not_told_again_for_its_microbatches() -> None:
    held = inventory(PRESETS["llama_tiny"], Run(batch=6, seq=16, accum=2))
    layout = resolved("mesh: [dp=4]\nparam: replicated\nact: {batch: dp}\nbatch: [dp]", held)
    assert [code for code, severity in codes(layout) if severity == "error"] == ["SHD302"]
    help_ = only(layout, "SHD302").help
    assert help_ is not None
    assert help_.splitlines()[0] == "batch sizes that this mesh allows with accum=2 are multiples of 8: 8, 16"


@pytest.mark.parametrize(
    ("mesh", "hosts", "found"),
    [
        ("[dp=4, mp=2]", 2, []),  # two parts of the batch each
        ("[dp=2, mp=4]", 4, []),  # two processes feed the same rows
        ("[mp=2, dp=4]", 2, []),  # every process feeds all rows
        ("[dp=4, mp=3]", 6, ["SHD308"]),  # the second process owns parts of two shards
        ("[dp=2 @dcn, mp=4]", 2, []),
        ("[dp=4, mp=2]", 3, ["SHD107"]),
        ("[dp=2 @dcn, mp=4]", 4, []),  # two processes per slice
        ("[mp=2, dp=4 @dcn]", 2, ["SHD107"]),
        ("[dp=4 @dcn(2), mp=2 @dcn]", 2, ["SHD107"]),
    ],
)
def test_rows_that_processes_own(mesh: str, hosts: int, found: list[str]) -> None:
    held = tensors("w: x 8", "batch.tokens: batch 8, seq 8")
    layout = resolved(f"mesh: {mesh}\nw: replicated\nbatch: [dp]", held, hosts=hosts)
    assert [code for code, _ in codes(layout)] == found


def test_a_single_token_is_for_a_condition() -> None:
    text = "mesh: [sp=2]\n*: replicated\nact: {seq: sp}\nbatch: replicated\ncache: replicated"
    finding = only(resolved(text, tiny(mode="decode")), "SHD302")
    assert (finding.severity, finding.count) == ("warning", 13)
    assert finding.help is not None
    assert "when mode != decode { … }" in finding.help


def test_rows_are_blamed_at_the_entry_for_the_batch() -> None:
    held = tensors("w: x 8", "batch.tokens: batch 8, seq 8")
    finding = only(
        resolved("mesh: [dp=4, mp=3]\nw: replicated\nbatch: {seq: None, batch: dp}", held, hosts=6), "SHD308"
    )
    assert place(finding) == (3, 27)
    assert finding.message == "6 processes do not own whole, equal parts of the 4 parts of the batch (dp=4)"


def test_processes_that_share_rows_feed_the_same_ones() -> None:
    held = tensors("w: x 8", "batch.tokens: batch 3, seq 8")
    help_ = only(resolved("mesh: [dp=2, mp=4]\nw: replicated\nbatch: [dp]", held, hosts=4), "SHD302").help
    assert help_ is not None
    assert help_.splitlines()[1] == "at 4, each of 4 processes feeds 2 rows"


def test_devices_that_processes_cannot_share() -> None:
    held = tensors("w: x 8")
    finding = only(resolved("mesh: [dp=4, mp=2]\nw: replicated", held, hosts=3), "SHD107")
    assert finding.message == "3 processes cannot share the 8 devices of [dp=4, mp=2] evenly"
    assert (finding.severity, place(finding)) == ("error", (1, 1))
    assert finding.help is not None
    assert finding.help.splitlines()[0] == "numbers of processes that can: {1, 2, 4, 8}"
    assert codes(resolved("mesh: [dp=4, mp=2] allow_idle\nw: replicated", held, hosts=3, devices=9)) == []


def test_dcn_factors_that_processes_do_not_make_up() -> None:
    finding = only(resolved("mesh: [mp=2, dp=4 @dcn]\nw: replicated", tensors("w: x 8"), hosts=2), "SHD107")
    assert place(finding) == (1, 14)
    assert finding.message == (
        "the slow network has 4 parts (dp @dcn(4)), which 2 processes cannot be: each is within one part"
    )
    assert finding.help is not None
    assert finding.help.splitlines()[0] == "let the @dcn factors multiply to {2}, as in mp=2 @dcn(2)"


def test_an_entry_for_a_scalar_alone() -> None:
    held = tensors(W, "opt.count:", f"opt.mu.{W}")
    finding = only(resolved(MESH + "*: replicated\nopt.count: [dp]", held), "SHD301")
    assert (finding.message, place(finding)) == ("1 entry for opt.count, which is a scalar", (3, 12))
    assert codes(resolved(MESH + "*: replicated\nopt: [dp]\nopt.count: []", held)) == []
