"""What a run of training needs before its first step: sizes, a place, weights, data, a first state."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import TYPE_CHECKING

from sharddsl.cli.placement import Layouts, described, refuse_too_large
from sharddsl.cli.progress import Progress
from sharddsl.cli.sources import has_demo_weights, open_source, tokenizer_of
from sharddsl.config.schema import Config
from sharddsl.config.weights import path_of
from sharddsl.findings import UsageError
from sharddsl.train.config import Training
from sharddsl.train.data.files import find

if TYPE_CHECKING:
    from sharddsl.llama.weights import WeightSource
    from sharddsl.partition import Partition
    from sharddsl.train.data.batch import Batch
    from sharddsl.train.program import Program, State

_ROWS = 8
"""Sequences of a step where the run does not say: the fewest that the mesh can share out, but no fewer than these."""
_TOKENS = 128
"""Tokens of a sequence where the run does not say."""


def check(config: Config) -> None:
    """Raise `UsageError` for what is no run of training, whatever its layout. No jax, nothing is read or fetched."""
    run, model = config.run, config.model
    if run.mode != "train":
        raise UsageError(f"run.mode={run.mode}: it is training that is run here; leave run= and run.mode= out")
    if not config.weights:
        raise UsageError("weights= is empty: give auto, random, or the path of a file or folder")
    if run.seq is not None and run.seq > model.max_seq:
        raise UsageError(
            f"run.seq={run.seq} is longer than the {model.max_seq} tokens that {model.name} is made for: give run.seq "
            f"up to {model.max_seq}, or change the model with model.max_seq={run.seq}"
        )
    find(config.data)
    path_of(config.weights)


def rows_of(config: Config, partition: Partition) -> int:
    """The smallest number of which the run's batch must be a multiple."""
    return partition.multiple_of("batch", "batch", "act") * config.run.accum


def sized(config: Config, *multiples: int) -> Config:
    """The configuration with a batch and a sequence length, those that its run names or the usual ones. The batch is
    then a multiple of all of these."""
    run, multiple = config.run, lcm(*multiples)
    batch = run.batch or -(-_ROWS // multiple) * multiple
    seq = run.seq or min(config.model.max_seq, _TOKENS)
    return config.model_copy(update={"run": run.model_copy(update={"batch": batch, "seq": seq})})


def placed(layouts: Layouts, run: Training, shown: Progress) -> Partition:
    """Where the run's tensors lie, told. Raises `ShardError` for a layout that does not fit the run, `UsageError` for
    tensors that virtual devices cannot hold."""
    partitions = layouts.partitions(layouts.devices(), run)
    partition = partitions["train"]
    refuse_too_large(partition, "params, gradients and optimizer state", "param", "grad", "opt")
    for line in described(layouts, partitions):
        shown.say(line)
    return partition


def opened(config: Config, shown: Progress) -> tuple[WeightSource | None, Iterator[Batch]]:
    """Where the weights come from (None: random ones) and the batches, of a run that has its sizes. `weights=auto` is
    those that the project knows for the model, or from scratch."""
    from sharddsl.train.data.stream import batches

    run, model = config.run, config.model
    assert run.batch is not None
    assert run.seq is not None
    scratch = config.weights == "auto" and not has_demo_weights(model)
    source = open_source("random" if scratch else config.weights, shown)
    if scratch:
        shown.say(f"  from scratch: weights=auto knows none for {model.name}; others: weights=PATH")
    tokenizer = tokenizer_of(model, source)
    shown.say(f"batch {run.batch} of {run.seq} tokens" + (f", in {run.accum} microbatches" if run.accum > 1 else ""))
    with shown.step("reading the data"):
        feed = batches(config.data, tokenizer, batch=run.batch, seq=run.seq, seed=run.seed, vocab=model.vocab)
    return source, feed


def first_state(program: Program, source: WeightSource | None, shown: Progress) -> State:
    """What the first step begins with: the source's weights, or random ones."""
    run, partition = program.run, program.partition
    if source is None:
        with shown.step(f"making random weights from run.seed={run.seed}"):
            return program.init()
    from sharddsl.llama.weights import load_params

    params = load_params(
        source, program.config, partition.shardings, dtype=run.param_dtype, scan=run.scan, progress=shown.amount
    )
    return program.state_of(params)
