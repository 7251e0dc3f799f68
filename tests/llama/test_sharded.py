"""Where the model really lies: params at birth, and the compiled program against one sharded by hand."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sharddsl import layout, spec
from sharddsl.llama.forward import Params, abstract_params, forward, init_params, initial_params
from sharddsl.models import PRESETS, Run, inventory
from sharddsl.partition import Partition
from tests.layouts import LAYOUTS, lay_out
from tests.llama.small import F32

TINY = PRESETS["llama_tiny"]
WHOLE = 4_461_056
"""Bytes of llama_tiny in float32."""

# What one device of eight holds, in elements. Per layer under fsdp=4, mp=2: wq and wo 32·8·8 each, wk and wv 32·4·8
# each, three MLP weights of 32·256, two norms of 32; embed.w 256·128, lm_head.w 32·256, norm.scale 32.
SHARE = {
    "fsdp": WHOLE // 8,
    "fsdp_tp": 4 * (4 * (2 * 2048 + 2 * 1024 + 3 * 8192 + 2 * 32) + 32_768 + 8_192 + 32),
}


def on(name: str, run: Run = F32) -> Partition:
    return Partition.of(lay_out(inventory(TINY, run), *LAYOUTS[name]))


@lru_cache
def born(name: str) -> Params:
    return init_params(TINY, F32, on(name), seed=5)


@pytest.mark.parametrize("name", list(SHARE))
def test_each_device_holds_its_share_of_the_params(name: str) -> None:
    held: dict[int, int] = defaultdict(int)
    for leaf in jax.tree.leaves(born(name)):
        for shard in leaf.addressable_shards:
            held[shard.device.id] += shard.data.nbytes
    assert dict(held) == dict.fromkeys(range(8), SHARE[name])


@pytest.mark.parametrize("scan", [True, False], ids=["scanned", "unrolled"])
@pytest.mark.parametrize("name", list(SHARE))
def test_params_are_born_in_their_shards(name: str, scan: bool) -> None:
    """The program that makes them moves nothing between devices, and no value in it, temporaries included, is larger
    than the largest shard of a param. (The compiler's own figure for temporaries means little on a CPU.)"""
    run = Run(precision="f32", scan=scan)
    shardings = on(name, run).shardings(abstract_params(TINY, run))
    made: Any = jax.jit(partial(initial_params, TINY, run), out_shardings=shardings).lower(jax.random.key(0)).compile()
    largest = max(elements_of_shards(run, name))
    assert max(elements_in(made.as_text())) == largest
    assert not re.search(r"all-gather|all-reduce|all-to-all|collective-permute", made.as_text())
    pointers = made.memory_analysis().output_size_in_bytes - SHARE[name]
    assert 0 <= pointers <= 8 * len(jax.tree.leaves(shardings))


def test_without_output_shardings_one_device_would_make_everything() -> None:
    """The check above can fail."""
    made: Any = jax.jit(partial(initial_params, TINY, F32)).lower(jax.random.key(0)).compile()
    assert max(elements_in(made.as_text())) == 4 * 128 * 512
    assert made.memory_analysis().output_size_in_bytes >= WHOLE


def elements_in(hlo: str) -> list[int]:
    return [prod(map(int, dims.split(","))) for dims in re.findall(r"= \w+\[([\d,]+)\]", hlo)]


def elements_of_shards(run: Run, name: str) -> list[int]:
    """By hand: the largest are the table and the MLP's weights."""
    layers = TINY.layers if run.scan else 1
    return {"fsdp": [512 * 16, layers * 16 * 512], "fsdp_tp": [256 * 128, layers * 32 * 256]}[name]


def test_values_at_birth_do_not_depend_on_the_layout() -> None:
    first, second = born("fsdp"), born("fsdp_tp")
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert bool(jnp.array_equal(jax.device_get(one), jax.device_get(other)))
    assert float(first["layers"]["mlp"]["w_in"].std()) == pytest.approx(0.02, rel=0.01)
    assert float(first["layers"]["mlp"]["w_out"].std()) == pytest.approx(0.02 / (2 * 4) ** 0.5, rel=0.01)


# -------------------------------------------------------------------------------------------- against a model by hand

HAND_PARAMS = {
    "embed": {"w": P("mp", None)},
    "layers": {
        "attn": {
            "wq": P(None, "fsdp", "mp", None),
            "wk": P(None, "fsdp", "mp", None),
            "wv": P(None, "fsdp", "mp", None),
            "wo": P(None, "mp", None, "fsdp"),
        },
        "attn_norm": {"scale": P(None, None)},
        "mlp": {
            "w_gate": P(None, "fsdp", "mp"),
            "w_in": P(None, "fsdp", "mp"),
            "w_out": P(None, "mp", "fsdp"),
        },
        "mlp_norm": {"scale": P(None, None)},
    },
    "norm": {"scale": P(None)},
    "lm_head": {"w": P("fsdp", "mp")},
}
STREAM = P(("dp", "fsdp"), None, None)
HEADS = P(("dp", "fsdp"), None, "mp", None)
HAND_ACTS = {
    "act.embed": STREAM,
    "act.resid": STREAM,
    "act.attn.norm": STREAM,
    "act.attn.q": HEADS,
    "act.attn.k": HEADS,
    "act.attn.v": HEADS,
    "act.attn.ctx": HEADS,
    "act.attn.out": STREAM,
    "act.mlp.norm": STREAM,
    "act.mlp.hidden": P(("dp", "fsdp"), None, "mp"),
    "act.mlp.out": STREAM,
    "act.final": STREAM,
    "act.logits": P(("dp", "fsdp"), None, "mp"),
}


def test_the_program_is_that_of_a_model_sharded_by_hand() -> None:
    run = Run(precision="bf16_compute", remat="full")
    mesh = Mesh(
        [[[jax.devices()[2 * f + m] for m in range(2)] for f in range(4)]],
        ("dp", "fsdp", "mp"),
        axis_types=(AxisType.Auto,) * 3,
    )

    def by_hand(x: Array, name: str) -> Array:
        pinned: Array = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, HAND_ACTS[name]))
        return pinned

    def place(spec: P) -> NamedSharding:
        return NamedSharding(mesh, spec)

    hand = compiled(
        run,
        by_hand,
        jax.tree.map(place, HAND_PARAMS, is_leaf=lambda x: isinstance(x, P)),
        place(P(("dp", "fsdp"), None)),
    )

    shipped = spec.load("llama/fsdp_tp").checked()
    assert shipped.mesh is not None
    sizes, _ = layout.size_mesh(shipped.mesh, devices=8)
    assert sizes is not None
    partition = Partition.of(layout.resolve(shipped, inventory(TINY, run), sizes))
    params = partition.shardings(abstract_params(TINY, run))
    found = compiled(run, partition.constrain, params, partition.sharding("batch.tokens"))
    assert found == hand
    assert "all-gather" in found
    assert "act.mlp.hidden" not in found  # which is metadata


