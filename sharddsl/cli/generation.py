"""One job of `sharddsl generate`, from its configuration to text on stdout.

Everything that can be refused without jax, devices or a download is refused before them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sharddsl.cli.generate import Wanted, refuse_empty
from sharddsl.cli.layouts import lay_out, load_spec, smallest, usable
from sharddsl.cli.progress import Progress, progress
from sharddsl.config.schema import Config
from sharddsl.findings import UsageError, render
from sharddsl.layout.model import Layout
from sharddsl.layout.totals import totals
from sharddsl.layout.words import bytes_text
from sharddsl.models import PRESETS, Run
from sharddsl.spec.model import Mode

if TYPE_CHECKING:
    import jax

    from sharddsl.llama.generate import Generator
    from sharddsl.llama.tokenizer import TextStream, Tokenizer
    from sharddsl.llama.weights import WeightSource
    from sharddsl.partition import Partition

_DEMO_MODEL = "smollm2_135m"
_MOST_VIRTUAL = 1024
"""CPU devices. JAX makes them, but each has threads of its own, and nobody means to generate on more."""


def generate(config: Config, wanted: Wanted) -> None:
    """Generate and print. Raises `ShardError` or `UsageError` for what cannot be done."""
    texts = wanted.texts or config.data.prompts
    _check(config, texts)
    shown = progress(wanted.quiet)
    layouts = _Layouts(config, wanted.rules)
    layouts.check()
    with shown.step("starting jax"):
        devices = layouts.devices()
        partitions = layouts.partitions(devices, len(texts))
        _refuse_too_large(partitions["prefill"])
    for line in _described(layouts, partitions):
        shown.say(line)
    source = _source(config, shown)
    tokenizer = _tokenizer(config, source)
    rows = [
        _Row(text, tokens, tokenizer.stream())
        for text, tokens in zip(texts, _tokens(tokenizer, texts, wanted.raw, shown), strict=True)
    ]
    generator = _generator(config, source, partitions, shown)
    _stream(generator, rows, tokenizer.stop_ids, wanted, shown)


def _check(config: Config, texts: Sequence[str]) -> None:
    if not texts:
        raise UsageError("generate: no prompt: give --prompt TEXT (or - for stdin), or data=demo for some samples")
    refuse_empty(texts)
    if not config.weights:
        raise UsageError("weights= is empty: give auto, random, or the path of a file or folder")
    for name in ("batch", "seq"):
        if getattr(config.run, name) is not None:
            raise UsageError(f"run.{name}: the prompts and --max-tokens decide it; leave it out")
    if config.weights == "auto" and config.model != PRESETS[_DEMO_MODEL]:
        changed = " with other values than the preset's" if config.model.name == _DEMO_MODEL else ""
        raise UsageError(
            f"there are no weights for {config.model.name}{changed} to fetch (weights=auto knows {_DEMO_MODEL}): give "
            "weights=PATH, a GGUF file or a Hugging Face folder, or weights=random to see it run"
        )


# --------------------------------------------------------------------------------------------------------- placement


class _Layouts:
    """The layouts of the two programs, prefill and decode, and the devices that they are for."""

    def __init__(self, config: Config, rules: Sequence[str]) -> None:
        self._config, self._rules = config, rules
        _, self._mesh = load_spec(config, rules)
        self.least = smallest(self._mesh)
        self.inferred = [axis.name for axis in self._mesh.axes if axis.size == -1]

    def check(self) -> None:
        """Raises `ShardError` for what does not fit on the fewest devices."""
        if self.least > _MOST_VIRTUAL:
            return  # only accelerators can be as many, and they are counted once jax has started
        for mode in ("prefill", "decode"):
            self._layout(mode, self.least, None)

    def devices(self) -> list[jax.Device]:
        """The machine's accelerators, or as many virtual CPU devices as the mesh takes where it has none."""
        from sharddsl.partition import ensure_devices

        if self.least <= _MOST_VIRTUAL:
            return ensure_devices(self.least)
        devices = ensure_devices(1)
        if devices[0].platform == "cpu":
            raise UsageError(
                f"the mesh takes {self.least:,} devices; without an accelerator at most {_MOST_VIRTUAL:,} virtual CPU "
                "devices are made: give smaller axes, as in spec.mesh.fsdp=2"
            )
        return devices

    def partitions(self, devices: list[jax.Device], rows: int) -> dict[Mode, Partition]:
        """Prefill's and decode's partition on these devices, for as many prompts."""
        from sharddsl.llama.generate import fill_batch

        partitions = self._partitions(devices, None)
        # A `when` may ask about the batch, which is known once the mesh says what it must be a multiple of.
        return self._partitions(devices, fill_batch(rows, _batch_multiple(partitions)))

    def _partitions(self, devices: list[jax.Device], batch: int | None) -> dict[Mode, Partition]:
        from sharddsl.partition import Partition

        modes: tuple[Mode, ...] = ("prefill", "decode")
        return {mode: Partition.of(self._layout(mode, len(devices), batch), devices) for mode in modes}

    def _layout(self, mode: Mode, devices: int, batch: int | None) -> Layout:
        run = self._config.run.model_copy(update={"mode": mode, "batch": batch})
        return usable(lay_out(self._config, run, self._rules, devices))


