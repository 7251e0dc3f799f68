"""A LLaMA's train step in plain JAX: what benchmarks compare the project with.

What one would write for this model alone: functions over a dict, a scan over stacked layers, PartitionSpecs by hand,
optax's `adamw`; no Flax, no names, and a constraint only where one is needed. Weights have the shapes and the nesting
of the project's, so that both sides can begin with the same ones.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sharddsl.models import LlamaConfig
from sharddsl.train.config import Training
from sharddsl.train.data.batch import Batch

Tree = dict[str, Any]


class ByHand(NamedTuple):
    """A layout written out: the weights' PartitionSpecs, those of the moments that differ, the axis that the rows of
    the batch are split over, and that of the activations' heads, ffn and vocab."""

    params: Tree
    moments: Tree
    rows: str
    across: str | None


LAYOUTS = {
    "llama/fsdp_tp": ByHand(
        params={
            "embed": {"w": P("mp", None)},
            "layers": {
                "attn": {
                    "wq": P(None, "fsdp", "mp", None),
                    "wk": P(None, "fsdp", "mp", None),
                    "wv": P(None, "fsdp", "mp", None),
                    "wo": P(None, "mp", None, "fsdp"),
                },
                "attn_norm": {"scale": P(None, None)},
                "mlp": {"w_gate": P(None, "fsdp", "mp"), "w_in": P(None, "fsdp", "mp"), "w_out": P(None, "mp", "fsdp")},
                "mlp_norm": {"scale": P(None, None)},
            },
            "norm": {"scale": P(None)},
            "lm_head": {"w": P("fsdp", "mp")},
        },
        moments={"embed": {"w": P("mp", "fsdp")}},
        rows="fsdp",
        across="mp",
    ),
    "llama/fsdp": ByHand(
        params={
            "embed": {"w": P("fsdp", None)},
            "layers": {
                "attn": {
                    "wq": P(None, "fsdp", None, None),
                    "wk": P(None, "fsdp", None, None),
                    "wv": P(None, "fsdp", None, None),
                    "wo": P(None, None, None, "fsdp"),
                },
                "attn_norm": {"scale": P(None, "fsdp")},
                "mlp": {"w_gate": P(None, "fsdp", None), "w_in": P(None, "fsdp", None), "w_out": P(None, None, "fsdp")},
                "mlp_norm": {"scale": P(None, "fsdp")},
            },
            "norm": {"scale": P("fsdp")},
            "lm_head": {"w": P("fsdp", None)},
        },
        moments={},
        rows="fsdp",
        across=None,
    ),
}
"""What the shipped specs of these names come to, for models with at least as many KV heads as `mp`."""


def shapes(config: LlamaConfig) -> Tree:
    """The weights' shapes."""
    layers, embed, heads, kv = config.layers, config.embed, config.heads, config.kv_heads
    size, ffn, vocab = config.head_dim, config.ffn, config.vocab
    head = {} if config.tied else {"lm_head": {"w": (embed, vocab)}}
    return {
        "embed": {"w": (vocab, embed)},
        "layers": {
            "attn": {
                "wq": (layers, embed, heads, size),
                "wk": (layers, embed, kv, size),
                "wv": (layers, embed, kv, size),
                "wo": (layers, heads, size, embed),
            },
            "attn_norm": {"scale": (layers, embed)},
            "mlp": {"w_gate": (layers, embed, ffn), "w_in": (layers, embed, ffn), "w_out": (layers, ffn, embed)},
            "mlp_norm": {"scale": (layers, embed)},
        },
        "norm": {"scale": (embed,)},
        **head,
    }


