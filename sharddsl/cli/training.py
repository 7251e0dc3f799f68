"""One job of `sharddsl train`, from its configuration to the last step.

Everything that can be refused without jax, devices or a download is refused before them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sharddsl.cli.interrupts import Interrupts, interrupts
from sharddsl.cli.placement import Layouts, described, refuse_too_large
from sharddsl.cli.progress import Progress, progress
from sharddsl.cli.sources import has_demo_weights, open_source, tokenizer_of
from sharddsl.cli.steps import steps_for
from sharddsl.cli.train import Wanted
from sharddsl.config.schema import Config
from sharddsl.config.weights import path_of
from sharddsl.findings import UsageError
from sharddsl.layout.words import bytes_text
from sharddsl.train.config import Training
from sharddsl.train.data.files import find
from sharddsl.train.records import check, check_folder

if TYPE_CHECKING:
    from sharddsl.llama.weights import WeightSource
    from sharddsl.partition import Partition
    from sharddsl.train.loop import Record
    from sharddsl.train.metrics import Gauge
    from sharddsl.train.program import Program, State
    from sharddsl.train.records import Sink

_ROWS = 8
"""Sequences of a step where the run does not say: the fewest that the mesh can share out, but no fewer than these."""
_TOKENS = 128
"""Tokens of a sequence where the run does not say."""
_PROFILED = (2, 4)
"""The first and the last step of a trace: the first step of a run waits for what is loaded once."""


def train(config: Config, wanted: Wanted) -> int:
    """Train and print; the exit code. Raises `ShardError` or `UsageError` for what cannot be done."""
    with interrupts() as noted:
        return _train(config, wanted, noted)


def _train(config: Config, wanted: Wanted, noted: Interrupts) -> int:
    _check(config, wanted)
    shown = progress(wanted.quiet)
    layouts = Layouts(config, wanted.rules, ("train",), wanted.devices)
    layouts.check()
    with shown.step("starting jax"):
        devices = layouts.devices()
        run = sized(config, layouts.partitions(devices)["train"])
        partitions = layouts.partitions(devices, run)
        partition = partitions["train"]
        refuse_too_large(partition, "params, gradients and optimizer state", "param", "grad", "opt")
    for line in described(layouts, partitions):
        shown.say(line)
    weights = _weights(config)
    source = open_source(weights, shown)
    if weights != config.weights:
        shown.say(f"  from scratch: weights=auto knows none for {config.model.name}; others: weights=PATH")
    tokenizer = tokenizer_of(config.model, source)
    assert run.batch is not None
    assert run.seq is not None
    shown.say(f"batch {run.batch} of {run.seq} tokens" + (f", in {run.accum} microbatches" if run.accum > 1 else ""))

    from sharddsl.train.data.stream import batches
    from sharddsl.train.records import sinks

    with shown.step("reading the data"):
        feed = batches(config.data, tokenizer, batch=run.batch, seq=run.seq, seed=run.seed, vocab=config.model.vocab)
    with sinks(wanted.csv, wanted.tensorboard) as kept:
        from sharddsl.train.loop import Loop
        from sharddsl.train.metrics import Gauge, state_bytes
        from sharddsl.train.program import Program

        program = Program(config.model, run, partition, wanted.layer_stats)
        state = _state(program, source, shown)
        shown.say(f"params and optimizer state: {bytes_text(state_bytes(state))} per device")
        with shown.step("compiling the step"):
            step = program.compile()
        gauge = Gauge(config.model, run, list(partition.mesh.devices.flat))
        loop = Loop(program, step, state)
        with _profiler(wanted.profile) as profiler:
            noted.check()
            with noted.held():
                return _run(loop.run(feed, run.steps), gauge, wanted, shown, [*kept, profiler], noted=noted)


def sized(config: Config, partition: Partition) -> Training:
    """The run with a batch and a sequence length, those that it names or the usual ones."""
    run = config.run
    multiple = partition.multiple_of("batch", "batch", "act") * run.accum
    batch = run.batch or -(-_ROWS // multiple) * multiple
    seq = run.seq or min(config.model.max_seq, _TOKENS)
    return run.model_copy(update={"batch": batch, "seq": seq})


def _check(config: Config, wanted: Wanted) -> None:
    run, model = config.run, config.model
    if run.mode != "train":
        raise UsageError(f"run.mode={run.mode}: train trains; leave run= and run.mode= out")
    if not config.weights:
        raise UsageError("weights= is empty: give auto, random, or the path of a file or folder")
    if run.seq is not None and run.seq > model.max_seq:
        raise UsageError(
            f"run.seq={run.seq} is longer than the {model.max_seq} tokens that {model.name} is made for: give run.seq "
            f"up to {model.max_seq}, or change the model with model.max_seq={run.seq}"
        )
    if wanted.profile is not None and run.steps < _PROFILED[0]:
        raise UsageError(f"--profile traces steps {_PROFILED[0]} to {_PROFILED[1]}: give run.steps=2 or more")
    find(config.data)
    path_of(config.weights)
    check(wanted.csv, wanted.tensorboard)
    if wanted.profile is not None:
        check_folder("--profile", Path(wanted.profile).expanduser())


def _weights(config: Config) -> str:
    """`auto` is the weights that the project knows for the model, or from scratch."""
    return "random" if config.weights == "auto" and not has_demo_weights(config.model) else config.weights


def _state(program: Program, source: WeightSource | None, shown: Progress) -> State:
    """What the first step begins with."""
    run, partition = program.run, program.partition
    if source is None:
        with shown.step(f"making random weights from run.seed={run.seed}"):
            return program.init()
    from sharddsl.llama.weights import load_params

    params = load_params(
        source, program.config, partition.shardings, dtype=run.param_dtype, scan=run.scan, progress=shown.amount
    )
    return program.state_of(params)


def _run(
    records: Iterator[Record],
    gauge: Gauge,
    wanted: Wanted,
    shown: Progress,
    kept: Sequence[Sink],
    *,
    noted: Interrupts,
) -> int:
    """Every step; the exit code. What was measured is told however it ends."""
    done: list[Record] = []
    steps = steps_for(sys.stdout, gauge.run.steps, wanted.log_every)
    try:
        for record in records:
            done.append(record)
            figures = gauge.figures(record)
            steps.show(figures)
            for keep in kept:
                keep(figures)
            noted.check()
    except KeyboardInterrupt:
        return 130
    finally:
        steps.close()
        _summary(done, gauge, shown)
    return 0


def _summary(done: Sequence[Record], gauge: Gauge, shown: Progress) -> None:
    from sharddsl.train.metrics import peak_memory, typical

    if not done:
        shown.say("no step was finished")
        return
    seconds = typical(done)
    losses = f"loss {done[0].loss:.4f}" + (f" → {done[-1].loss:.4f}" if len(done) > 1 else "")
    speed = f"{gauge.tokens_per_step / seconds:,.0f} tokens/s, {seconds:.3f} s a step (median)"
    peak = peak_memory(gauge.devices)
    memory = "" if peak is None else f", at most {bytes_text(peak)} in use on a device"
    shown.say(f"{len(done)} of {gauge.run.steps} steps: {losses}, {speed}{memory}")


@contextmanager
def _profiler(folder: str | None) -> Iterator[Sink]:
    """Is told of every step that is done, and traces those of `_PROFILED` into the folder."""
    if folder is None:
        yield lambda figures: None
        return
    import jax

    target = Path(folder).expanduser()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--profile {target}: it cannot be written ({error.strerror})") from None
    first, last = _PROFILED
    tracing = False

    def done(figures: Mapping[str, float]) -> None:
        nonlocal tracing
        if figures["step"] == first - 1:
            jax.profiler.start_trace(str(target))
            tracing = True
        elif figures["step"] == last and tracing:
            jax.profiler.stop_trace()
            tracing = False

    try:
        yield done
    finally:
        if tracing:
            jax.profiler.stop_trace()
