"""The train step: what it keeps, what it moves, and that microbatches and precisions mean what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from sharddsl.findings import UsageError
from sharddsl.train.data.batch import IGNORE, Batch
from sharddsl.train.program import Program
from tests.llama.small import UNTIED, random_params
from tests.train.small import TINY, program, some_batch, train


@pytest.mark.slow
def test_loss_falls_on_a_batch_that_is_seen_again() -> None:
    of = program("llama/fsdp_tp", {"dp": 1, "fsdp": 4, "mp": 2}, steps=8, lr=1e-2)
    state, step = of.init(), of.compile()
    batch = of.place(some_batch())
    losses = []
    for _ in range(8):
        state, metrics = step(state, batch)
        losses.append(float(metrics.loss))
    assert losses[0] == pytest.approx(np.log(TINY.vocab), rel=0.02)  # weights near 0 know nothing
    assert losses[-1] < losses[0] - 1
    assert int(metrics.tokens) == 8 * (7 + 5)


@pytest.mark.slow
def test_the_state_is_donated_and_keeps_its_shardings() -> None:
    of = program("llama/zero1", {"dp": 8})
    state, step = of.init(), of.compile()
    at = jax.tree.map(lambda x: x.sharding, state)
    after, _ = step(state, of.place(some_batch()))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))
    assert jax.tree.map(lambda x: x.sharding, after) == at
    mu = after["opt"]["mu"]["layers"]["mlp"]["w_in"]  # split by the spec's `opt: {embed: dp}`
    assert mu.sharding.spec == P(None, "dp", None)
    assert mu.addressable_shards[0].data.shape == (4, 16, 512)
    assert after["params"]["layers"]["mlp"]["w_in"].is_fully_replicated


BYTES_PER_PARAM = {"f32": (4, 8), "bf16_compute": (4, 8), "bf16_master": (2, 12)}


@pytest.mark.parametrize("precision", list(BYTES_PER_PARAM))
def test_bytes_of_the_state_and_of_the_gradients(precision: Any) -> None:
    """Of bf16_master: 2 for the param, 12 for its float32 copy and moments, and 2 for the gradient."""
    of = program("llama/fsdp", {"fsdp": 8}, precision=precision)
    state = of.abstract_state()
    count = 1_115_264  # weights of llama_tiny
    param, opt = BYTES_PER_PARAM[precision]
    assert nbytes(state["params"]) == param * count
    assert nbytes(state["opt"]) == opt * count + 4  # and the step counter
    _, grads = jax.eval_shape(of.loss_and_grads, state["params"], of.abstract_batch())
    assert nbytes(grads) == param * count
    assert sum(t.nbytes or 0 for t in of.partition.layout.inventory.of("grad")) == param * count


def test_a_state_is_made_without_a_batch() -> None:
    """Elsewhere a model runs on one token to get its params, and fails where that token cannot be split. Here a batch
    that cannot be split keeps the step from being traced, and not the state from being made."""
    of = program("llama/fsdp", {"fsdp": 8}, batch=1, seq=1)
    state = of.abstract_state()
    for head in (state["params"]["lm_head"]["w"], state["opt"]["mu"]["lm_head"]["w"]):
        assert head.sharding.shard_shape(head.shape) == (16, 512)
    with pytest.raises(UsageError, match="1 rows of the batch cannot be shared out evenly over fsdp=8"):
        of.lower()


def test_gradients_of_microbatches_are_added_up_in_float32() -> None:
    of = program("llama/fsdp", {"fsdp": 4}, precision="bf16_master", accum=2)
    _, grads = jax.eval_shape(of.loss_and_grads, of.abstract_state()["params"], of.abstract_batch())
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(grads)} == {"float32"}
    assert {t.dtype for t in of.partition.layout.inventory.of("grad")} == {"float32"}


@pytest.mark.slow
@pytest.mark.parametrize("accum", [2, 4])
def test_microbatches_give_the_whole_batchs_gradients(accum: int) -> None:
    """Also where they have not the same number of targets: the mean is over those of the whole batch."""
    batch = some_batch(vocab=UNTIED.vocab)
    uneven = Batch(
        batch.tokens, np.where(np.arange(8)[:, None] < 3, batch.targets, -1).astype(np.int32), batch.segments
    )
    whole, parts = (program("llama/dp", {"dp": 2}, UNTIED, accum=n) for n in (1, accum))
    params = jax.device_put(random_params(UNTIED), whole.partition.replicated)
    loss, grads = jax.jit(whole.loss_and_grads)(params, whole.place(uneven))
    loss_of_parts, grads_of_parts = jax.jit(parts.loss_and_grads)(params, parts.place(uneven))
    assert float(loss_of_parts) == pytest.approx(float(loss), rel=1e-6)

    def compare(found: Any, wanted: Any) -> None:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())

    jax.tree.map(compare, grads_of_parts, grads)


def test_documents_of_a_row_do_not_see_each_other() -> None:
    of = program("llama/dp", {"dp": 1}, UNTIED)
    batch = some_batch(vocab=UNTIED.vocab)
    targets = np.where(batch.segments == 2, batch.targets, IGNORE).astype(np.int32)
    other = (batch.tokens + (batch.segments == 1)) % UNTIED.vocab  # another first document in each row
    joined = np.ones_like(batch.segments)
    params = random_params(UNTIED)

    @jax.jit
    def loss(tokens: Any, segments: Any) -> Any:
        return of.loss_and_grads(params, Batch(tokens, targets, segments))[0]

    assert float(loss(batch.tokens, batch.segments)) == float(loss(other, batch.segments))
    assert float(loss(batch.tokens, joined)) != float(loss(other, joined))


@pytest.mark.slow
def test_remat_changes_no_loss() -> None:
    kept, full, dots = (
        [float(m.loss) for m in train(program("llama/fsdp", {"fsdp": 2}, UNTIED, remat=way), 2)[1]]
        for way in ("none", "full", "dots")
    )
    assert full == pytest.approx(kept, rel=1e-6)
    assert dots == pytest.approx(kept, rel=1e-6)


@pytest.mark.slow
def test_factored_state_is_born_split_by_the_names_of_its_dims() -> None:
    """llama_tiny: the table is (vocab 512, embed 128). Its row factor has embed, its column factor vocab; the rule is
    `opt.embed.w: {vocab: mp, embed: fsdp}`."""
    fields: dict[str, Any] = {"optimizer": "adafactor", "lr": 1e-2}
    of = program("llama/fsdp_tp", {"dp": 1, "fsdp": 4, "mp": 2}, **fields)
    state, found = train(of, 3)
    opt = state["opt"]
    assert opt["v_row"]["embed"]["w"].sharding.spec == P("fsdp")
    assert opt["v_col"]["embed"]["w"].sharding.spec == P("mp")
    assert opt["v_row"]["layers"]["mlp"]["w_in"].sharding.spec == P(None, "fsdp")
    assert opt["v_col"]["layers"]["mlp"]["w_in"].sharding.spec == P(None, "mp")
    assert opt["v"]["layers"]["attn"]["wq"].sharding.spec == P(None, "fsdp", "mp", None)
    _, alone = train(program("llama/dp", {"dp": 1}, **fields), 3)
    assert [float(m.loss) for m in found] == pytest.approx([float(m.loss) for m in alone], rel=2e-5)


# ------------------------------------------------------------------------------------------- the partitioned program


@pytest.mark.slow
def test_zero2_scatters_gradients_where_they_form_and_zero1_does_not(tmp_path: Path) -> None:
    """XLA's CPU partitioner writes a reduce-scatter as an all-reduce of which each device takes its slice. Under ZeRO-2
    that is what becomes of every gradient of a layer, within the loop over the layers; under ZeRO-1 each is reduced
    whole, and leaves the loop so."""
    scattered = slices_of_reduced_gradients(partitioned(program("llama/zero2", {"dp": 8}), tmp_path / "two"))
    whole = slices_of_reduced_gradients(partitioned(program("llama/zero1", {"dp": 8}), tmp_path / "one"))
    weights = {"attn.wq", "attn.wk", "attn.wv", "attn.wo", "mlp.w_gate", "mlp.w_in", "mlp.w_out"}
    assert scattered.keys() == whole.keys() == weights
    assert all(only_sliced for only_sliced in scattered.values()), scattered
    assert not any(only_sliced for only_sliced in whole.values()), whole


def test_rows_stay_where_they_are_in_microbatches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 0, 2, 4, … are one microbatch and 1, 3, 5, … the other. Cut into halves they would move: that was what
    somebody ran, and wondered about its all-to-alls."""
    text = partitioned(program("llama/dp", {"dp": 4}, accum=2), tmp_path / "shipped")
    assert "all-reduce(" in text
    assert not re.search(MOVES, text)

    monkeypatch.setattr(Program, "_microbatches", lambda self, rows: rows.reshape(2, -1, *rows.shape[1:]))
    assert re.search(MOVES, partitioned(program("llama/dp", {"dp": 4}, accum=2), tmp_path / "halves"))


