"""`sharddsl bench`: runs of training beside each other, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from sharddsl.cli.arguments import Parser, hydra_flags, number, path
from sharddsl.config.jobs import Job, Request, run


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to measure on, and how to tell it, as the options say it."""

    rules: tuple[str, ...]
    devices: int | None
    as_json: bool
    plot: str | None
    quiet: bool


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    wanted = Wanted(tuple(options.rule), options.devices, options.format == "json", options.plot, options.quiet)
    flags = hydra_flags(options)
    if not (options.multirun or options.cfg or options.info):
        flags += ("--multirun",)
    jobs: list[Job] = []

    def note(job: Job) -> int:
        jobs.append(job)
        return 0

    with TemporaryDirectory(prefix="sharddsl-") as folder:  # Hydra keeps a record of a sweep, and nobody wants this one
        overrides = (f"hydra.sweep.dir={folder}", *options.overrides)
        code = run(Request("bench", "train", overrides, flags, data="demo"), note)
    if not jobs:  # a `--cfg` or `--info` has been printed
        return code
    from sharddsl.cli.benching import bench

    return bench(jobs, wanted)


def make_parser() -> Parser:
    """The options of `bench`."""
    parser = Parser(
        "bench",
        "Compare specs by training with each, and print what each costs: spec=llama/dp,llama/fsdp.\n"
        "Whatever a sweep can change may be compared: run.remat=none,full.",
        elsewhere={"--steps": "it is a part of the run: run.steps=…"},
    )
    parser.add_argument(
        "--devices",
        type=number(int, 1, "a number of devices", most=1024),
        metavar="N",
        help="virtual CPU devices to make where there is no accelerator (default: as many as the largest mesh takes)",
    )
    parser.add_argument(
        "--format", choices=["text", "json"], default="text", help="a table, or the same as data (default: text)"
    )
    parser.add_argument(
        "--plot", type=path, metavar="FILE", help="draw speed and memory into a new file: .png, .svg, .pdf"
    )
    parser.add_argument("--quiet", action="store_true", help="print the comparison alone")
    return parser
