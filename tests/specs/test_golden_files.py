"""The golden files of the shipped specs: that they are so, and that they say what was written out by hand.

What is written here was read off each spec's rules.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharddsl.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("golden")

# one tensor of one case a line: the spec, the beginning of the case, the tensor, its layout
BY_HAND = """
dp        llama3_2_1b    embed.w                        replicated
dp        llama3_2_1b    opt.mu.layers.mlp.w_in         replicated
dp        llama3_2_1b    act.logits                     [dp, None, None]
dp        llama3_2_1b    cache.k                        [dp, None, None, None]
zero1     llama3_2_3b    layers.attn.wq                 replicated
zero1     llama3_2_3b    grad.layers.attn.wq            replicated
zero1     llama3_2_3b    opt.nu.layers.attn.wq          [dp, None, None]
zero1     llama3_2_3b    opt.nu.layers.attn.wo          [None, None, dp]
zero1     llama3_2_3b    opt.count                      replicated
zero2     llama3_2_3b    layers.mlp.w_out               replicated
zero2     llama3_2_3b    grad.layers.mlp.w_out          [None, dp]
zero2     llama3_2_3b    opt.mu.layers.mlp.w_out        [None, dp]
fsdp      llama3_8b      embed.w                        [fsdp, None]
fsdp      llama3_8b      lm_head.w                      [fsdp, None]
fsdp      llama3_8b      layers.attn_norm.scale         [fsdp]
fsdp      llama3_8b      layers.mlp.w_out               [None, fsdp]
fsdp      llama3_8b      batch.tokens                   [fsdp, None]
tp        llama3_8b      layers.attn.wk                 [None, mp, None]
tp        llama3_8b      layers.attn.wo                 [mp, None, None]
tp        llama3_8b      act.attn.k                     [None, None, mp, None]
tp        llama3_8b      act.resid                      replicated
tp        llama3_8b      batch.tokens                   replicated
sp        llama3_8b      act.resid                      [None, mp, None]
sp        llama3_8b      act.attn.out                   [None, mp, None]
sp        llama3_8b      act.attn.norm                  replicated
sp        llama3_8b      layers.attn.wo                 [mp, None, None]
hsdp      llama3_8b      layers.mlp.w_gate              [fsdp, None]
hsdp      llama3_8b      act.mlp.hidden                 [(dp, fsdp), None, None]
fsdp_tp   llama3_8b      embed.w                        [mp, None]
fsdp_tp   llama3_8b      opt.mu.embed.w                 [mp, fsdp]
fsdp_tp   llama3_8b      grad.embed.w                   [mp, None]
fsdp_tp   llama3_8b      layers.attn.wo                 [mp, None, fsdp]
fsdp_tp   llama3_8b      act.attn.q                     [fsdp, None, mp, None]
fsdp_tp   smollm2_135m   layers.attn.wk                 [fsdp, mp, None]
easylm    llama_7b       embed.w                        [mp, fsdp]
easylm    llama_7b       act.mlp.out                    [fsdp, None, mp]
easylm    llama_7b       act.resid                      unconstrained
maxtext   llama2_7b      norm.scale                     [tensor]
maxtext   llama2_7b      act.resid                      [(data, fsdp), None, tensor]
maxtext   smollm2_135m   act.resid                      [fsdp, None, tensor]
"""
WRITTEN = [re.split(r"\s{2,}", line) for line in BY_HAND.strip().splitlines()]


def held(spec: str, case: str, tensor: str) -> list[str]:
    """What the golden file of the spec says of a tensor in the first case of a model, as it is written there."""
    text = (FOLDER / "specs" / "llama" / f"{spec}.golden").read_text()
    section = next(part for part in re.split(r"^case: ", text, flags=re.MULTILINE) if part.startswith(f"{case},"))
    lines = [re.split(r"\s{2,}", line) for line in section.splitlines()[1:]]
    return [line[2] for line in lines if line[0] == tensor]


@pytest.mark.parametrize(("spec", "case", "tensor", "layout"), WRITTEN, ids=[" ".join(w[:3]) for w in WRITTEN])
def test_a_golden_file_says_what_was_written_by_hand(spec: str, case: str, tensor: str, layout: str) -> None:
    assert held(spec, case, tensor) == [layout]


def test_the_shipped_specs_are_as_their_golden_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["lint", "specs", "--golden", "tests/specs/golden", "--format", "concise"]) == 0
    assert capsys.readouterr().out == "10 files, 22 cases: clean; layouts only, not compiled\n"


def test_more_ways_than_kv_heads_leave_k_and_v_whole() -> None:
    text = (FOLDER / "specs" / "llama" / "tp.golden").read_text()
    on_16 = text.split("case: llama3_8b, train, on [mp=16]")[1].split("case: ")[0]
    lines = {line.split()[0]: line for line in on_16.splitlines() if line and not line.startswith(",")}
    assert lines["layers.attn.wk"].endswith("replicated")
    assert lines["layers.attn.wq"].endswith("[None, mp, None]")
    assert lines["cache.k"].endswith("replicated")