class Plain:
    """The same model and step. Weights have the shapes and the nesting of the other side's."""

    def __init__(
        self, config: LlamaConfig, run: Training, layout: ByHand, mesh: Mesh, *, params: Tree, batch: Batch
    ) -> None:
        self.config, self.run, self.layout, self.mesh = config, run, layout, mesh
        self.dtype = jnp.float32 if run.precision == "f32" else jnp.bfloat16
        schedule = optax.warmup_cosine_decay_schedule(0.0, run.lr, run.warmup_steps, run.steps, run.lr * run.lr_end)
        self.optimizer = optax.chain(
            optax.clip_by_global_norm(run.clip),
            optax.adamw(
                lambda count: schedule(count + 1), run.b1, run.b2, run.eps, weight_decay=run.weight_decay,
                mask=partial(jax.tree.map_with_path, lambda path, _: path[-1].key != "scale"),
            ),
        )  # fmt: skip
        specs = {name: layout.params[name] for name in params}
        shardings, of_moments = (
            jax.tree.map(self.at, tree, is_leaf=lambda x: isinstance(x, P)) for tree in (specs, specs | layout.moments)
        )
        of_state = optax.tree.map_params(
            self.optimizer,
            lambda _, sharding: sharding,
            jax.eval_shape(self.optimizer.init, params),
            of_moments,
            transform_non_params=lambda _: self.at(P()),
        )
        placed = jax.device_put(params, shardings)
        self.state = placed, jax.jit(self.optimizer.init, out_shardings=of_state)(placed)
        self.batch: Batch = jax.device_put(batch, self.at(P(layout.rows, None)))
        self.abstract = jax.tree.map(abstract, (self.state, self.batch))

    def at(self, spec: P) -> NamedSharding:
        return NamedSharding(self.mesh, spec)

    def pin(self, x: Array, *spec: Any) -> Array:
        pinned: Array = jax.lax.with_sharding_constraint(x, self.at(P(*spec)))
        return pinned

    def lower(self) -> jax.stages.Lowered:
        shardings = jax.tree.map(lambda x: x.sharding, self.abstract[0])
        return jax.jit(self.step, donate_argnums=0, out_shardings=(shardings, self.at(P()))).lower(*self.abstract)

    def step(self, state: tuple[Tree, Any], batch: Batch) -> tuple[tuple[Tree, Any], tuple[Array, Array]]:
        params, opt = state
        loss, grads = jax.value_and_grad(self.loss)(params, batch)
        updates, opt = self.optimizer.update(grads, opt, params)
        return (optax.apply_updates(params, updates), opt), (loss, optax.tree.norm(grads))

    def loss(self, params: Tree, batch: Batch) -> Array:
        logits = self.forward(params, batch)
        ids = jax.lax.broadcasted_iota(jnp.int32, logits.shape, 2)  # a lookup would gather the split vocabulary
        target = jnp.sum(jnp.where(ids == batch.targets[..., None], logits, 0), axis=-1)
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - target)

    def forward(self, params: Tree, batch: Batch) -> Array:
        rows, across = self.layout.rows, self.layout.across
        half = self.config.head_dim // 2
        begins = jnp.diff(batch.segments, prepend=0) != 0
        columns = jnp.arange(batch.tokens.shape[1])
        positions = columns - jax.lax.cummax(jnp.where(begins, columns, 0), axis=1)
        angles = positions[:, :, None, None] * self.config.rope_theta ** (-jnp.arange(half) / half)
        turn = jnp.cos(angles), jnp.sin(angles)
        mask = (batch.segments[:, :, None] == batch.segments[:, None, :])[:, None]

        def layer(x: Array, w: Tree) -> tuple[Array, None]:
            attn, mlp = w["attn"], w["mlp"]
            normed = self.norm(x, w["attn_norm"]["scale"])
            q, k, v = (
                self.pin(jnp.einsum("bse,ehd->bshd", normed, attn[name].astype(self.dtype)), rows, None, across, None)
                for name in ("wq", "wk", "wv")
            )
            mixed = jax.nn.dot_product_attention(rotate(q, turn), rotate(k, turn), v, mask=mask, is_causal=True)
            out = jnp.einsum("bshd,hde->bse", mixed, attn["wo"].astype(self.dtype))
            x = self.pin(x + out, rows, None, None)
            normed = self.norm(x, w["mlp_norm"]["scale"])
            gate, up = normed @ mlp["w_gate"].astype(self.dtype), normed @ mlp["w_in"].astype(self.dtype)
            hidden = self.pin(jax.nn.silu(gate) * up, rows, None, across)
            return self.pin(x + hidden @ mlp["w_out"].astype(self.dtype), rows, None, None), None

        if self.run.remat != "none":
            policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable if self.run.remat == "dots" else None
            layer = jax.checkpoint(layer, policy=policy, prevent_cse=False)
        x = self.pin(params["embed"]["w"][batch.tokens].astype(self.dtype), rows, None, None)
        x, _ = jax.lax.scan(layer, x, params["layers"])
        x = self.norm(x, params["norm"]["scale"])
        head = (params["embed"]["w"].T if self.config.tied else params["lm_head"]["w"]).astype(self.dtype)
        return self.pin(jnp.einsum("bse,ev->bsv", x, head, preferred_element_type=jnp.float32), rows, None, across)

    def norm(self, x: Array, scale: Array) -> Array:
        wide = x.astype(jnp.float32)
        normed = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + self.config.norm_eps)
        return (normed * scale).astype(x.dtype)


def rotate(x: Array, turn: tuple[Array, Array]) -> Array:
    cos, sin = turn
    real, imaginary = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([real * cos - imaginary * sin, imaginary * cos + real * sin], axis=-1)
    return turned.astype(x.dtype)


def abstract(x: Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
