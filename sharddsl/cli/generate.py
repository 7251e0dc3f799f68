"""`sharddsl generate`: text from a model that is placed by a spec."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from sharddsl.cli.arguments import Parser, hydra_flags, number
from sharddsl.cli.children import run_job
from sharddsl.cli.failure import guarded
from sharddsl.config.jobs import Job, Request, run
from sharddsl.findings import UsageError

_STDIN = "-"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to generate, as the options say it. `prompts` may hold `-` for `stdin`, which is what was read there."""

    prompts: tuple[str, ...]
    stdin: str
    rules: tuple[str, ...]
    max_tokens: int
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int
    raw: bool
    quiet: bool

    @property
    def texts(self) -> tuple[str, ...]:
        """The prompts, stdin's in its place."""
        return tuple(self.stdin if prompt == _STDIN else prompt for prompt in self.prompts)


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    wanted = Wanted(
        prompts=tuple(_text(prompt, "--prompt") for prompt in options.prompt),
        stdin=_read_stdin() if _STDIN in options.prompt else "",
        rules=tuple(options.rule),
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
        raw=options.raw,
        quiet=options.quiet,
    )
    _check(wanted)

    def generate(job: Job) -> int:
        if job.overrides is not None:
            return _in_child(job.overrides, wanted)
        from sharddsl.cli.generation import generate as generate_here

        generate_here(job.config, wanted)
        return 0

    return run(Request("generate", "generate", tuple(options.overrides), hydra_flags(options)), guarded(generate))


def make_parser() -> Parser:
    """The options of `generate`."""
    parser = Parser(
        "generate",
        "Generate text with a model that is placed by a spec. Text goes to stdout.",
        elsewhere={"--devices": "it takes the accelerators there are, or as many CPU devices as the mesh has places"},
    )
    parser.add_argument(
        "--prompt", action="append", default=[], metavar="TEXT", help="a prompt, or - for stdin; may be repeated"
    )
    parser.add_argument(
        "--max-tokens",
        type=number(int, 1, "a number of tokens"),
        default=64,
        metavar="N",
        help="new tokens per prompt, at most (default: 64)",
    )
    parser.add_argument(
        "--temperature",
        type=number(float, 0, "a temperature"),
        default=0.0,
        metavar="T",
        help="0 always takes the likeliest token, more of it samples (default: 0)",
    )
    parser.add_argument(
        "--top-k",
        type=number(int, 1, "a number of tokens"),
        metavar="K",
        help="sample among the K likeliest tokens (default: all)",
    )
    parser.add_argument(
        "--top-p",
        type=number(float, 0, "a probability", most=1),
        metavar="P",
        help="sample among the fewest tokens that have probability P together (default: all)",
    )
    parser.add_argument(
        "--seed",
        type=number(int, 0, "a seed of 32 bits", most=2**32 - 1),
        default=0,
        metavar="N",
        help="what sampling starts from (default: 0)",
    )
    parser.add_argument("--raw", action="store_true", help="continue the prompt as it is, without the chat template")
    parser.add_argument("--quiet", action="store_true", help="print the answers alone, a blank line between two")
    return parser


def _check(wanted: Wanted) -> None:
    if wanted.prompts.count(_STDIN) > 1:
        raise UsageError("generate: stdin can be one prompt only, and `--prompt -` was given twice")
    if wanted.temperature == 0 and (wanted.top_k is not None or wanted.top_p is not None):
        raise UsageError("generate: --top-k and --top-p choose among likely tokens: give a --temperature over 0 too")
    refuse_empty(wanted.texts)


def refuse_empty(texts: Sequence[str]) -> None:
    """Raise `UsageError` for a prompt without text."""
    if any(not text.strip() for text in texts):
        raise UsageError("generate: an empty prompt: there is nothing to continue")


def _text(argument: str, what: str) -> str:
    """The argument, which must have been UTF-8: Python keeps bytes that were not as lone surrogates."""
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"generate: {what} is not UTF-8 text (at character {error.start + 1})") from None
    return argument


def _read_stdin() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"generate: stdin is not UTF-8 text (at byte {error.start})") from None


def _in_child(overrides: tuple[str, ...], wanted: Wanted) -> int:
    """One job of a multirun."""
    options = {
        "--rule": wanted.rules,
        "--prompt": wanted.prompts,
        "--max-tokens": (wanted.max_tokens,),
        "--temperature": (wanted.temperature,),
        "--top-k": (wanted.top_k,),
        "--top-p": (wanted.top_p,),
        "--seed": (wanted.seed,),
    }
    arguments = [f"{name}={value}" for name, values in options.items() for value in values if value is not None]
    arguments += ["--raw"] * wanted.raw + ["--quiet"] * wanted.quiet
    return run_job("generate", overrides, arguments, heading=not wanted.quiet, stdin=wanted.stdin)