def _refuse_too_large(partition: Partition) -> None:
    """Raise `UsageError` where virtual CPU devices, which share the machine's memory, cannot hold the weights."""
    per_device = totals(partition.layout)["param"].local_bytes
    if partition.platform != "cpu" or per_device is None:
        return
    needed = per_device * partition.layout.mesh.size
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise UsageError(
            f"the weights take {bytes_text(needed)} on {partition.layout.mesh.size} virtual CPU devices together, and "
            f"this machine has {bytes_text(memory)} of memory: split them further, or take a smaller model"
        )


def _batch_multiple(partitions: dict[Mode, Partition]) -> int:
    from math import lcm

    return lcm(*(partition.multiple_of("batch", "act", "batch", "cache") for partition in partitions.values()))


def _described(layouts: _Layouts, partitions: dict[Mode, Partition]) -> Iterator[str]:
    """What a user should know about where the model runs."""
    partition = partitions["prefill"]
    mesh, platform = partition.layout.mesh, partition.platform
    if platform == "cpu":
        yield f"mesh {mesh}: {mesh.size} virtual CPU device{'s' * (mesh.size > 1)}, as there is no accelerator"
        for axis in layouts.inferred:
            yield f"  {axis}=-1 is {mesh.sizes[axis]} on virtual devices; another size: spec.mesh.{axis}=N"
    else:
        yield f"mesh {mesh}: {mesh.size} {platform} devices"
    yield from (f"  {note}" for note in partition.notes)
    findings = {finding: None for part in partitions.values() for finding in part.layout.findings}
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if warnings:
        yield render(warnings, partition.layout.sources)


# ------------------------------------------------------------------------------------------------- weights and tokens


def _source(config: Config, shown: Progress) -> WeightSource | None:
    """Where the weights come from; None for random ones."""
    from sharddsl.llama.weights import open_weights

    if config.weights == "random":
        shown.say("weights: random")
        return None
    if config.weights == "auto":
        from sharddsl.llama.pretrained import demo_weights

        path = demo_weights(shown.amount)
    else:
        path = Path(config.weights)
    shown.say(f"weights: {path}")
    return open_weights(path)


def _tokenizer(config: Config, source: WeightSource | None) -> Tokenizer:
    if source is None:
        from sharddsl.llama.tokenizer import ByteTokenizer

        return ByteTokenizer(config.model.vocab)
    source.check(config.model)
    return source.tokenizer()


