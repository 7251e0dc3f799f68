"""Every shipped layout's PartitionSpecs against ones written out by hand, on eight devices.

The model is `llama_tiny`, scanned (a leading `layers` dim) and untied. One list per tensor: what JAX is told, an
entry per dim. `FREE` is an activation that the layout leaves to the compiler.
"""

from __future__ import annotations

import pytest
from jax.sharding import PartitionSpec as P

from sharddsl import layout, models, partition, spec
from sharddsl.models.config import Run

Specs = dict[str, P | None]
"""PartitionSpecs by tensor; None for no constraint at all."""

FREE = None
"""No constraint at all."""

DATA = ("dp", "fsdp")
ROWS = ("data", "fsdp")

BATCH_SEQ_EMBED = ("embed", "resid", "attn.norm", "attn.out", "mlp.norm", "mlp.out", "final")


def acts(**named: P | None) -> Specs:
    """The twelve activations by name; `stream` stands for the seven of (batch, seq, embed) that are not named."""
    stream = named.pop("stream")
    table: Specs = {f"act.{name}": stream for name in BATCH_SEQ_EMBED}
    return table | {f"act.{name.replace('_', '.')}": value for name, value in named.items()}


WHOLE: Specs = {
    "embed.w": P(None, None),
    "layers.attn_norm.scale": P(None, None),
    "layers.attn.wq": P(None, None, None, None),
    "layers.attn.wk": P(None, None, None, None),
    "layers.attn.wv": P(None, None, None, None),
    "layers.attn.wo": P(None, None, None, None),
    "layers.mlp_norm.scale": P(None, None),
    "layers.mlp.w_gate": P(None, None, None),
    "layers.mlp.w_in": P(None, None, None),
    "layers.mlp.w_out": P(None, None, None),
    "norm.scale": P(None),
    "lm_head.w": P(None, None),
}
"""All params on every device."""


def over_embed(axis: str, table: P) -> Specs:
    """All params split along `embed`, the embedding's `table` as given."""
    return {
        "embed.w": table,
        "layers.attn_norm.scale": P(None, axis),
        "layers.attn.wq": P(None, axis, None, None),
        "layers.attn.wk": P(None, axis, None, None),
        "layers.attn.wv": P(None, axis, None, None),
        "layers.attn.wo": P(None, None, None, axis),
        "layers.mlp_norm.scale": P(None, axis),
        "layers.mlp.w_gate": P(None, axis, None),
        "layers.mlp.w_in": P(None, axis, None),
        "layers.mlp.w_out": P(None, None, axis),
        "norm.scale": P(axis),
        "lm_head.w": P(axis, None),
    }


def rows_alone(axes: str | tuple[str, ...]) -> Specs:
    """Activations, inputs and cache split along the batch and nothing else."""
    four = P(axes, None, None, None)
    three = P(axes, None, None)
    return {
        **acts(stream=three, attn_q=four, attn_k=four, attn_v=four, attn_ctx=four, mlp_hidden=three, logits=three),
        "batch.tokens": P(axes, None),
        "cache.k": P(None, axes, None, None, None),
        "cache.v": P(None, axes, None, None, None),
    }


def prefixed(namespace: str, params: Specs) -> Specs:
    return {f"{namespace}.{name}": value for name, value in params.items()}


MEGATRON: Specs = {
    "embed.w": P("mp", None),
    "layers.attn_norm.scale": P(None, None),
    "layers.attn.wq": P(None, None, "mp", None),
    "layers.attn.wk": P(None, None, "mp", None),
    "layers.attn.wv": P(None, None, "mp", None),
    "layers.attn.wo": P(None, "mp", None, None),
    "layers.mlp_norm.scale": P(None, None),
    "layers.mlp.w_gate": P(None, None, "mp"),
    "layers.mlp.w_in": P(None, None, "mp"),
    "layers.mlp.w_out": P(None, "mp", None),
    "norm.scale": P(None),
    "lm_head.w": P(None, "mp"),
}

MEGATRON_ACTS = acts(
    stream=P(None, None, None),
    attn_q=P(None, None, "mp", None),
    attn_k=P(None, None, "mp", None),
    attn_v=P(None, None, "mp", None),
    attn_ctx=P(None, None, "mp", None),
    mlp_hidden=P(None, None, "mp"),
    logits=P(None, None, "mp"),
)

MEGATRON_IO: Specs = {
    "batch.tokens": P(None, None),
    "cache.k": P(None, None, None, "mp", None),
    "cache.v": P(None, None, None, "mp", None),
}


def fsdp_and(tensor: str, table: P, norm: str | None) -> Specs:
    """FSDP over `fsdp` and tensor parallelism over `tensor`, as EasyLM, MaxText and `fsdp_tp` share it."""
    return {
        "embed.w": table,
        "layers.attn_norm.scale": P(None, norm),
        "layers.attn.wq": P(None, "fsdp", tensor, None),
        "layers.attn.wk": P(None, "fsdp", tensor, None),
        "layers.attn.wv": P(None, "fsdp", tensor, None),
        "layers.attn.wo": P(None, tensor, None, "fsdp"),
        "layers.mlp_norm.scale": P(None, norm),
        "layers.mlp.w_gate": P(None, "fsdp", tensor),
        "layers.mlp.w_in": P(None, "fsdp", tensor),
        "layers.mlp.w_out": P(None, tensor, "fsdp"),
        "norm.scale": P(norm),
        "lm_head.w": P("fsdp", tensor),
    }