MOVES = r"= s32\S* (all-gather|all-to-all|collective-permute)\("
"""Tokens on their way from one device to another."""


def test_the_master_copy_is_rounded_before_it_is_gathered(tmp_path: Path) -> None:
    text = partitioned(program("llama/zero1", {"dp": 4}, precision="bf16_master"), tmp_path)
    assert set(re.findall(r"= (\w+)\[\S* all-gather\(", text)) == {"bf16"}


def partitioned(of: Program, folder: Path) -> str:
    """The program after XLA's partitioner, before anything is combined or widened."""
    of.lower().compile(compiler_options={"xla_dump_to": str(folder), "xla_dump_hlo_pass_re": "spmd-partitioning"})
    (dump,) = folder.glob("*jit_step*after_spmd-partitioning*.txt")
    return dump.read_text()


REDUCED = re.compile(
    r"%?(?P<name>all-reduce\S*) = .* all-reduce\(.*op_name=\"[^\"]*transpose\([^\"]*/(?P<weight>(?:attn|mlp)\.w\w+)/"
)


def slices_of_reduced_gradients(text: str) -> dict[str, bool]:
    """For each weight of a layer: whether its gradient's all-reduce is used by dynamic-slices alone."""
    found = {}
    for reduced in REDUCED.finditer(text):
        users = re.findall(rf"= \S+ ([\w-]+)\([^\n]*%?{re.escape(reduced['name'])}[,)]", text)
        assert users
        found[reduced["weight"]] = set(users) == {"dynamic-slice"}
    return found


def nbytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
