"""What `show` prints."""

from __future__ import annotations

import json

import pytest

from sharddsl.layout.report import Total, to_json, to_text, totals
from tests.layout.cases import resolved, tensors, tiny

TEXT = """
mesh: [dp=1, fsdp=2, mp=4]
*: {embed: fsdp, ffn: mp, kv_heads: mp?}
embed.w: [mp, None]
act.resid: [(dp, fsdp), None, None]
opt: {.., ffn: (mp, dp)} @pinned_host
"""

SMALL = (
    "embed.w: vocab 512, embed 128",
    "layers.attn.wk: layers 4, embed 128, kv_heads 6, head_dim 8",
    "opt.mu.layers.mlp.w: layers 4, embed 128, ffn 512",
    "layers.mlp.w: layers 4, embed 128, ffn 512",
    "opt.count:",
    "act.resid: batch 8, seq ?, embed 128",
    "act.attn.q: batch 8, seq ?, heads 16, head_dim 8",
    "batch.tokens: batch 8, seq ?",
)

SHOWN = """\
these, train, on [dp=1, fsdp=2, mp=4]: 8 devices
layers 4, batch 8, seq not known

param: 3 tensors, 1.3 MiB, 240.0 KiB per device
  (vocab 512, embed 128)
    embed.w         [mp, None]          128×128    64.0 KiB  my.shard:4
  (embed 128, kv_heads 6, head_dim 8), 4 layers
    layers.attn.wk  [fsdp, None, None]  4×64×6×8   48.0 KiB  my.shard:3
        mp? dropped on kv_heads: kv_heads 6 is not a multiple of mp=4
  (embed 128, ffn 512), 4 layers
    layers.mlp.w    [fsdp, mp]          4×64×128  128.0 KiB  my.shard:3

opt: 2 tensors, 1.0 MiB, 128.0 KiB per device
  (embed 128, ffn 512), 4 layers
    mu.layers.mlp.w  [fsdp, (mp, dp)] @pinned_host  4×64×128  128.0 KiB  my.shard:6
  a scalar
    count            []                             1               4 B  scalar

act: 2 tensors, each standing for its value in every layer
  (batch 8, seq ?, embed 128)
    resid   [(dp, fsdp), None, None]  4×?×128    my.shard:5
  (batch 8, seq ?, heads 16, head_dim 8)
    attn.q  compiler                             no rule

batch: 1 tensor
  (batch 8, seq ?)
    tokens  [(dp, fsdp), None]  4×?    as act.resid my.shard:5
"""


def test_the_table() -> None:
    assert to_text(resolved(TEXT, tensors(*SMALL)), width=90) == SHOWN


def test_a_wide_table_has_a_line_per_tensor() -> None:
    text = to_text(resolved(TEXT, tensors(*SMALL)), width=140)
    assert (
        "  layers.mlp.w    (embed 128, ffn 512), 4 layers                 [fsdp, mp]          4×64×128  128.0 KiB"
        "  my.shard:3"
    ) in text.splitlines()


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("scan", [True, False])
def test_no_line_is_wider_than_asked(width: int, scan: bool) -> None:
    text = to_text(resolved("mesh: [fsdp=2]\n*: {embed: fsdp}\nact.resid: [fsdp]", tiny(scan=scan)), width)
    assert max(map(len, text.splitlines())) <= width


def test_layers_that_are_alike_share_a_line() -> None:
    text = "mesh: [a=2]\n*: replicated\nlayers[1:3].w: [a]"
    shown = to_text(resolved(text, tensors(*(f"layers[{n}].w: x 256" for n in range(4)))), 60)
    assert [line.split() for line in shown.splitlines() if "layers[" in line] == [
        ["layers[0,3].w", "[None]", "2", "of", "256", "2.0", "KiB", "my.shard:2"],
        ["layers[1:3].w", "[a]", "2", "of", "128", "1.0", "KiB", "my.shard:3"],
    ]


def test_what_is_not_known_is_said() -> None:
    shown = to_text(resolved("mesh: [a=2]\n*: replicated\nwhen batch > 2 { w: [a] }", tensors("w: x 8")))
    assert shown.endswith("\nnot known here:\n  batch > 2 (taken not to hold)\n")


def test_totals_are_sums_written_out() -> None:
    found = totals(resolved(TEXT, tensors(*SMALL)))
    whole = 512 * 128 + 4 * 128 * 6 * 8 + 4 * 128 * 512
    local = 128 * 128 + 4 * 64 * 6 * 8 + 4 * 64 * 128
    assert found["param"] == Total(3, 4 * whole, 4 * local)
    assert found["opt"] == Total(2, 4 * (4 * 128 * 512 + 1), 4 * (4 * 64 * 128 + 1))
    assert found["act"] == Total(2, None, None)


def test_json() -> None:
    data = json.loads(json.dumps(to_json(resolved(TEXT, tensors(*SMALL)))))
    assert data["version"] == 1
    assert data["mesh"] == {
        "axes": {"dp": 1, "fsdp": 2, "mp": 4},
        "dcn": {},
        "devices": None,
        "inferred": None,
    }
    by_name = {tensor["name"]: tensor for tensor in data["tensors"]}
    assert by_name["layers.attn.wk"] == {
        "name": "layers.attn.wk",
        "namespace": "param",
        "dims": ["layers", "embed", "kv_heads", "head_dim"],
        "shape": [4, 128, 6, 8],
        "dtype": "float32",
        "axes": [[], ["fsdp"], [], []],
        "local_shape": [4, 64, 6, 8],
        "bytes": 98_304,
        "bytes_per_device": 49_152,
        "memory": None,
        "reason": "rule",
        "rule": "my.shard:3",
        "dropped": [{"axes": ["mp"], "dim": "kv_heads", "why": "kv_heads 6 is not a multiple of mp=4"}],
    }
    assert by_name["act.attn.q"]["axes"] is None
    assert by_name["act.resid"]["local_shape"] == [4, None, 128]
    assert data["totals"]["batch"] == {"tensors": 1, "bytes": None, "bytes_per_device": None}
    assert [finding["code"] for finding in data["findings"]] == ["SHD307"]