IN_TEXT = {STREAM: '[{"dp", "fsdp"}, {}, {}]', HEADS: '[{"dp", "fsdp"}, {}, {"mp"}, {}]'}
LAST_SPLIT = '[{"dp", "fsdp"}, {}, {"mp"}]'
"""How Shardy writes the specs above; the last is that of `act.mlp.hidden` and `act.logits`."""


@pytest.mark.parametrize("scan", [True, False], ids=["scanned", "unrolled"])
def test_every_weight_and_activation_has_its_scope_in_the_lowered_program(scan: bool) -> None:
    """By these scopes a compiled program's collectives are attributed. An activation's holds its constraint."""
    run = Run(precision="bf16_compute", scan=scan)
    partition = on("fsdp_tp", run)
    program = jax.jit(partial(forward, TINY, run, constrain=partition.constrain))
    text = program.lower(abstract_params(TINY, run), jax.ShapeDtypeStruct((8, 16), jnp.int32)).as_text(debug_info=True)
    places = dict(re.findall(r'^(#loc\d+) = loc\("([^"]*)"', text, flags=re.MULTILINE))
    scopes = [f"/{place}" for place in places.values()]  # after the wrappers' names, which differ between versions
    for weight in ("attn.wq", "attn.wk", "attn.wv", "attn.wo", "mlp.w_gate", "mlp.w_in", "mlp.w_out", "lm_head.w"):
        assert any(re.search(rf"/{weight}/.*dot_general", scope) for scope in scopes), weight
    for use in ("/attn_norm.scale/mul", "/mlp_norm.scale/mul", "/norm.scale/mul", "/embed.w/jit(_take)"):
        assert any(use in scope for scope in scopes), use

    pinned: dict[str, set[str]] = defaultdict(set)
    for axes, place in re.findall(r"sdy\.sharding_constraint .* <@mesh, (.*)> : .* loc\((#loc\d+)\)", text):
        pinned[places[place].split("/")[-2]].add(axes)
    assert pinned == {name: {IN_TEXT.get(spec, LAST_SPLIT)} for name, spec in HAND_ACTS.items()}


def compiled(run: Run, constrain: Any, params: Any, tokens: NamedSharding) -> str:
    """The optimized HLO of the forward and backward pass, without metadata."""

    def loss(params: Params, tokens: Array) -> Array:
        return forward(TINY, run, params, tokens, constrain=constrain).mean()

    program = jax.jit(jax.value_and_grad(loss), in_shardings=(params, tokens), out_shardings=(None, params))
    made: Any = program.lower(abstract_params(TINY, run), jax.ShapeDtypeStruct((8, 16), jnp.int32)).compile()
    return without_metadata(made.as_text())


def without_metadata(hlo: str) -> str:
    """Instructions only: not where they come from, nor the tables of files and frames that say so."""
    hlo = re.sub(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d.*\n)*", "", hlo, flags=re.MULTILINE)
    return re.sub(r",? metadata=\{[^{}]*\}", "", hlo)
