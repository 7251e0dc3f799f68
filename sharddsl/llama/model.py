"""LLaMA in Flax NNX (arXiv 2302.13971, 2307.09288, 2407.21783): the modules, and every name a layout can speak of.

Each weight's use stands in a named scope of the weight's path within its layer (`attn.wq`), and each named activation
goes through `constrain`, which pins and scopes it (`act.attn.q`): so every collective of the compiled program can be
attributed. Params are used in the compute dtype; norms, rotations, softmax and logits are float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from sharddsl.llama.attention import Kernel, Mask, attend
from sharddsl.llama.cache import Cache, LayerCache
from sharddsl.llama.gradients import Constrain, pin_gradients
from sharddsl.llama.rope import Rotation, rotate
from sharddsl.models.config import LlamaConfig, Run
from sharddsl.tensors.model import LAYERS

SomeCache = TypeVar("SomeCache", Cache, None)


@dataclass(frozen=True)
class Call:
    """What all layers of one forward pass share: the positions' rotations, who sees whom, how it is computed, the slot
    of the cache that the first token goes to, and what pins the gradients of a layer's params where one is taken."""

    turn: Rotation
    mask: Mask
    constrain: Constrain
    kernel: Kernel = "xla"
    slot: Array | int = 0
    gradients: Constrain | None = None


_STD = 0.02
"""Standard deviation of the initial weights (GPT-2); those that write to the residual stream are divided by
sqrt(2·layers) (GPT-2 report, section 2.3)."""


