"""`sharddsl show`: the layout of every tensor, without jax."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from sharddsl.cli.arguments import Parser, hydra_flags, number
from sharddsl.cli.failure import announce, guarded
from sharddsl.cli.layouts import lay_out
from sharddsl.config.jobs import Job, Request, run
from sharddsl.findings import errors, render
from sharddsl.layout.model import Layout
from sharddsl.spec.mesh import LARGEST

_WIDE = 200
"""Columns where the output is no terminal."""


def make_parser() -> Parser:
    """The options of `show`."""
    parser = Parser("show", "Print where every tensor of a model lies under a spec. Needs no accelerator and no jax.")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument(
        "--devices",
        type=number(int, 1, "a number of devices", most=LARGEST),
        metavar="N",
        help="devices there are, from which an axis of size -1 is inferred",
    )
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)

    def show(job: Job) -> int:
        layout = lay_out(job.config, job.config.run, options.rule, options.devices)
        print(_as_json(job, layout) if options.format == "json" else _as_text(job, layout))
        if layout.findings:
            announce(job)
            print(render(layout.findings, layout.sources), file=sys.stderr)
        return 1 if errors(layout.findings) else 0

    request = Request("show", "train", tuple(options.overrides), hydra_flags(options))
    return run(request, guarded(show))


def _as_text(job: Job, layout: Layout) -> str:
    from sharddsl.layout import report

    heading = "" if job.overrides is None else f"== {' '.join(job.overrides)}\n"
    return heading + report.to_text(layout, _width())


def _as_json(job: Job, layout: Layout) -> str:
    """The layout; in a multirun, one line per job, with the job's overrides beside it."""
    import json

    from sharddsl.layout import report

    if job.overrides is None:
        return json.dumps(report.to_json(layout), indent=2)
    return json.dumps({"overrides": job.overrides, "layout": report.to_json(layout)})


def _width() -> int:
    """Columns to lay the table out for: COLUMNS, else the terminal's, else as many as a wide one has."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _WIDE
    except OSError:
        return _WIDE
