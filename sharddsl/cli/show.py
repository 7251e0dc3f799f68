"""`sharddsl show`: the layout of every tensor, without jax."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from sharddsl.cli.arguments import Parser, hydra_flags, number
from sharddsl.cli.failure import announce, guarded
from sharddsl.cli.layouts import lay_out, load_spec
from sharddsl.cli.page import page_width
from sharddsl.config.jobs import Job, Request, run
from sharddsl.findings import ShardError, errors, render
from sharddsl.layout.model import Layout
from sharddsl.spec.mesh import LARGEST
from sharddsl.spec.model import Mesh, Spec


def make_parser() -> Parser:
    """The options of `show`."""
    parser = Parser("show", "Print where every tensor of a model lies under a spec. Needs no accelerator and no jax.")
    parser.add_argument(
        "--format",
        choices=["text", "json", "golden"],
        default="text",
        help="a table, the same as data, or the layouts alone as golden files have them (default: text)",
    )
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
        loaded, mesh = load_spec(job.config, options.rule)
        try:
            layout = lay_out(loaded, job.config.model, job.config.run, options.devices)
        except ShardError as error:
            raise _with_devices(error, mesh) if options.devices is None else error from None
        print(_FORMATS[options.format](job, layout))
        if layout.findings:
            announce(job)
            print(render(layout.findings, layout.sources), file=sys.stderr)
        if (unmeasured := _unmeasured(loaded.checked())) is not None:
            print(unmeasured, file=sys.stdout if options.format == "text" else sys.stderr)
        return 1 if errors(layout.findings) else 0

    request = Request("show", "train", tuple(options.overrides), hydra_flags(options))
    return run(request, guarded(show))


def _with_devices(error: ShardError, mesh: Mesh) -> ShardError:
    """The error; where it is one axis of size -1 that could not be inferred, with this command's remedy besides."""
    if [axis.size for axis in mesh.axes if axis.size < 1] != [-1]:
        return error
    findings = [
        replace(finding, help=f"{finding.help}\nor say how many devices there are: --devices 8")
        if finding.code == "SHD104"
        else finding
        for finding in error.findings
    ]
    return ShardError(findings, error.sources)


def _unmeasured(spec: Spec) -> str | None:
    """What the spec asks to have measured, of which a layout alone knows nothing; None for nothing."""
    expectations = len(spec.expect) + sum(len(check.expect) for check in spec.checks)
    counts = [
        f"{count} {what}{'s' * (count > 1)}"
        for count, what in ((len(spec.checks), "check"), (expectations, "expectation"))
        if count
    ]
    return f"{' and '.join(counts)}: validated, not evaluated by show" if counts else None


def _as_text(job: Job, layout: Layout) -> str:
    from sharddsl.layout import report

    heading = "" if job.overrides is None else f"== {' '.join(job.overrides)}\n"
    return heading + report.to_text(layout, page_width())


def _as_json(job: Job, layout: Layout) -> str:
    """The layout; in a multirun, one line per job, with the job's overrides beside it."""
    import json

    from sharddsl.layout import report

    if job.overrides is None:
        return json.dumps(report.to_json(layout), indent=2)
    return json.dumps({"overrides": job.overrides, "layout": report.to_json(layout)})


def _as_golden(job: Job, layout: Layout) -> str:
    from sharddsl.lint.golden import layout_section

    return layout_section(layout).rstrip("\n") + "\n" * (job.overrides is not None)


_FORMATS = {"text": _as_text, "json": _as_json, "golden": _as_golden}
