"""AdamW and Adafactor from optax's parts, over a state whose leaves have a layout's names.

The state is a dict of trees like the params': AdamW's moments `mu` and `nu` (or what `adafactor` keeps), `master`, the
float32 weights where the params are bfloat16, and `count`, the number of steps taken. So `opt.mu.layers.mlp.w_in` of a
spec is the leaf `state["mu"]["layers"]["mlp"]["w_in"]`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from sharddsl.llama.forward import Params
from sharddsl.partition.paths import named_leaves
from sharddsl.tensors.model import LAYERS
from sharddsl.train import adafactor
from sharddsl.train.config import Training

OptState = dict[str, Any]


class Updated(NamedTuple):
    """After one step. `weights` are float32: the new master copy, or the new params themselves. `grad_norm` is the
    gradients' global norm before clipping, `lr` the learning rate that was used."""

    weights: Params
    state: OptState
    grad_norm: Array
    lr: Array


def init(run: Training, params: Params) -> OptState:
    """The state before the first step. Under jit give it output shardings: nothing here depends on the params' data."""
    weights = _float32(params)
    state: OptState
    if run.optimizer == "adafactor":
        state = {**adafactor.init(weights), "count": jnp.zeros([], jnp.int32)}
    else:
        adam = _adam(run).init(weights)
        state = {"mu": adam.mu, "nu": adam.nu, "count": adam.count}
    return state | ({"master": weights} if run.precision == "bf16_master" else {})


def update(run: Training, grads: Params, state: OptState, params: Params) -> Updated:
    """One step: clip, moments, decoupled weight decay, learning rate. `grads` are of any float dtype."""
    grads, weights = _float32(grads), state.get("master", params)
    norm = optax.tree.norm(grads)
    if run.clip:  # by the norm that is there: optax's own would compute it again, with an all-reduce per param
        scale = jnp.minimum(1.0, run.clip / norm)
        grads = jax.tree.map(lambda grad: grad * scale, grads)
    steps, after = _moments(run, grads, state, weights)
    decay = optax.add_decayed_weights(run.weight_decay, mask=decayed)
    steps, _ = decay.update(steps, decay.init(weights), weights)
    lr = learning_rate(run, after["count"])
    weights = jax.tree.map(lambda weight, step: weight - lr * step, weights, steps)
    if "master" in state:
        after["master"] = weights
    return Updated(weights, after, norm, lr)


def _moments(run: Training, grads: Params, state: OptState, weights: Params) -> tuple[Params, OptState]:
    """The steps, of the size that the learning rate is then multiplied by, and the state without a master copy."""
    if run.optimizer == "adafactor":
        trees = {leaf: state[leaf] for leaf in adafactor.LEAVES}
        steps, after = adafactor.update(grads, trees, state["count"], weights)
        return steps, {**after, "count": state["count"] + 1}
    steps, adam = _adam(run).update(grads, optax.ScaleByAdamState(state["count"], state["mu"], state["nu"]))
    return steps, {"mu": adam.mu, "nu": adam.nu, "count": adam.count}


def learning_rate(run: Training, step: Array | int) -> Array:
    """Of the `step`-th step, from 1 to `run.steps`, float32: the first is on the way up, the last at the end."""
    after = max(1, run.steps - run.warmup_steps)
    match run.schedule:
        case "cosine":
            fall = optax.cosine_decay_schedule(run.lr, after, run.lr_end)
        case "linear":
            fall = optax.linear_schedule(run.lr, run.lr * run.lr_end, after)
        case "constant":
            fall = optax.constant_schedule(run.lr)
    if run.warmup_steps:
        fall = optax.join_schedules([optax.linear_schedule(0.0, run.lr, run.warmup_steps), fall], [run.warmup_steps])
    return jnp.asarray(fall(step), jnp.float32)


def decayed(params: Params) -> Any:
    """A tree of whether each param decays: those with two dims and more in one layer, not the scales of norms."""
    leaves, structure = named_leaves(params)
    return jax.tree_util.tree_unflatten(
        structure,
        [leaf.ndim - (path.segments[0] == LAYERS and path.layer is None) >= 2 for path, leaf in leaves],
    )


def _adam(run: Training) -> optax.GradientTransformation:
    return optax.scale_by_adam(run.b1, run.b2, run.eps)


def _float32(tree: Params) -> Params:
    wide: Params = jax.tree.map(lambda x: x.astype(jnp.float32), tree)
    return wide
