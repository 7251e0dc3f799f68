"""Decoding speed against the same model in plain JAX: `python benchmarks/decode.py`.

SmolLM2-135M's shape with random weights, one prompt, greedy, float32, on one CPU device. Both sides have the same
weights, the same cache (its dims, its length, donated), one jitted program per token, and give the same tokens, which
is checked. The plain side is what one would write for this model alone: no Flax, no names, no constraints, and weights
of two dims. Rounds alternate in one process, so that whatever else the machine does falls on both; the ratio is that
of the medians. `--unrolled` compiles every layer by itself on both sides, in place of a scan.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sharddsl.layout import Layout, MeshSizes, Placement
from sharddsl.llama.forward import init_params
from sharddsl.llama.generate import Generator
from sharddsl.models import LlamaConfig, Run, inventory, preset
from sharddsl.partition import Partition, virtual_devices

PROMPT = [1, 5, 9, 200, 31, 7, 12, 90, 4, 3, 77, 15, 8, 6, 2, 11]
"""As long as the shortest length that prompts are padded to."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2_135m")
    parser.add_argument("--tokens", type=int, default=48, help="new tokens per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--unrolled", action="store_true")
    given = parser.parse_args()

    virtual_devices(1)
    config, run = preset(given.model), Run(precision="f32", scan=not given.unrolled)
    first, after = (one_device(config, run.model_copy(update={"mode": mode})) for mode in ("prefill", "decode"))
    params = init_params(config, run, first)
    ours = partial(Generator(config, run, params, prefill=first, decode=after).stream, [PROMPT], given.tokens)
    plain = Plain(config, run.scan, params, slots=slots_for(given.tokens))

    expected = [step[0] for step in ours()]  # this compiles, too
    assert list(plain.stream(given.tokens)) == expected, "the two models differ"
    times: dict[str, list[float]] = {"sharddsl": [], "plain JAX": []}
    for _ in range(given.rounds):
        times["sharddsl"] += gaps(ours())
        times["plain JAX"] += gaps(plain.stream(given.tokens))
    speed = {side: 1 / median(seconds) for side, seconds in times.items()}
    layers = "unrolled" if given.unrolled else "scanned"
    print(f"{given.model}, {layers}, jax {jax.__version__}, {given.rounds} × {given.tokens} tokens, batch 1, float32")
    for side, rate in speed.items():
        print(f"  {side:<10} {rate:6.1f} tokens/s")
    print(f"  ratio      {speed['sharddsl'] / speed['plain JAX']:6.2f}  (1 or more: no slower)")


def gaps(stream: Iterator[Any]) -> list[float]:
    """Seconds between tokens; the prefill and the first step after it are left out."""
    at = [time.perf_counter() for _ in stream]
    return [after - before for before, after in pairwise(at)][1:]


def one_device(config: LlamaConfig, run: Run) -> Partition:
    """Everything whole, on a mesh of one."""
    tensors = inventory(config, run)
    placements = tuple(Placement(tensor, ((),) * len(tensor.dims), "rule") for tensor in tensors)
    return Partition.of(Layout(MeshSizes({"dp": 1}), tensors, placements))


def slots_for(tokens: int) -> int:
    """The length of the cache that the other side takes for this prompt: the next power of two."""
    return int(2 ** np.ceil(np.log2(len(PROMPT) + tokens)))


# ----------------------------------------------------------------------------------------------------------- plain JAX

Weights = dict[str, Any]


