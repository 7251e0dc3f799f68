"""Effective layouts and the names of tensors that lie alike."""

from __future__ import annotations

import pytest

from sharddsl.layout.effective import headline, kinds
from sharddsl.layout.naming import together
from tests.layout.cases import resolved, tensors, tiny


def said(text: str, *held: str) -> dict[str, str]:
    return {kind.name: kind.layout for kind in kinds(resolved(text, tensors(*held)))}


@pytest.mark.parametrize(
    ("rule", "layout"),
    [
        ("[a, b]", "[a, None]"),
        ("[(a, b), None]", "[a, None]"),
        ("[(b, a), c]", "[a, c]"),
        ("[b, None]", "replicated"),
        ("[None, (a, c)]", "[None, (a, c)]"),
        ("[None, None] @pinned_host", "replicated @pinned_host"),
        ("[b, c] @pinned_host", "[None, c] @pinned_host"),
    ],
)
def test_axes_of_size_one_split_nothing(rule: str, layout: str) -> None:
    assert said(f"mesh: [a=2, b=1, c=2]\nw: {rule}\n", "w: x 8, y 8") == {"w": layout}


def test_what_is_left_to_the_compiler() -> None:
    text = "mesh: [a=2, b=1]\nact.x: [*, b]\n"
    assert said(text, "act.x: batch 8, embed 8", "act.y: batch 8") == {
        "act.x": "[*, None]",
        "act.y": "unconstrained",
    }


def test_a_tensor_of_every_layer_is_one_line_unless_its_layers_lie_apart() -> None:
    held = [f"layers[{n}].{name}: x 8" for n in range(4) for name in ("v", "w")]
    text = "mesh: [a=2]\nlayers[1:3].w: [a]\n"
    assert said(text, *held) == {
        "layers.v": "replicated",
        "layers[0,3].w": "replicated",
        "layers[1:3].w": "[a]",
    }


def test_a_stack_of_layers_says_its_own_axis() -> None:
    assert said("mesh: [a=2, pp=4]\nw: {x: a, layers: pp}\n", "layers.w: layers 4, x 8") == {
        "layers.w": "[a] layers: pp"
    }


def test_the_headline() -> None:
    assert headline(resolved("mesh: [a=2, b=1, c=4 @dcn(2)]\n*: {embed: a}\n", tiny(mode="decode"))) == (
        "llama_tiny, decode, on [a=2, c=4 @dcn(2)], batch 8, seq 64"
    )
    assert headline(resolved("mesh: [a=1]\n", tiny(batch=None, seq=None))) == "llama_tiny, train, on []"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["w"], "w"),
        (["w", "v"], "w, v"),
        (["grad.w", "grad.v"], "w, v (grad)"),
        (["w", "grad.w", "opt.mu.w", "opt.nu.w"], "w (param, grad, opt.mu, opt.nu)"),
        (["w", "v", "grad.w", "act.x"], "w (param, grad), v, act.x"),
        (["opt.mu.layers[0:4].w", "opt.nu.layers[0:4].w", "opt.count"], "layers[0:4].w (opt.mu, opt.nu), opt.count"),
        ([f"w{n}" for n in range(10)], "w0, w1, w2, w3, w4, w5, w6, w7 and 2 more"),
    ],
)
def test_names_in_few_words(names: list[str], text: str) -> None:
    assert together(names) == text
