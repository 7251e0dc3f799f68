"""One job of `sharddsl generate`, from its configuration to text on stdout.

Everything that can be refused without jax, devices or a download is refused before them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sharddsl.cli.answers import Answer, Page
from sharddsl.cli.generate import Wanted, refuse_empty
from sharddsl.cli.interrupts import interrupts
from sharddsl.cli.placement import Layouts, described, refuse_too_large
from sharddsl.cli.progress import Progress, progress
from sharddsl.cli.sources import DEMO_MODEL, has_demo_weights, open_source, tokenizer_of
from sharddsl.config.groups import RUNS
from sharddsl.config.schema import Config
from sharddsl.config.weights import path_of
from sharddsl.findings import UsageError
from sharddsl.models import Run
from sharddsl.spec.model import Mode
from sharddsl.train.config import Training

if TYPE_CHECKING:
    import jax

    from sharddsl.llama.generate import Generator
    from sharddsl.llama.sampling import Sampling
    from sharddsl.llama.tokenizer import Tokenizer
    from sharddsl.llama.weights import WeightSource
    from sharddsl.partition import Partition

_ONLY_TRAINING = (
    *(name for name in Training.model_fields if name not in Run.model_fields),
    "accum",
    "optimizer",
    "remat",
)
"""The parts of a run that say nothing about generating."""


def generate(config: Config, wanted: Wanted) -> None:
    """Generate and print. Raises `ShardError` or `UsageError` for what cannot be done."""
    with interrupts():
        _generate(config, wanted)


def _generate(config: Config, wanted: Wanted) -> None:
    texts = wanted.texts or config.data.prompts
    _check(config, texts)
    shown = progress(wanted.quiet)
    layouts = Layouts(config, wanted.rules, ("prefill", "decode"))
    layouts.check()
    with shown.step("starting jax"):
        _sampling(wanted)  # so that a value out of range is told now
        devices = layouts.devices()
        partitions = _partitions(layouts, devices, config.run, len(texts))
        refuse_too_large(partitions["prefill"], "the weights", "param")
    for line in described(layouts, partitions):
        shown.say(line)
    source = open_source(config.weights, shown)
    tokenizer = tokenizer_of(config.model, source)
    rows = [
        Answer(text, tokens, tokenizer.stream())
        for text, tokens in zip(texts, _tokens(tokenizer, texts, wanted.raw, shown), strict=True)
    ]
    _check_rows(config, rows, wanted)
    generator = _generator(config, source, partitions, shown)
    _stream(generator, rows, tokenizer.stop_ids, wanted, shown)


def _partitions(layouts: Layouts, devices: list[jax.Device], run: Run, rows: int) -> dict[Mode, Partition]:
    """Those of both programs, for as many prompts."""
    from math import lcm

    from sharddsl.llama.generate import fill_batch

    # A `when` may ask about the batch, which is known once the mesh says what it must be a multiple of.
    first = layouts.partitions(devices)
    multiple = lcm(*(partition.multiple_of("batch", "act", "batch", "cache") for partition in first.values()))
    return layouts.partitions(devices, run.model_copy(update={"batch": fill_batch(rows, multiple)}))


def _check(config: Config, texts: Sequence[str]) -> None:
    if not texts:
        raise UsageError("generate: no prompt: give --prompt TEXT (or - for stdin), or data=demo for some samples")
    refuse_empty(texts)
    if not config.weights:
        raise UsageError("weights= is empty: give auto, random, or the path of a file or folder")
    for name in ("batch", "seq"):
        if getattr(config.run, name) is not None:
            raise UsageError(f"run.{name}: the prompts and --max-tokens decide it; leave it out")
    useless = [name for name in _ONLY_TRAINING if getattr(config.run, name) != getattr(RUNS["generate"], name)]
    if useless:
        at = " (its seed is --seed)" if useless[0] == "seed" else ""
        raise UsageError(f"run.{useless[0]}: it is a part of training, and generate does not use it; leave it out{at}")
    if config.run.mode != "prefill":  # that of run=generate
        raise UsageError(
            f"run.mode={config.run.mode}: generate runs prefill and then decode; leave run= and run.mode= out, and "
            "give what is wanted of another run by itself, as in run.precision=bf16_compute"
        )
    path_of(config.weights)  # a missing file is told now: jax takes seconds to start
    if config.weights == "auto" and not has_demo_weights(config.model):
        changed = " with other values than the preset's" if config.model.name == DEMO_MODEL else ""
        raise UsageError(
            f"there are no weights for {config.model.name}{changed} to fetch (weights=auto knows {DEMO_MODEL}): give "
            "weights=PATH, a GGUF file or a Hugging Face folder, or weights=random to see it run"
        )


def _sampling(wanted: Wanted) -> Sampling:
    from sharddsl.llama.sampling import Sampling

    return Sampling(wanted.temperature, wanted.top_k, wanted.top_p)


def _check_rows(config: Config, rows: Sequence[Answer], wanted: Wanted) -> None:
    """What `stream` would refuse is refused before the weights are loaded."""
    from sharddsl.llama.generate import check_prompts

    check_prompts(config.model, [row.tokens for row in rows], wanted.max_tokens)


def _tokens(tokenizer: Tokenizer, texts: Sequence[str], raw: bool, shown: Progress) -> list[list[int]]:
    if not raw and tokenizer.has_chat_template:
        return [tokenizer.chat([{"role": "user", "content": text}]) for text in texts]
    if not raw:
        shown.say("the weights have no chat template: the prompt is continued as it is")
    return [tokenizer.prompt(text) for text in texts]


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


def _stream(generator: Generator, rows: list[Answer], stop: frozenset[int], wanted: Wanted, shown: Progress) -> None:
    from sharddsl.llama.generate import fill_batch

    filled = fill_batch(len(rows), generator.batch_multiple)
    if (filler := filled - len(rows)) > 0:
        shown.say(f"batch {len(rows)} → {filled}, {filler} filler row{'s' * (filler > 1)}")
    steps = generator.stream(
        [row.tokens for row in rows],
        wanted.max_tokens,
        stop=stop,
        sampling=_sampling(wanted),
        seed=wanted.seed,
    )
    page = Page(rows, headed=not wanted.quiet)
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
