"""One job of `sharddsl train`, from its configuration to the last step.

Everything that can be refused without jax, devices or a download is refused before them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sharddsl.cli.interrupts import CODE, Interrupts, interrupts
from sharddsl.cli.placement import Layouts
from sharddsl.cli.prepare import check, first_state, opened, placed, rows_of, sized
from sharddsl.cli.progress import Progress, progress
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
    done = _Done(progress(wanted.quiet))
    with interrupts(done.tell) as noted:
        return _train(config, wanted, done, noted)


@dataclass
class _Done:
    """The steps that are done, and what is said of them when no more come."""

    shown: Progress
    records: list[Record] = field(default_factory=list)
    gauge: Gauge | None = None

    def tell(self) -> None:
        from sharddsl.train.metrics import typical

        if not self.records or self.gauge is None:
            self.shown.say("no step was finished")
            return
        first, last, count = self.records[0], self.records[-1], len(self.records)
        seconds = typical(self.records)
        losses = f"loss {first.loss:.4f}" + (f" → {last.loss:.4f}" if count > 1 else "")
        speed = f"{self.gauge.tokens_per_step / seconds:,.0f} tokens/s, {seconds:.3f} s a step (median)"
        memory = f"{bytes_text(self.gauge.memory())} per device"
        self.shown.say(f"{count} of {self.gauge.run.steps} steps: {losses}, {speed}, {memory}")


def _train(config: Config, wanted: Wanted, done: _Done, noted: Interrupts) -> int:
    _check(config, wanted)
    shown = done.shown
    layouts = Layouts(config, wanted.rules, ("train",), wanted.devices)
    layouts.check()
    with shown.step("starting jax"):
        config = sized(config, rows_of(config, layouts.partitions(layouts.devices())["train"]))
    partition = placed(layouts, config.run, shown)
    source, feed = opened(config, shown)

    from sharddsl.train.records import sinks

    with sinks(wanted.csv, wanted.tensorboard) as kept:
        from sharddsl.train.loop import Loop
        from sharddsl.train.metrics import Gauge, state_bytes, step_bytes
        from sharddsl.train.program import Program

        program = Program(config.model, config.run, partition, wanted.layer_stats)
        state = first_state(program, source, shown)
        shown.say(f"params and optimizer state: {bytes_text(state_bytes(state))} per device")
        with shown.step("compiling the step"):
            step = program.compile()
        done.gauge = Gauge(config.model, config.run, list(partition.mesh.devices.flat), step_bytes(step))
        loop = Loop(program, step, state)
        with _profiler(wanted.profile) as profiler:
            noted.check()
            with noted.held():
                return _run(loop.run(feed, config.run.steps), done, wanted, [*kept, profiler], noted)


def _check(config: Config, wanted: Wanted) -> None:
    check(config)
    if wanted.profile is not None and config.run.steps < _PROFILED[0]:
        raise UsageError(f"--profile traces steps {_PROFILED[0]} to {_PROFILED[1]}: give run.steps=2 or more")
    check_sinks(wanted.csv, wanted.tensorboard)
    if wanted.profile is not None:
        check_folder("--profile", Path(wanted.profile).expanduser())


def _run(records: Iterator[Record], done: _Done, wanted: Wanted, kept: Sequence[Sink], noted: Interrupts) -> int:
    """Every step; the exit code. What was measured is told however it ends."""
    gauge = done.gauge
    assert gauge is not None
    steps = steps_for(sys.stdout, gauge.run.steps, wanted.log_every)
    try:
        for record in records:
            done.records.append(record)
            figures = gauge.figures(record)
            steps.show(figures)
            for keep in kept:
                keep(figures)
            noted.check()
    except KeyboardInterrupt:
        return CODE
    finally:
        steps.close()
        done.tell()
    return 0


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
