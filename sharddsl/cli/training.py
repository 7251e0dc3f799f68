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
from sharddsl.cli.prepare import check, first_state, rows_of, sized, weights_of
from sharddsl.cli.progress import Progress, progress
from sharddsl.cli.sources import open_source, tokenizer_of
from sharddsl.cli.steps import steps_for
from sharddsl.cli.train import Wanted
from sharddsl.config.schema import Config
from sharddsl.findings import UsageError
from sharddsl.layout.words import bytes_text
from sharddsl.train.records import check as check_sinks
from sharddsl.train.records import check_folder

if TYPE_CHECKING:
    from sharddsl.train.loop import Record
    from sharddsl.train.metrics import Gauge
    from sharddsl.train.records import Sink

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
        run = sized(config, rows_of(config, layouts.partitions(devices)["train"]))
        partitions = layouts.partitions(devices, run)
        partition = partitions["train"]
        refuse_too_large(partition, "params, gradients and optimizer state", "param", "grad", "opt")
    for line in described(layouts, partitions):
        shown.say(line)
    weights = weights_of(config)
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
        from sharddsl.train.metrics import Gauge, state_bytes, step_bytes
        from sharddsl.train.program import Program

        program = Program(config.model, run, partition, wanted.layer_stats)
        state = first_state(program, source, shown)
        shown.say(f"params and optimizer state: {bytes_text(state_bytes(state))} per device")
        with shown.step("compiling the step"):
            step = program.compile()
        gauge = Gauge(config.model, run, list(partition.mesh.devices.flat), step_bytes(step))
        loop = Loop(program, step, state)
        with _profiler(wanted.profile) as profiler:
            noted.check()
            with noted.held():
                return _run(loop.run(feed, run.steps), gauge, wanted, shown, [*kept, profiler], noted=noted)


def _check(config: Config, wanted: Wanted) -> None:
    check(config)
    if wanted.profile is not None and config.run.steps < _PROFILED[0]:
        raise UsageError(f"--profile traces steps {_PROFILED[0]} to {_PROFILED[1]}: give run.steps=2 or more")
    check_sinks(wanted.csv, wanted.tensorboard)
    if wanted.profile is not None:
        check_folder("--profile", Path(wanted.profile).expanduser())


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
    from sharddsl.train.metrics import typical

    if not done:
        shown.say("no step was finished")
        return
    seconds = typical(done)
    losses = f"loss {done[0].loss:.4f}" + (f" → {done[-1].loss:.4f}" if len(done) > 1 else "")
    speed = f"{gauge.tokens_per_step / seconds:,.0f} tokens/s, {seconds:.3f} s a step (median)"
    memory = f"{bytes_text(gauge.memory())} per device"
    shown.say(f"{len(done)} of {gauge.run.steps} steps: {losses}, {speed}, {memory}")


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
