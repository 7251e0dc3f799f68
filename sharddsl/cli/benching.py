"""The runs of one `sharddsl bench`, from their configurations to the comparison.

They follow each other, so that one state at a time lies on the devices. What can be refused without jax, devices or a
download is refused before the first of them begins.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

from sharddsl.cli.bench import Wanted
from sharddsl.cli.comparison import Measured, to_json, to_text
from sharddsl.cli.failure import announce, report
from sharddsl.cli.interrupts import CODE, Interrupts, interrupts
from sharddsl.cli.page import page_width
from sharddsl.cli.placement import Layouts
from sharddsl.cli.prepare import check, first_state, opened, placed, rows_of, sized
from sharddsl.cli.progress import Progress, progress
from sharddsl.config.jobs import Job
from sharddsl.config.schema import Config


def bench(jobs: Sequence[Job], wanted: Wanted) -> int:
    """Measure each job and print the comparison; the largest exit code. A job that cannot be run is told of, and the
    others are compared."""
    if wanted.plot is not None:
        from sharddsl.cli import plot

        plot.check(wanted.plot)
    comparison = _Comparison(wanted, progress(wanted.quiet))
    with interrupts(comparison.tell) as noted:
        try:
            comparison.measure(jobs, noted)
        except KeyboardInterrupt:
            comparison.codes.append(CODE)
    comparison.tell()
    return max(comparison.codes)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A job with its name among the others, and where it runs."""

    label: str
    job: Job
    layouts: Layouts

    @property
    def config(self) -> Config:
        return self.job.config

    def with_batch(self, multiple: int) -> _Entry:
        """With a batch of such a multiple, if it names none, and a sequence length."""
        return replace(self, job=replace(self.job, config=sized(self.config, multiple)))


class _Comparison:
    """Jobs on their way to figures: `done` are those that have theirs, `codes` the exit codes so far."""

    def __init__(self, wanted: Wanted, shown: Progress) -> None:
        self.done: list[Measured] = []
        self.codes = [0]
        self.about: dict[str, Any] = {}
        self._wanted, self._shown = wanted, shown

    def measure(self, jobs: Sequence[Job], noted: Interrupts) -> None:
        """Every job that can be run."""
        entries = self._entries(jobs)
        if not entries:
            return
        with self._shown.step("starting jax"):
            import jax

            devices = max((entry.layouts for entry in entries), key=lambda layouts: layouts.least).devices()
        self.about = {"jax": jax.__version__, "device": devices[0].device_kind}
        for entry in self._of_one_batch(entries):
            with self._telling(entry.job):
                self.done.append(self._measured(entry, noted))
            gc.collect()  # a state that lies in a cycle would take the next one's place

    def tell(self) -> None:
        """The comparison of those that have their figures."""
        if not self.done:
            return
        if self._wanted.as_json:
            print(json.dumps(to_json(self.done, self.about), indent=2))
        else:
            print(to_text(self.done, page_width()))
        if self._wanted.plot is not None:
            from sharddsl.cli import plot

            models = dict.fromkeys(run.config.model.name for run in self.done)
            title = f"{', '.join(models)} on {self.about['device']}, jax {self.about['jax']}"
            plot.save(self.done, title, self._wanted.plot)

    def _entries(self, jobs: Sequence[Job]) -> list[_Entry]:
        """The jobs that fit. An axis that is inferred takes as many devices as the largest of the other meshes."""
        found: list[_Entry] = []
        for label, job in zip(labels(jobs), jobs, strict=True):
            with self._telling(job):
                check(job.config)
                found.append(self._fitted(_Entry(label, job, self._layouts(job))))
        fewest = max((entry.layouts.least for entry in found), default=1)
        fitting: list[_Entry] = []
        for entry in found:
            with self._telling(entry.job):
                fitting.append(self._fitted(replace(entry, layouts=self._layouts(entry.job, fewest))))
        return fitting

    def _fitted(self, entry: _Entry) -> _Entry:
        entry.layouts.check()
        return entry

    def _layouts(self, job: Job, fewest: int = 1) -> Layouts:
        return Layouts(job.config, self._wanted.rules, ("train",), self._wanted.devices, fewest=fewest)

    def _of_one_batch(self, entries: Sequence[_Entry]) -> list[_Entry]:
        """The entries with batches. Those that name none share one that all their meshes can share out: else they
        would not do the same work."""
        fitting, multiples = [], []
        for entry in entries:
            with self._telling(entry.job):
                partition = entry.layouts.partitions(entry.layouts.devices())["train"]
                multiples += [rows_of(entry.config, partition)] * (entry.config.run.batch is None)
                fitting.append(entry)
        return [entry.with_batch(lcm(*multiples)) for entry in fitting]

    def _measured(self, entry: _Entry, noted: Interrupts) -> Measured:
        from sharddsl.train.loop import Loop
        from sharddsl.train.metrics import Gauge, state_bytes, step_bytes
        from sharddsl.train.program import Program

        shown, config, run = self._shown, entry.config, entry.config.run
        shown.say(f"== {entry.label}")
        partition = placed(entry.layouts, run, shown)
        source, feed = opened(config, shown)
        program = Program(config.model, run, partition)
        began = time.perf_counter()
        with shown.step("tracing the step"):
            lowered = program.lower()
        traced = time.perf_counter()
        with shown.step("compiling the step"):
            step = lowered.compile()
        compiled = time.perf_counter()
        state = first_state(program, source, shown)
        held = state_bytes(state)
        gauge = Gauge(config.model, run, list(partition.mesh.devices.flat), step_bytes(step))
        loop = Loop(program, step, state)
        del state  # the first step takes it
        records = []
        with shown.step(f"{run.steps} steps"), noted.held():
            noted.check()
            for record in loop.run(feed, run.steps):
                records.append(record)
                noted.check()
        return Measured(
            label=entry.label,
            config=config,
            mesh=partition.layout.mesh,
            trace_seconds=traced - began,
            compile_seconds=compiled - traced,
            state_bytes=held,
            gauge=gauge,
            steps=records,
        )

    @contextmanager
    def _telling(self, job: Job) -> Iterator[None]:
        """What goes wrong within the block is told, in the job's name, and the others go on."""
        try:
            yield
        except BrokenPipeError:
            raise
        except Exception as error:
            announce(job)
            self.codes.append(report(error))


def labels(jobs: Sequence[Job]) -> list[str]:
    """What tells each job from the others: its overrides that are not all the same. A spec or a model that alone
    differs goes by its name, and so does the spec of the only job."""
    rows = [job.overrides or () for job in jobs]
    differing = [column for column in zip(*rows, strict=True) if len(set(column)) > 1]
    if not differing:
        return [job.config.spec.ref for job in jobs]
    if len(differing) == 1 and differing[0][0].startswith(("spec=", "model=")):
        return [word.partition("=")[2] for word in differing[0]]
    return [" ".join(words) for words in zip(*differing, strict=True)]
