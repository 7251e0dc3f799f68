"""Every fix, applied to the text, makes its finding go away and brings no other error."""

from __future__ import annotations

import pytest

from sharddsl.findings import Edit
from sharddsl.tensors import Inventory
from tests.layout.cases import only, resolved, tensors, tiny

ODD = tensors(
    "layer norm.scale: x 2", "mesh.0.w: x 2", "param.cache.bias: x 2", 'a"b\\.w: x 2', "layers[1].layers: x 2"
)
TIED = tensors("embed.w: vocab 8, embed 4", tied=True)


def applied(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with the edits made, from the last to the first so that positions hold."""
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    for edit in sorted(edits, key=lambda e: e.where.span, reverse=True):
        span = edit.where.span
        start, end = starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1
        text = text[:start] + edit.text + text[end:]
    return text


@pytest.mark.parametrize(
    ("code", "text", "held"),
    [
        ("SHD101", "mesh: [fsdp=2]\n*: {embed: fsdpp}\nact: {batch: (fsdpp)}", tiny()),
        ("SHD101", "mesh: [fsdp=2]\n*: {embed: fsdpp?}\nact: {batch: fsdp}", tiny()),
        ("SHD201", "mesh: [fsdp=2]\n*: {embed: fsdp}\nmlp.w_inn: [fsdp]\nact: {batch: fsdp}", tiny()),
        ("SHD202", "mesh: [fsdp=2]\nattn.*: [fsdp]\nact: {batch: fsdp}", tiny(scan=False)),
        ("SHD202", "mesh: [fsdp=2]\n*: [fsdp]\nwhen mode == train { act: {seq: fsdp} }\n", tiny(mode="decode")),
        ("SHD201", "mesh: [fsdp=2]\nbias: [fsdp]\n*: replicated\n0.v: [fsdp]", ODD),
        ("SHD202", "mesh: [fsdp=2]\n0.w: [fsdp]", ODD),
        ("SHD303", "mesh: [mp=16]\n*: {heads: mp, kv_heads: mp}\nact: {batch: None, kv_heads: mp}", tiny()),
        ("SHD310", "mesh: [mp=2]\nembed.w: [mp]\nlm_head.w: [None, mp]  # the head", TIED),
    ],
)
def test_a_fix_mends_its_finding(code: str, text: str, held: Inventory) -> None:
    found = [finding for finding in resolved(text, held).findings if finding.code == code]
    assert found
    mended = applied(text, tuple(edit for finding in found for edit in finding.fix))
    assert mended != text
    assert [f for f in resolved(mended, held).findings if f.severity == "error" or f.code == code] == []


def test_no_fix_is_offered_where_nothing_is_like_it() -> None:
    layout = resolved("mesh: [fsdp=2]\n*: {embed: fsdp}\nzzz: [fsdp]\nact: {batch: fsdp}", tiny())
    finding = only(layout, "SHD201")
    assert finding.fix == ()
    assert finding.help == "the paths are embed.w, attn_norm.scale, attn.wq, attn.wk, attn.wv, attn.wo and 6 more"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("SHD101", "let rows = (dp, fsdpp)\nmesh: [dp=1, fsdp=2]\n*: {embed: rows}\nact: {batch: dp}"),
        ("SHD101", "let split = {embed: fsdpp}\nmesh: [dp=1, fsdp=2]\n*: split\nact: {batch: dp}"),
        ("SHD303", "let split = {heads: mp, kv_heads: mp}\nmesh: [mp=16]\n*: split\nact: replicated"),
    ],
)
def test_what_came_through_a_let_is_not_written_over(code: str, text: str) -> None:
    assert only(resolved(text, tiny()), code).fix == ()


def test_no_path_is_put_into_a_block() -> None:
    layout = resolved("mesh: [fsdp=2]\n*: {embed: fsdp}\nmlp { w_inn: [fsdp] }\nact: {batch: fsdp}", tiny())
    finding = only(layout, "SHD201")
    assert finding.fix == ()
    assert finding.help is not None
    assert finding.help.startswith("did you mean mlp.w_in")
