"""A LLaMA's inventory: names, dims, shapes and dtypes, written out."""

from __future__ import annotations

import pytest

from sharddsl.models import Run, inventory, preset
from sharddsl.tensors import Path

TINY = preset("llama_tiny")

SCANNED_PARAMS = {
    "embed.w": ("vocab embed", (512, 128)),
    "layers.attn_norm.scale": ("layers embed", (4, 128)),
    "layers.attn.wq": ("layers embed heads head_dim", (4, 128, 16, 8)),
    "layers.attn.wk": ("layers embed kv_heads head_dim", (4, 128, 8, 8)),
    "layers.attn.wv": ("layers embed kv_heads head_dim", (4, 128, 8, 8)),
    "layers.attn.wo": ("layers heads head_dim embed", (4, 16, 8, 128)),
    "layers.mlp_norm.scale": ("layers embed", (4, 128)),
    "layers.mlp.w_gate": ("layers embed ffn", (4, 128, 512)),
    "layers.mlp.w_in": ("layers embed ffn", (4, 128, 512)),
    "layers.mlp.w_out": ("layers ffn embed", (4, 512, 128)),
    "norm.scale": ("embed", (128,)),
    "lm_head.w": ("embed vocab", (128, 512)),
}

ACTIVATIONS = {
    "act.embed": ("batch seq embed", (6, 32, 128)),
    "act.resid": ("batch seq embed", (6, 32, 128)),
    "act.attn.norm": ("batch seq embed", (6, 32, 128)),
    "act.attn.q": ("batch seq heads head_dim", (6, 32, 16, 8)),
    "act.attn.k": ("batch seq kv_heads head_dim", (6, 32, 8, 8)),
    "act.attn.v": ("batch seq kv_heads head_dim", (6, 32, 8, 8)),
    "act.attn.ctx": ("batch seq heads head_dim", (6, 32, 16, 8)),
    "act.attn.out": ("batch seq embed", (6, 32, 128)),
    "act.mlp.norm": ("batch seq embed", (6, 32, 128)),
    "act.mlp.hidden": ("batch seq ffn", (6, 32, 512)),
    "act.mlp.out": ("batch seq embed", (6, 32, 128)),
    "act.final": ("batch seq embed", (6, 32, 128)),
    "act.logits": ("batch seq vocab", (6, 32, 512)),
}


def test_scanned_params() -> None:
    params = inventory(TINY, Run()).of("param")
    assert {t.name: (" ".join(t.dims), t.shape) for t in params} == SCANNED_PARAMS


def test_unrolled_params_have_a_tensor_per_layer() -> None:
    unrolled = inventory(TINY, Run(scan=False))
    assert len(unrolled.of("param")) == 3 + 4 * 9
    wq = unrolled["layers[3].attn.wq"]
    assert (wq.path, wq.dims) == (Path(("layers", "attn", "wq"), 3, 0), ("embed", "heads", "head_dim"))
    assert unrolled["opt.mu.layers[3].attn.wq"].path == Path(("mu", "layers", "attn", "wq"), 3, 1)
    assert unrolled["cache.layers[2].k"].dims == ("batch", "seq", "kv_heads", "head_dim")


def test_activations() -> None:
    acts = inventory(TINY, Run(batch=6, seq=32)).of("act")
    assert {t.name: (" ".join(t.dims), t.shape) for t in acts} == ACTIVATIONS


def test_a_tied_model_has_no_head() -> None:
    tied = inventory(preset("smollm2_135m"), Run())
    assert tied.tied is True
    assert [t.name for t in tied if "lm_head" in t.name] == []


@pytest.mark.parametrize(
    ("precision", "weights", "compute", "leaves"),
    [
        ("f32", "float32", "float32", {"mu", "nu"}),
        ("bf16_compute", "float32", "bfloat16", {"mu", "nu"}),
        ("bf16_master", "bfloat16", "bfloat16", {"mu", "nu", "master"}),
    ],
)
def test_dtypes_follow_the_precision(precision: str, weights: str, compute: str, leaves: set[str]) -> None:
    held = inventory(TINY, Run.model_validate({"precision": precision}))
    assert held["layers.mlp.w_in"].dtype == weights
    assert held["grad.layers.mlp.w_in"].dtype == weights
    assert held["act.mlp.hidden"].dtype == compute
    assert held["act.logits"].dtype == "float32"
    assert held["cache.k"].dtype == compute
    assert {t.path.segments[0] for t in held.of("opt")} == leaves | {"count"}
    assert {t.dtype for t in held.of("opt")} == {"float32", "int32"}


def test_every_grad_and_moment_belongs_to_its_param() -> None:
    held = inventory(TINY, Run(scan=False))
    assert held["grad.layers[1].mlp.w_in"].param == held["layers[1].mlp.w_in"].path
    assert held["opt.nu.layers[1].mlp.w_in"].param == held["layers[1].mlp.w_in"].path
    assert (held["opt.count"].shape, held["opt.count"].param) == ((), None)


@pytest.mark.parametrize(("mode", "seq"), [("train", 64), ("prefill", 64), ("decode", 1)])
def test_decode_moves_one_token_through_a_whole_cache(mode: str, seq: int) -> None:
    held = inventory(TINY, Run.model_validate({"mode": mode, "batch": 2, "seq": 64}))
    assert held["act.resid"].shape == (2, seq, 128)
    assert held["batch.tokens"].shape == (2, seq)
    assert held["cache.k"].shape == (4, 2, 64, 8, 8)
    assert held.sizes["seq"] == 64


def test_unknown_sizes_stay_unknown() -> None:
    held = inventory(TINY, Run())
    assert held["act.resid"].shape == (None, None, 128)
    assert held["act.resid"].nbytes is None
    assert held["embed.w"].nbytes == 512 * 128 * 4
