"""The train step as one compiled program: forward, backward, accumulation, clipping, update, all by one layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypedDict

import jax
import jax.numpy as jnp
from jax import Array

from sharddsl.llama.attention import choose_kernel
from sharddsl.llama.forward import Params, abstract_params, forward, init_params
from sharddsl.llama.sums import constrain_of
from sharddsl.models.config import LlamaConfig
from sharddsl.partition import Partition, born_sharded
from sharddsl.train import optimizer
from sharddsl.train.config import Training
from sharddsl.train.data.batch import Batch
from sharddsl.train.layers import layer_statistics
from sharddsl.train.loss import counted, token_losses
from sharddsl.train.optimizer import OptState


class State(TypedDict):
    """What lives from step to step. A layout's names are its paths: `params` without a prefix, `opt.…`."""

    params: Params
    opt: OptState


class Metrics(NamedTuple):
    """What a step says of itself: scalars, whole on every device, float32 except `tokens`.

    `loss` is the mean cross-entropy of the targets that count, in nats; `tokens` their number, int32; `grad_norm` the
    gradients' global norm before clipping; `lr` the learning rate used. `layers`, where asked for, is
    `layer_statistics`.
    """

    loss: Array
    tokens: Array
    grad_norm: Array
    lr: Array
    layers: dict[str, Any] | None


Step = Callable[[State, Batch], tuple[State, Metrics]]
"""A compiled step. The state that goes in is donated: it cannot be used again."""


@dataclass(frozen=True)
class Program:
    """A model's train step under a partition, whose layout is that of `inventory(config, run)` in the mode `train`."""

    config: LlamaConfig
    run: Training
    partition: Partition
    layer_stats: bool = False

    # ------------------------------------------------------------------------------------------------------ the state

    def init(self) -> State:
        """Random params, drawn from the run's seed, and the optimizer's first state; each device makes its own shards
        only."""
        return self.state_of(init_params(self.config, self.run, self.partition, self.run.seed))

    def state_of(self, params: Params) -> State:
        """The state of params that already lie where the layout has them, before the first step."""
        first = partial(optimizer.init, self.run)
        shardings = self.partition.shardings(jax.eval_shape(first, params), "opt")
        return {"params": params, "opt": born_sharded(first, shardings, params)}

    def abstract_state(self) -> State:
        """The state's shapes, dtypes and shardings; nothing is allocated."""
        params = abstract_params(self.config, self.run)
        opt = jax.eval_shape(partial(optimizer.init, self.run), params)
        at = jax.tree.map(_placed, params, self.partition.shardings(params))
        return {"params": at, "opt": jax.tree.map(_placed, opt, self.partition.shardings(opt, "opt"))}

    # ------------------------------------------------------------------------------------------------------ the batch

    def place(self, batch: Batch) -> Batch:
        """The batch on the mesh, by the layout of `batch.tokens`, `batch.targets` and `batch.segments`."""
        placed: Batch = jax.device_put(batch, self._batch_shardings())
        return placed

    def abstract_batch(self) -> Batch:
        """The batch's shapes, dtypes and shardings. The run's batch and seq must be known."""
        shape = jax.ShapeDtypeStruct((self.run.batch or 0, self.run.seq or 0), jnp.int32)
        return Batch(*(_placed(shape, sharding) for sharding in self._batch_shardings()))

    def _batch_shardings(self) -> Batch:
        return Batch(*(self.partition.sharding(f"batch.{name}") for name in Batch._fields))

    # ------------------------------------------------------------------------------------------------------- the step

    def lower(self) -> jax.stages.Lowered:
        """The step, traced and lowered over abstract values."""
        state = self.abstract_state()
        shardings = jax.tree.map(lambda x: x.sharding, state)
        step = jax.jit(self.step, donate_argnums=0, out_shardings=(shardings, self.partition.replicated))
        return step.lower(state, self.abstract_batch())

    def compile(self) -> jax.stages.Compiled:
        """The step, ready to run: a `Step`."""
        return self.lower().compile()

    def step(self, state: State, batch: Batch) -> tuple[State, Metrics]:
        """One step, to be traced: `lower` and `compile` are its usual way."""
        params = self.partition.fetch(state["params"])
        loss, grads = self.loss_and_grads(params, batch)
        updated = optimizer.update(self.run, grads, self.partition.fetch(state["opt"], "opt"), params)
        layers = layer_statistics(params, grads) if self.layer_stats else None
        metrics = Metrics(loss, counted(batch.targets), updated.grad_norm, updated.lr, layers)
        return {"params": self._as_params(updated), "opt": updated.state}, metrics

    def loss_and_grads(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The mean loss over the targets of the batch that count, and its gradients, split as `grad` says.

        Microbatches share the batch's count of targets, so that their gradients add up to the whole batch's.
        """
        targets = jnp.maximum(counted(batch.targets), 1)
        of = jax.value_and_grad(partial(self._loss, targets=targets))
        if self.run.accum == 1:
            loss, grads = of(params, batch)
            return loss, self._kept(grads)

        def add(sums: tuple[Array, Params], micro: Batch) -> tuple[tuple[Array, Params], None]:
            loss, grads = of(params, self._constrained(micro))
            whole, so_far = sums
            return (whole + loss, self._kept(jax.tree.map(jnp.add, so_far, self._wide(grads)))), None

        zeros = self._kept(jax.tree.map(jnp.zeros_like, self._wide(params)))
        (loss, grads), _ = jax.lax.scan(add, (jnp.float32(0), zeros), jax.tree.map(self._microbatches, batch))
        return loss, grads

    def _loss(self, params: Params, batch: Batch, targets: Array) -> Array:
        logits = forward(
            self.config,
            self.run,
            params,
            batch.tokens,
            constrain=constrain_of(self.partition),
            segments=batch.segments,
            kernel=choose_kernel(self.partition, self.config, self.run),
            gradients=self.partition.constrain,
        )
        with jax.named_scope("loss"):
            return jnp.sum(token_losses(logits, batch.targets)) / targets

    def _microbatches(self, rows: Array) -> Array:
        """(batch, seq) to (accum, micro, seq): each takes every accum-th row. The batch is cut as (micro, accum), so
        that a device's rows stay with it; cut as (accum, micro), they would move."""
        return rows.reshape(-1, self.run.accum, *rows.shape[1:]).swapaxes(0, 1)

    def _constrained(self, batch: Batch) -> Batch:
        return Batch(*(self.partition.constrain(x, f"batch.{name}") for name, x in batch._asdict().items()))

    def _wide(self, tree: Params) -> Params:
        """In the dtype that sums of gradients are kept in."""
        wide: Params = jax.tree.map(lambda x: x.astype(self.run.grad_dtype), tree)
        return wide

    def _kept(self, grads: Params) -> Params:
        return self.partition.constrain_tree(grads, "grad")

    def _as_params(self, updated: optimizer.Updated) -> Params:
        """The new weights in the params' dtype. Those of a master copy are rounded where that lies, before they are
        gathered: half the bytes."""
        if "master" not in updated.state:
            return updated.weights
        rounded = jax.tree.map(lambda x: x.astype(self.run.param_dtype), updated.weights)
        near: Params = self.partition.constrain_tree({"master": rounded}, "opt")["master"]
        return near


def _placed(x: Any, sharding: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)