class Plain:
    """The same model, for one prompt."""

    def __init__(self, config: LlamaConfig, scan: bool, params: Weights, slots: int) -> None:
        self.config, self.scan, self.slots = config, scan, slots
        layers = params["layers"]
        self.weights = {
            "embed": params["embed"]["w"],
            "norm": params["norm"]["scale"],
            "layers": self.flat(layers) if scan else [self.flat(layers[n]) for n in range(config.layers)],
        }
        self.step = jax.jit(self.one_token, donate_argnums=1)

    def flat(self, layer: Weights) -> Weights:
        """Weights of two dims (three where stacked)."""
        attn, mlp, embed = layer["attn"], layer["mlp"], self.config.embed
        lead = (self.config.layers,) if self.scan else ()
        heads_in = {name: attn[name].reshape(*lead, embed, -1) for name in ("wq", "wk", "wv")}
        norms = {"attn_norm": layer["attn_norm"]["scale"], "mlp_norm": layer["mlp_norm"]["scale"]}
        return {**heads_in, "wo": attn["wo"].reshape(*lead, -1, embed), **mlp, **norms}

    def stream(self, tokens: int) -> Iterator[int]:
        config = self.config
        shape = (1, self.slots, config.kv_heads, config.head_dim)
        whole = (config.layers, *shape)
        cache = (
            (jnp.zeros(whole), jnp.zeros(whole))
            if self.scan
            else [(jnp.zeros(shape), jnp.zeros(shape)) for _ in range(config.layers)]
        )
        token: Array = jnp.int32(0)
        for slot, given in enumerate(PROMPT):
            token, cache = self.step(self.weights, cache, jnp.int32(given), jnp.int32(slot))
        for slot in range(len(PROMPT), len(PROMPT) + tokens):
            current = token
            token, cache = self.step(self.weights, cache, current, jnp.int32(slot))
            yield int(current)

    def one_token(self, weights: Weights, cache: Any, token: Array, slot: Array) -> tuple[Array, Any]:
        config = self.config
        half = config.head_dim // 2
        angles = slot * config.rope_theta ** (-jnp.arange(half) / half)
        turn = (jnp.cos(angles), jnp.sin(angles))
        x = weights["embed"][token]
        if self.scan:

            def body(carry: Any, layer: Any) -> Any:
                x, keys, values = carry
                weights, number = layer
                q, k, v = self.heads(weights, x, turn)
                keys = jax.lax.dynamic_update_slice(keys, k[None, None, None], (number, 0, slot, 0, 0))
                values = jax.lax.dynamic_update_slice(values, v[None, None, None], (number, 0, slot, 0, 0))
                return (self.layer(weights, x, q, (keys[number, 0], values[number, 0]), slot), keys, values), None

            (x, *cache), _ = jax.lax.scan(body, (x, *cache), (weights["layers"], jnp.arange(config.layers)))
            cache = tuple(cache)
        else:
            written = []
            for layer, before in zip(weights["layers"], cache, strict=True):
                q, k, v = self.heads(layer, x, turn)
                keys = jax.lax.dynamic_update_slice(before[0], k[None, None], (0, slot, 0, 0))
                values = jax.lax.dynamic_update_slice(before[1], v[None, None], (0, slot, 0, 0))
                x = self.layer(layer, x, q, (keys[0], values[0]), slot)
                written.append((keys, values))
            cache = written
        return jnp.argmax(weights["embed"] @ self.norm(x, weights["norm"])).astype(jnp.int32), cache

    def heads(self, layer: Weights, x: Array, turn: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        normed = self.norm(x, layer["attn_norm"])
        q, k, v = ((normed @ layer[name]).reshape(-1, self.config.head_dim) for name in ("wq", "wk", "wv"))
        return rotate(q, turn), rotate(k, turn), v

    def layer(self, layer: Weights, x: Array, q: Array, kv: tuple[Array, Array], slot: Array) -> Array:
        config, (keys, values) = self.config, kv
        shared = q.reshape(config.kv_heads, -1, config.head_dim)
        scores = jnp.einsum("kgd,skd->kgs", shared, keys) / np.sqrt(config.head_dim)
        chances = jax.nn.softmax(jnp.where(jnp.arange(self.slots) <= slot, scores, -jnp.inf))
        x = x + jnp.einsum("kgs,skd->kgd", chances, values).reshape(-1) @ layer["wo"]
        normed = self.norm(x, layer["mlp_norm"])
        out: Array = (jax.nn.silu(normed @ layer["w_gate"]) * (normed @ layer["w_in"])) @ layer["w_out"]
        return x + out

    def norm(self, x: Array, scale: Array) -> Array:
        return x * jax.lax.rsqrt(jnp.mean(x * x) + self.config.norm_eps) * scale


def rotate(x: Array, turn: tuple[Array, Array]) -> Array:
    real, imaginary = jnp.split(x, 2, axis=-1)
    cos, sin = turn
    return jnp.concatenate([real * cos - imaginary * sin, imaginary * cos + real * sin], axis=-1)


if __name__ == "__main__":
    main()
