"""`sharddsl train`: a model that is placed by a spec learns from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharddsl.cli.arguments import Parser, hydra_flags, number, path
from sharddsl.cli.children import run_job
from sharddsl.cli.failure import guarded
from sharddsl.config.jobs import Job, Request, run
from sharddsl.findings import UsageError


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to train, as the options say it."""

    rules: tuple[str, ...]
    devices: int | None
    csv: str | None
    tensorboard: str | None
    profile: str | None
    layer_stats: bool
    log_every: int
    quiet: bool


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    wanted = Wanted(
        tuple(options.rule),
        options.devices,
        options.csv,
        options.tensorboard,
        options.profile,
        options.layer_stats,
        options.log_every,
        options.quiet,
    )

    def train(job: Job) -> int:
        if job.overrides is not None:
            return _in_child(job.overrides, wanted)
        from sharddsl.cli.training import train as train_here

        return train_here(job.config, wanted)

    request = Request("train", "train", tuple(options.overrides), hydra_flags(options), data="demo")
    return run(request, guarded(train))


def make_parser() -> Parser:
    """The options of `train`."""
    parser = Parser(
        "train",
        "Train a model that is placed by a spec, from scratch or from weights. A line per step goes to stdout.",
        elsewhere={
            f"--{name}": f"it is a part of the run: run.{name}=…" for name in ("steps", "batch", "seq", "seed", "lr")
        },
    )
    parser.add_argument(
        "--devices",
        type=number(int, 1, "a number of devices", most=1024),
        metavar="N",
        help="virtual CPU devices to make where there is no accelerator (default: as many as the mesh takes)",
    )
    parser.add_argument("--csv", type=path, metavar="FILE", help="write every step's figures to a new CSV file")
    parser.add_argument("--tensorboard", type=path, metavar="DIR", help="write every step's figures for TensorBoard")
    parser.add_argument(
        "--profile", type=path, metavar="DIR", help="write a trace of steps 2 to 4 for XProf, TensorBoard or Perfetto"
    )
    parser.add_argument(
        "--layer-stats",
        action="store_true",
        help="where a loss is no number, show each layer's params and gradients (costs a little time)",
    )
    parser.add_argument(
        "--log-every",
        type=number(int, 1, "a number of steps"),
        default=1,
        metavar="N",
        help="print a line every N steps, and the first and the last (default: 1)",
    )
    parser.add_argument("--quiet", action="store_true", help="print the steps alone")
    return parser


def _in_child(overrides: tuple[str, ...], wanted: Wanted) -> int:
    """One job of a multirun."""
    for name in ("csv", "tensorboard", "profile"):
        if getattr(wanted, name) is not None:
            raise UsageError(f"--{name}: the jobs of a sweep would write over each other's; give it to single runs")
    arguments = [f"--rule={rule}" for rule in wanted.rules] + [f"--log-every={wanted.log_every}"]
    arguments += [] if wanted.devices is None else [f"--devices={wanted.devices}"]
    arguments += ["--layer-stats"] * wanted.layer_stats + ["--quiet"] * wanted.quiet
    return run_job("train", overrides, arguments, heading=True)
