"""`sharddsl lint`: everything that can be found wrong with specs without compiling them. No jax, no Hydra."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharddsl.cli.arguments import Parser, number, path
from sharddsl.cli.files import STDIN, specs
from sharddsl.config import fast
from sharddsl.config.groups import RUNS
from sharddsl.config.schema import Config
from sharddsl.findings import Severity, UsageError
from sharddsl.lint import Case, Report, case_of_inventory, case_of_model, cases_of_checks, judge
from sharddsl.lint.data import to_data
from sharddsl.lint.text import to_concise, to_full
from sharddsl.models import PRESETS
from sharddsl.spec import Loaded, load, parse
from sharddsl.spec.mesh import LARGEST
from sharddsl.tensors import Inventory
from sharddsl.tensors.data import from_data

_OVERRIDE = re.compile(r"[A-Za-z_][\w.-]*=.*", re.DOTALL)
_SIZE = re.compile(r"spec\.mesh\.(?P<axis>\w+)=(?P<size>-?\d+)")
_RANK: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to lint for, as the options say it."""

    overrides: tuple[str, ...]
    rules: tuple[str, ...]
    devices: int | None
    inventory: Inventory | None
    stdin_name: str


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    words: list[str] = options.words
    overrides = tuple(word for word in words if _OVERRIDE.fullmatch(word))
    places = [word for word in words if not _OVERRIDE.fullmatch(word)]
    held = None if options.inventory is None else _inventory(Path(options.inventory))
    wanted = Wanted(overrides, tuple(options.rule), options.devices, held, options.stdin_filename)
    reports = [_lint(ref, wanted) for ref in specs("lint", places or ["."])]
    match options.format:
        case "full":
            text = to_full(reports)
        case "concise":
            text = to_concise(reports)
        case _:
            text = json.dumps(to_data(reports), indent=2)
    _write(text, options.output_file)
    worst = min((_RANK[judged.finding.severity] for report in reports for judged in report.findings), default=3)
    return 0 if options.exit_zero or worst > _RANK[options.fail_on] else 1


def make_parser() -> Parser:
    """The options of `lint`."""
    parser = Parser(
        "lint",
        "Find what is wrong with specs: for every `check` that they declare, or for a model, or for any tensors.\n"
        "Needs no accelerator and no jax, and compiles nothing.",
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
        "--format", choices=["full", "concise", "json"], default="full", help="how findings are told (default: full)"
    )
    parser.add_argument("--output-file", type=path, metavar="FILE", help="write them there and not to stdout")
    parser.add_argument(
        "--fail-on",
        choices=list(_RANK),
        default="error",
        metavar="SEVERITY",
        help="error, warning or info: exit with 1 for findings of this severity or a higher one (default: error)",
    )
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")
    parser.add_argument(
        "--stdin-filename", type=path, default="<stdin>", metavar="NAME", help="what the text of stdin is called"
    )
    return parser


def _lint(ref: str | Path, wanted: Wanted) -> Report:
    config = None if wanted.inventory is not None or not wanted.overrides else _config(ref, wanted)
    mesh = _sizes(wanted.overrides) if wanted.inventory is not None else config.spec.mesh if config is not None else {}
    loaded = _load(ref, wanted, mesh)
    name = wanted.stdin_name if ref == STDIN else str(ref)
    return judge(name, loaded, tuple(_cases(loaded, config, wanted)))


def _load(ref: str | Path, wanted: Wanted, mesh: Mapping[str, int]) -> Loaded:
    if ref != STDIN:
        return load(ref, rules=wanted.rules, mesh=mesh, models=PRESETS, runs=RUNS)
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"lint: stdin is not UTF-8 text (at byte {error.start})") from None
    return parse(text, wanted.stdin_name, rules=wanted.rules, mesh=mesh, models=PRESETS, runs=RUNS)


def _cases(loaded: Loaded, config: Config | None, wanted: Wanted) -> Iterator[Case]:
    if loaded.spec is None or loaded.spec.mesh is None:
        return
    if wanted.inventory is not None:
        yield case_of_inventory(loaded, wanted.inventory, devices=wanted.devices)
    elif config is not None:
        yield case_of_model(loaded, loaded.spec, config.model, config.run, devices=wanted.devices)
    else:
        yield from cases_of_checks(loaded, PRESETS, RUNS)


def _config(ref: str | Path, wanted: Wanted) -> Config:
    """The model and run that the overrides name."""
    if given := [word for word in wanted.overrides if word.startswith("spec=")]:
        raise UsageError(f"lint: {given[0]}: specs are named without `spec=`: sharddsl lint {given[0][5:]}")
    if ref == STDIN:
        ref = "llama/dp"  # any: what counts of it is read from stdin
    choice = str(ref) if isinstance(ref, str) or ref.is_absolute() else f"./{ref}"
    config = fast.read((*wanted.overrides, f"spec='{choice}'"), "train")
    if config is None:
        raise UsageError(
            f"lint: it reads plain overrides alone, such as model=llama3_8b spec.mesh.fsdp=64 run.batch=64; not "
            f"{' '.join(wanted.overrides)}"
        )
    return config


def _sizes(overrides: Sequence[str]) -> dict[str, int]:
    """Of axes: all that overrides can say about tensors that are given as data."""
    sizes = {}
    for override in overrides:
        match = _SIZE.fullmatch(override)
        if match is None:
            raise UsageError(f"lint --inventory: {override}: only spec.mesh.AXIS=N goes with tensors given as data")
        sizes[match["axis"]] = int(match["size"])
    return sizes


def _inventory(file: Path) -> Inventory:
    try:
        data = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"lint: cannot read the inventory {file}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"lint: the inventory {file} is not JSON: {error}") from None
    return from_data(data)


def _write(text: str, target: str | None) -> None:
    if target is None:
        print(text)
        return
    try:
        Path(target).expanduser().write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"lint --output-file {target}: it cannot be written ({error.strerror})") from None
