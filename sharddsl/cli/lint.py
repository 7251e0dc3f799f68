"""`sharddsl lint`: everything that can be found wrong with specs without compiling them. No jax, no Hydra."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from sharddsl.cli.arguments import Parser, number, path
from sharddsl.cli.files import STDIN, is_override, specs
from sharddsl.cli.linting import Linted, Wanted, waiting
from sharddsl.cli.parallel import MOST_JOBS, lint_all
from sharddsl.findings import Severity, UsageError
from sharddsl.lint import Report, baseline
from sharddsl.lint.codes import code_of
from sharddsl.lint.data import to_data
from sharddsl.lint.text import to_concise, to_full
from sharddsl.spec.mesh import LARGEST
from sharddsl.tensors import Inventory

_RANK: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    if options.explain is not None:
        from sharddsl.cli.rule import explain

        explain([options.explain])
        return 0
    words: list[str] = options.words
    places = [word for word in words if not is_override(word)]
    wanted = _wanted(options, tuple(word for word in words if is_override(word)))
    refs = specs("lint", places or ["."])
    if options.fix or options.diff:
        return _mend(refs, wanted, options)
    each = lint_all(list(refs), wanted, options.jobs)
    if wanted.golden is not None:
        from sharddsl.cli import goldens

        if wanted.write_golden:
            goldens.write(each, wanted.golden)
        each += goldens.orphans(each, wanted)
    reports = [linted.report for linted in each]
    if options.write_baseline:
        return _write_baseline(reports, Path(options.baseline))
    _tell(reports, options)
    _hint(each, options)
    if wanted.baseline is not None and wanted.baseline.gone:
        gone = wanted.baseline.gone
        _say(f"baseline: {gone} of what it knows was not found again; --write-baseline leaves it out")
    return _exit_code(each, options)


def make_parser() -> Parser:
    """The options of `lint`."""
    parser = Parser(
        "lint",
        "Find what is wrong with specs: for every `check` that they declare, or for a model, or for any tensors.\n"
        "Needs no accelerator and no jax, and compiles nothing. Settings: [tool.sharddsl.lint] in pyproject.toml.",
        with_config=False,
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PATH|OVERRIDE",
        help="files, folders (searched for *.shard), names of specs, - for stdin (default: this folder); "
        "model=NAME, spec.mesh.AXIS=N, run.batch=N, … lint for that and not for the checks",
    )
    parser.add_argument(
        "--rule", action="append", default=[], metavar="TEXT", help="a rule after the file's own, which it overrides"
    )
    parser.add_argument(
        "--devices",
        type=number(int, 1, "a number of devices", most=LARGEST),
        metavar="N",
        help="devices there are, from which an axis of size -1 is inferred",
    )
    parser.add_argument(
        "--inventory", type=path, metavar="FILE", help="lint for the tensors that this JSON file describes"
    )
    parser.add_argument(
        "--jobs",
        type=number(int, 1, f"a number of processes, at most {MOST_JOBS}", most=MOST_JOBS),
        metavar="N",
        help="processes that lint (default: one, or one for each core where there are many files)",
    )
    _add_choice(parser)
    _add_fixes(parser)
    _add_output(parser)
    return parser


def _add_choice(parser: Parser) -> None:
    group = parser.add_argument_group("what is told", "CODE is a code, a name, the beginning of codes, or ALL")
    group.add_argument(
        "--select", action="append", default=[], metavar="CODE,…", help="only these, whatever the settings select"
    )
    group.add_argument(
        "--ignore", action="append", default=[], metavar="CODE,…", help="not these, nor those that the settings ignore"
    )
    group.add_argument(
        "--severity", action="append", type=_graded, default=[], metavar="CODE=GRADE", help="error, warning or info"
    )
    group.add_argument("--explain", metavar="CODE", help="print what this finding means, as `sharddsl rule` does")
    group.add_argument("--baseline", type=path, metavar="FILE", help="not the findings that this file knows")
    group.add_argument("--write-baseline", action="store_true", help="with --baseline: all that is found now is known")
    group.add_argument(
        "--golden", type=path, metavar="DIR", help="compare the layouts of each check with the golden files in DIR"
    )
    group.add_argument("--write-golden", action="store_true", help="with --golden: write what is so now into them")
    group.add_argument(
        "--config", type=path, metavar="FILE", help="settings from this TOML file, not from the nearest pyproject.toml"
    )


def _add_fixes(parser: Parser) -> None:
    group = parser.add_argument_group("fixes")
    group.add_argument("--fix", action="store_true", help="make the fixes that change no layout")
    group.add_argument("--unsafe-fixes", action="store_true", help="and those that decide what was meant")
    group.add_argument("--diff", action="store_true", help="print what --fix would change, and change nothing")


def _add_output(parser: Parser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format", choices=["full", "concise", "json"], default="full", help="how findings are told (default: full)"
    )
    group.add_argument("--output-file", type=path, metavar="FILE", help="write them there and not to stdout")
    group.add_argument(
        "--fail-on",
        choices=list(_RANK),
        metavar="SEVERITY",
        help="error, warning or info: exit with 1 for findings of this severity or a higher one (default: error)",
    )
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")
    group.add_argument("--stdin-filename", type=path, metavar="NAME", help="the file that the text of stdin is to be")


def _graded(text: str) -> tuple[str, Severity]:
    """An argparse type: `SHD304=error`."""
    code, _, said = text.partition("=")
    for grade in _RANK:
        if grade == said:
            return code_of(code), grade
    raise argparse.ArgumentTypeError(f"{text!r} is not CODE=error, CODE=warning or CODE=info")


def _wanted(options: argparse.Namespace, overrides: tuple[str, ...]) -> Wanted:
    """What the options ask for, files read. Raises `UsageError` where they do not go together."""
    if options.write_baseline and options.baseline is None:
        raise UsageError("lint --write-baseline: say which file: --baseline FILE")
    if options.write_baseline and (options.fix or options.diff):
        raise UsageError("lint --write-baseline: first --fix, then a baseline of what is left")
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise UsageError("lint --unsafe-fixes goes with --fix or --diff")
    _refuse_golden(options, overrides)
    return Wanted(
        overrides=overrides,
        rules=tuple(options.rule),
        devices=options.devices,
        inventory=None if options.inventory is None else _inventory(Path(options.inventory)),
        stdin_name=options.stdin_filename,
        settings_file=None if options.config is None else Path(options.config).absolute(),
        select=tuple(options.select),
        ignore=tuple(options.ignore),
        severity=tuple(options.severity),
        baseline=None if options.baseline is None or options.write_baseline else baseline.read(Path(options.baseline)),
        golden=None if options.golden is None else Path(options.golden),
        write_golden=options.write_golden,
    )


def _refuse_golden(options: argparse.Namespace, overrides: tuple[str, ...]) -> None:
    """Raises `UsageError` where --golden and --write-golden do not go with the other options."""
    if options.write_golden and options.golden is None:
        raise UsageError("lint --write-golden: say which folder: --golden DIR")
    if options.write_golden and (options.fix or options.diff):
        raise UsageError("lint --write-golden: first --fix, then golden files of what comes of it")
    if options.golden is not None and overrides:
        raise UsageError(f"lint --golden: golden files are of a spec's `check` lines, not of {' '.join(overrides)}")


def _inventory(file: Path) -> Inventory:
    from sharddsl.tensors.data import from_data

    try:
        data = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"lint: cannot read the inventory {file}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"lint: the inventory {file} is not JSON: {error}") from None
    return from_data(data)


def _mend(refs: Iterable[str | Path], wanted: Wanted, options: argparse.Namespace) -> int:
    """`--fix` and `--diff`. What is left is told as always; a diff, and the mended text of stdin, have stdout for
    themselves."""
    from sharddsl.cli.fixing import keep, mend, show

    left: list[Linted] = []
    changed = 0
    for ref in refs:
        mended = mend(ref, wanted, every=options.unsafe_fixes)
        left.append(mended.left)
        changed += mended.after != mended.before
        if options.diff:
            show(mended)
        else:
            keep(mended)
    if options.diff:
        return 0 if options.exit_zero else max(_exit_code(left, options), int(changed > 0))
    with redirect_stdout(sys.stderr) if any(linted.ref == STDIN for linted in left) else nullcontext():
        _tell([linted.report for linted in left], options)
    _hint(left, options)
    return _exit_code(left, options)


def _write_baseline(reports: Sequence[Report], file: Path) -> int:
    _write(file, baseline.written(reports, file), "--baseline")
    count = sum(len(report.findings) for report in reports)
    _say(f"{file}: {count} finding{'s' * (count != 1)} known from now on")
    return 0


def _tell(reports: Sequence[Report], options: argparse.Namespace) -> None:
    match options.format:
        case "full":
            text = to_full(reports)
        case "concise":
            text = to_concise(reports)
        case _:
            text = json.dumps(to_data(reports), indent=2)
    if options.output_file is None:
        print(text)
    else:
        _write(Path(options.output_file).expanduser(), f"{text}\n", "--output-file")


def _hint(each: Sequence[Linted], options: argparse.Namespace) -> None:
    """What `--fix` could do, for who reads the findings as text."""
    if options.format not in ("full", "concise") or options.output_file is not None:
        return
    safe = sum(count_safe for count_safe, _ in map(waiting, each))
    other = sum(count_other for _, count_other in map(waiting, each))
    told = [f"{n} with {option}" for n, option in ((safe, "--fix"), (other, "--fix --unsafe-fixes")) if n]
    if told:
        _say(f"fixes: {', '.join(told)}; --diff shows them")


def _exit_code(each: Sequence[Linted], options: argparse.Namespace) -> int:
    if options.exit_zero:
        return 0
    for linted in each:
        least = _RANK[options.fail_on or linted.settings.fail_on]
        if any(_RANK[judged.finding.severity] <= least for judged in linted.report.findings):
            return 1
    return 0


def _write(file: Path, text: str, option: str) -> None:
    from sharddsl.cli.writing import write_whole

    try:
        write_whole(file, text.encode())
    except OSError as error:
        raise UsageError(f"lint {option} {file}: it cannot be written ({error.strerror})") from None


def _say(line: str) -> None:
    print(line, file=sys.stderr)