EXPECTED: list[tuple[str, dict[str, int], Specs]] = [
    ("dp", {"dp": 8}, WHOLE | prefixed("grad", WHOLE) | prefixed("opt.mu", WHOLE) | rows_alone("dp")),
    (
        "zero1",
        {"dp": 8},
        WHOLE
        | prefixed("grad", WHOLE)
        | prefixed("opt.mu", over_embed("dp", P(None, "dp")))
        | prefixed("opt.nu", over_embed("dp", P(None, "dp")))
        | rows_alone("dp"),
    ),
    (
        "zero2",
        {"dp": 8},
        WHOLE
        | prefixed("grad", over_embed("dp", P(None, "dp")))
        | prefixed("opt.mu", over_embed("dp", P(None, "dp")))
        | rows_alone("dp"),
    ),
    (
        "fsdp",
        {"fsdp": 8},
        over_embed("fsdp", P("fsdp", None))
        | prefixed("grad", over_embed("fsdp", P("fsdp", None)))
        | prefixed("opt.nu", over_embed("fsdp", P("fsdp", None)))
        | rows_alone("fsdp"),
    ),
    (
        "hsdp",
        {"dp": 2, "fsdp": 4},
        over_embed("fsdp", P("fsdp", None))
        | prefixed("opt.mu", over_embed("fsdp", P("fsdp", None)))
        | rows_alone(DATA),
    ),
    ("tp", {"mp": 8}, MEGATRON | prefixed("grad", MEGATRON) | MEGATRON_ACTS | MEGATRON_IO),
    (
        "sp",
        {"mp": 8},
        MEGATRON
        | MEGATRON_ACTS
        | {
            "act.embed": P(None, "mp", None),
            "act.resid": P(None, "mp", None),
            "act.attn.out": P(None, "mp", None),
            "act.mlp.out": P(None, "mp", None),
        }
        | MEGATRON_IO,
    ),
    (
        "fsdp_tp",
        {"dp": 2, "fsdp": 2, "mp": 2},
        fsdp_and("mp", P("mp", None), None)
        | prefixed("grad", fsdp_and("mp", P("mp", None), None))
        | prefixed("opt.mu", fsdp_and("mp", P("mp", "fsdp"), None))
        | acts(
            stream=P(DATA, None, None),
            attn_q=P(DATA, None, "mp", None),
            attn_k=P(DATA, None, "mp", None),
            attn_v=P(DATA, None, "mp", None),
            attn_ctx=P(DATA, None, "mp", None),
            mlp_hidden=P(DATA, None, "mp"),
            logits=P(DATA, None, "mp"),
        )
        | {
            "batch.tokens": P(DATA, None),
            "cache.k": P(None, DATA, None, "mp", None),
            "cache.v": P(None, DATA, None, "mp", None),
        },
    ),
    (
        "easylm",
        {"dp": 2, "fsdp": 2, "mp": 2},
        fsdp_and("mp", P("mp", "fsdp"), None)
        | prefixed("opt.mu", fsdp_and("mp", P("mp", "fsdp"), None))
        | acts(
            stream=FREE,
            attn_q=P(DATA, None, "mp", None),
            attn_k=P(DATA, None, "mp", None),
            attn_v=P(DATA, None, "mp", None),
            attn_ctx=FREE,
            mlp_hidden=FREE,
            mlp_out=P(DATA, None, "mp"),
            logits=FREE,
        )
        | {
            "batch.tokens": P(DATA, None),
            "cache.k": P(None, DATA, None, "mp", None),
            "cache.v": P(None, DATA, None, "mp", None),
        },
    ),
    (
        "maxtext",
        {"data": 2, "fsdp": 2, "tensor": 2},
        fsdp_and("tensor", P("tensor", "fsdp"), "tensor")
        | acts(
            stream=FREE,
            resid=P(ROWS, None, "tensor"),
            attn_q=FREE,
            attn_k=FREE,
            attn_v=FREE,
            attn_ctx=FREE,
            mlp_hidden=FREE,
            logits=FREE,
        )
        | {
            "batch.tokens": P(ROWS, None),
            "cache.k": P(None, ROWS, None, "tensor", None),
            "cache.v": P(None, ROWS, None, "tensor", None),
        },
    ),
]


@pytest.mark.parametrize(("name", "mesh", "expected"), EXPECTED, ids=[case[0] for case in EXPECTED])
def test_partition_specs_are_those_written_by_hand(name: str, mesh: dict[str, int], expected: Specs) -> None:
    tensors = models.inventory(models.preset("llama_tiny"), Run(batch=8, seq=64))
    shipped = spec.load(f"llama/{name}", mesh=mesh).checked()
    assert shipped.mesh is not None
    sizes, _ = layout.size_mesh(shipped.mesh, devices=8)
    assert sizes is not None
    placed = layout.resolve(shipped, tensors, sizes)
    assert not [finding for finding in placed.findings if finding.severity == "error"]

    on_mesh = partition.Partition(placed, partition.make_mesh(sizes))
    for tensor, wanted in expected.items():
        if wanted is FREE:
            assert placed[tensor].axes is None, tensor
        else:
            assert on_mesh.spec(tensor) == wanted, tensor


def test_every_shipped_layout_is_in_the_table() -> None:
    assert {case[0] for case in EXPECTED} == {name.removeprefix("llama/") for name in spec.list_specs()}