def _tokens(tokenizer: Tokenizer, texts: Sequence[str], raw: bool, shown: Progress) -> list[list[int]]:
    if raw:
        return [tokenizer.prompt(text) for text in texts]
    if not getattr(tokenizer, "has_chat_template", False):
        shown.say("the weights have no chat template: the prompt is continued as it is")
        return [tokenizer.prompt(text) for text in texts]
    return [tokenizer.chat([{"role": "user", "content": text}]) for text in texts]


def _generator(
    config: Config, source: WeightSource | None, partitions: dict[Mode, Partition], shown: Progress
) -> Generator:
    from sharddsl.llama.forward import init_params
    from sharddsl.llama.generate import Generator
    from sharddsl.llama.weights import load_params

    run: Run = config.run
    prefill = partitions["prefill"]
    if source is None:
        with shown.step("making random weights"):
            params = init_params(config.model, run, prefill)
    else:
        params = load_params(
            source, config.model, prefill.shardings, dtype=run.param_dtype, scan=run.scan, progress=shown.amount
        )
    generator = Generator(config.model, run, params, prefill=prefill, decode=partitions["decode"])
    for note in generator.notes:
        shown.say(note)
    return generator


# -------------------------------------------------------------------------------------------------------------- output


def _stream(generator: Generator, rows: list[_Row], stop: frozenset[int], wanted: Wanted, shown: Progress) -> None:
    from sharddsl.llama.generate import fill_batch
    from sharddsl.llama.sampling import Sampling

    filled = fill_batch(len(rows), generator.batch_multiple)
    if (filler := filled - len(rows)) > 0:
        shown.say(f"batch {len(rows)} → {filled}, {filler} filler row{'s' * (filler > 1)}")
    steps = generator.stream(
        [row.tokens for row in rows],
        wanted.max_tokens,
        stop=stop,
        sampling=Sampling(wanted.temperature, wanted.top_k, wanted.top_p),
        seed=wanted.seed,
    )
    page = _Page(rows)
    start = time.monotonic()
    with shown.step("compiling prefill and decode"):
        first = next(steps, None)
    ready = time.monotonic()
    count = 0
    if first is not None:
        page.add(first)
    for step in steps:
        page.add(step)
        count += sum(token is not None for token in step)
    page.finish()
    decoding = time.monotonic() - ready
    if count:
        shown.say(f"{count / decoding:.1f} tokens/s ({count} tokens in {decoding:.2f} s)")
    shown.say(f"first token after {ready - start:.2f} s, compiling included")


@dataclass
class _Row:
    """One prompt, as text and as tokens, and its answer: `text` is what has arrived of it and is not printed yet."""

    prompt: str
    tokens: list[int]
    stream: TextStream
    text: str = ""
    done: bool = False

    def add(self, token: int | None) -> None:
        if token is None:
            self.finish()
        else:
            self.text += self.stream.push(token)

    def finish(self) -> None:
        if not self.done:
            self.text += self.stream.finish()
            self.done = True


class _Page:
    """Answers on stdout, one after the other. The first that is not done streams; those behind it wait their turn."""

    def __init__(self, rows: list[_Row]) -> None:
        self._rows = rows
        self._at = 0
        self._open()

    def add(self, tokens: Sequence[int | None]) -> None:
        for row, token in zip(self._rows, tokens, strict=True):
            row.add(token)
        self._print()

    def finish(self) -> None:
        """No more tokens come."""
        for row in self._rows:
            row.finish()
        self._print()

    def _print(self) -> None:
        while self._at < len(self._rows):
            row = self._rows[self._at]
            sys.stdout.write(row.text)
            row.text = ""
            if not row.done:
                break
            sys.stdout.write("\n")
            self._at += 1
            self._open()
        sys.stdout.flush()

    def _open(self) -> None:
        """A heading, where there are several answers to tell apart."""
        if len(self._rows) > 1 and self._at < len(self._rows):
            lines = self._rows[self._at].prompt.splitlines()
            more = " …" if len(lines) > 1 else ""
            blank = "\n" if self._at else ""
            sys.stdout.write(f"{blank}[{self._at + 1}/{len(self._rows)}] {lines[0]}{more}\n")