class Embedding(nnx.Module):
    """`w`: (vocab, embed)."""

    def __init__(self, config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> None:
        self.dtype = run.compute_dtype
        self.w = _normal(rngs, run, (config.vocab, config.embed))

    def __call__(self, tokens: Array) -> Array:
        with jax.named_scope("embed.w"):
            # Look up first, cast then: the cast of the whole table would read it all for a few rows. An id outside the
            # vocabulary gives NaN, which shows, rather than another token's row.
            return jnp.take(self.w[...], tokens, axis=0, mode="fill", fill_value=jnp.nan).astype(self.dtype)

    def as_head(self, x: Array) -> Array:
        """Logits by the table's transpose, for a tied head."""
        return _product("bse,ve->bsv", x, self.w, "embed.w", jnp.float32)


class Head(nnx.Module):
    """`w`: (embed, vocab)."""

    def __init__(self, config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> None:
        self.w = _normal(rngs, run, (config.embed, config.vocab))

    def __call__(self, x: Array) -> Array:
        return _product("bse,ev->bsv", x, self.w, "lm_head.w", jnp.float32)


class RMSNorm(nnx.Module):
    """Root mean square norm (arXiv 1910.07467) in float32. `scale`: (embed,)."""

    def __init__(self, config: LlamaConfig, run: Run, name: str) -> None:
        self.scope = f"{name}.scale"
        self.eps = config.norm_eps
        self.scale = nnx.Param(jnp.ones(config.embed, run.param_dtype))

    def __call__(self, x: Array) -> Array:
        with jax.named_scope(self.scope):
            wide = x.astype(jnp.float32)
            normed = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + self.eps)
            return (normed * self.scale[...].astype(jnp.float32)).astype(x.dtype)


class Attention(nnx.Module):
    """`wq`: (embed, heads, head_dim); `wk`, `wv`: (embed, kv_heads, head_dim); `wo`: (heads, head_dim, embed)."""

    def __init__(self, config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> None:
        queries, keys = (config.embed, config.heads, config.head_dim), (config.embed, config.kv_heads, config.head_dim)
        self.wq = _normal(rngs, run, queries)
        self.wk = _normal(rngs, run, keys)
        self.wv = _normal(rngs, run, keys)
        self.wo = _normal(rngs, run, (config.heads, config.head_dim, config.embed), _STD / sqrt(2 * config.layers))

    def __call__(self, x: Array, call: Call, cache: LayerCache | None) -> tuple[Array, LayerCache | None]:
        constrain = call.constrain
        q = constrain(_product("bse,ehd->bshd", x, self.wq, "attn.wq"), "act.attn.q")
        k = constrain(_product("bse,ehd->bshd", x, self.wk, "attn.wk"), "act.attn.k")
        v = constrain(_product("bse,ehd->bshd", x, self.wv, "attn.wv"), "act.attn.v")
        q, k = rotate(q, call.turn), rotate(k, call.turn)
        if cache is not None:
            cache = cache.write(k, v)
            if call.mask.cached:
                k, v = cache.read()
                k, v = constrain(k, cache.name("k")), constrain(v, cache.name("v"))
        context = constrain(attend(q, k, v, call.mask, call.kernel), "act.attn.ctx")
        # One dim in place of two to contract: XLA may take two in the other order, and copy the weight transposed in
        # every step of decoding. Heads are the major part, so that a split over heads stays one.
        merged = context.reshape(*context.shape[:2], -1)
        flat = self.wo[...].reshape(merged.shape[-1], -1)
        return constrain(_product("bsf,fe->bse", merged, flat, "attn.wo"), "act.attn.out"), cache


class MLP(nnx.Module):
    """SwiGLU (arXiv 2002.05202). `w_gate`, `w_in`: (embed, ffn); `w_out`: (ffn, embed)."""

    def __init__(self, config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> None:
        self.w_gate = _normal(rngs, run, (config.embed, config.ffn))
        self.w_in = _normal(rngs, run, (config.embed, config.ffn))
        self.w_out = _normal(rngs, run, (config.ffn, config.embed), _STD / sqrt(2 * config.layers))

    def __call__(self, x: Array, constrain: Constrain) -> Array:
        gate = _product("bse,ef->bsf", x, self.w_gate, "mlp.w_gate")
        up = _product("bse,ef->bsf", x, self.w_in, "mlp.w_in")
        hidden = constrain(jax.nn.silu(gate) * up, "act.mlp.hidden")
        return constrain(_product("bsf,fe->bse", hidden, self.w_out, "mlp.w_out"), "act.mlp.out")


class Block(nnx.Module):
    """One layer: attention and MLP, each normed before and added to the residual stream after."""

    def __init__(self, config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> None:
        self.attn_norm = RMSNorm(config, run, "attn_norm")
        self.attn = Attention(config, run, rngs)
        self.mlp_norm = RMSNorm(config, run, "mlp_norm")
        self.mlp = MLP(config, run, rngs)

    def __call__(self, x: Array, call: Call, cache: LayerCache | None) -> tuple[Array, LayerCache | None]:
        constrain = call.constrain
        normed = constrain(self.attn_norm(x), "act.attn.norm")
        out, cache = self.attn(normed, call, cache)
        x = constrain(x + out, "act.resid")
        normed = constrain(self.mlp_norm(x), "act.mlp.norm")
        return constrain(x + self.mlp(normed, constrain), "act.resid"), cache


class Llama(nnx.Module):
    """The whole model. `layers` is one block of stacked arrays where the run scans, a list of blocks where not."""

    def __init__(self, config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> None:
        self.config, self.run = config, run
        self.embed = Embedding(config, run, rngs)
        self.layers = _stacked(config, run, rngs) if run.scan else _listed(config, run, rngs)
        self.norm = RMSNorm(config, run, "norm")
        if not config.tied:
            self.lm_head = Head(config, run, rngs)

    def hidden(self, tokens: Array, call: Call, cache: SomeCache) -> tuple[Array, SomeCache]:
        """The residual stream after the last layer, (batch, seq, embed), and the cache with this call's keys and
        values in it, or None where none was given. `tokens` is (batch, seq)."""
        # Constrained by a name of its own first: a lookup in a split table costs least when its result is not at once
        # forced into the residual stream's sharding.
        x = call.constrain(call.constrain(self.embed(tokens), "act.embed"), "act.resid")
        if isinstance(self.layers, Block):
            return _scan_layers(self.layers, self.run, x, call, cache)
        return _each_layer(self.layers, self.run, x, call, cache)

    def logits(self, x: Array, constrain: Constrain) -> Array:
        """From the residual stream: (batch, seq, vocab), float32."""
        x = constrain(self.norm(x), "act.final")
        return constrain(self.embed.as_head(x) if self.config.tied else self.lm_head(x), "act.logits")


# --------------------------------------------------------------------------------------------------------------- layers


def _scan_layers(blocks: Block, run: Run, x: Array, call: Call, cache: Cache | None) -> tuple[Array, Any]:
    """One layer is traced and compiled, and runs in a loop over the stacked params. The cache is carried through the
    loop and updated in place; as an output of each iteration it would be copied whole."""
    graph, stacked = nnx.split(blocks)

    def body(carry: tuple[Array, Any], layer: tuple[Any, Array]) -> tuple[tuple[Array, Any], None]:
        return _one_layer(graph, layer[0], carry, call, layer[1]), None

    numbers = jnp.arange(jax.tree.leaves(stacked)[0].shape[0])
    after, _ = jax.lax.scan(_remat(body, run), (x, cache), (stacked, numbers))
    return after


def _each_layer(blocks: nnx.List[Block], run: Run, x: Array, call: Call, cache: Cache | None) -> tuple[Array, Any]:
    """Every layer is traced and compiled by itself."""
    written = {}
    for number, block in enumerate(blocks):
        graph, params = nnx.split(block)
        body = _remat(partial(_one_layer, graph, call=call, number=number), run)
        x, written[number] = body(params, (x, None if cache is None else cache["layers"][number]))
    return x, None if cache is None else {"layers": written}


def _one_layer(
    graph: Any, params: Any, before: tuple[Array, Any], call: Call, number: Array | int
) -> tuple[Array, Any]:
    """One block, from (x, arrays of the cache or None) to the same."""
    x, arrays = before
    if call.gradients is not None:
        stacked = not isinstance(number, int)
        params = pin_gradients(params, call.gradients, f"{LAYERS}." if stacked else f"{LAYERS}[{number}].")
    block: Block = nnx.merge(graph, params)
    part = None if arrays is None else LayerCache(arrays["k"], arrays["v"], call.slot, number)
    x, part = block(x, call, part)
    return x, None if part is None else {"k": part.k, "v": part.v}


def _remat(body: Callable[..., Any], run: Run) -> Callable[..., Any]:
    """What the backward pass computes again: nothing, all of a layer, or all but its products with weights."""
    if run.remat == "none":
        return body
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable if run.remat == "dots" else None
    # In a scan nothing can be shared between forward and backward, so nothing need be done to prevent it.
    return jax.checkpoint(body, policy=policy, prevent_cse=not run.scan)


def _stacked(config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> Block:
    @nnx.split_rngs(splits=config.layers)
    @nnx.vmap(in_axes=0, out_axes=0)
    def blocks(rngs: nnx.Rngs) -> Block:
        return Block(config, run, rngs)

    stacked: Block = blocks(rngs)
    return stacked


def _listed(config: LlamaConfig, run: Run, rngs: nnx.Rngs) -> nnx.List[Block]:
    return nnx.List([Block(config, run, rngs) for _ in range(config.layers)])


def _normal(rngs: nnx.Rngs, run: Run, shape: tuple[int, ...], std: float = _STD) -> nnx.Param[Array]:
    return nnx.Param(jax.random.normal(rngs.params(), shape, jnp.dtype(run.param_dtype)) * std)


def _product(equation: str, x: Array, weight: Any, name: str, out: Any = None) -> Array:
    """x times a weight, in x's dtype (accumulated in `out`'s), within the weight's named scope."""
    with jax.named_scope(name):
        product: Array = jnp.einsum(equation, x, weight[...].astype(x.dtype), preferred_element_type=out)
        return product
