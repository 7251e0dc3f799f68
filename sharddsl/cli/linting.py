"""One spec, linted as a command line and the project's settings want it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sharddsl.cli.files import STDIN
from sharddsl.config import fast
from sharddsl.config.groups import RUNS
from sharddsl.config.schema import Config
from sharddsl.findings import Finding, Severity, UsageError, errors
from sharddsl.lint import Case, Judged, Report, case_of_inventory, case_of_model, cases_of_checks, judge
from sharddsl.lint.baseline import Baseline
from sharddsl.lint.fixes import SAFE
from sharddsl.lint.rules import not_formatted
from sharddsl.lint.settings import Settings, narrowed, settings_for, settings_in
from sharddsl.lint.silence import told, without_known
from sharddsl.models import PRESETS
from sharddsl.spec import Loaded, load, parse
from sharddsl.tensors import Inventory

if TYPE_CHECKING:
    from sharddsl.lint.golden import Golden

_SIZE = re.compile(r"spec\.mesh\.(?P<axis>\w+)=(?P<size>-?\d+)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to lint for, as the options say it. `overrides` name a model, run and mesh in place of the checks."""

    overrides: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    devices: int | None = None
    inventory: Inventory | None = None
    stdin_name: str | None = None
    settings_file: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: tuple[tuple[str, Severity], ...] = ()
    baseline: Baseline | None = None
    golden: Path | None = None
    """The folder of golden files."""
    write_golden: bool = False
    """Golden files are made, not compared with."""


@dataclass(frozen=True, slots=True)
class Linted:
    """What came of one spec: what is told of it, the cases that it was resolved for, and the file that it lies in.
    `golden` is its golden file as it should be, where one is asked for and layouts are known."""

    ref: str | Path
    report: Report
    cases: tuple[Case, ...]
    settings: Settings
    file: Path | None
    golden: Golden | None = None


def content_of(ref: str | Path) -> bytes | None:
    """All of stdin where that is meant; None for what lies in a file."""
    return sys.stdin.buffer.read() if ref == STDIN else None


def lint(ref: str | Path, wanted: Wanted, content: bytes | None = None) -> Linted:
    """The report on one spec. `content` stands for what the file holds; stdin has nothing else."""
    settings = _settings(ref, wanted)
    loaded, cases = _resolved(ref, wanted, settings, content)
    name = str(ref) if ref != STDIN else wanted.stdin_name or "<stdin>"
    file = loaded.paths.get(loaded.source)
    report = judge(name, loaded, cases, settings.large)
    if not_formatted.CODE in settings.codes(file):
        report = not_formatted.added(report)
    golden = None
    if wanted.golden is not None:
        report, golden = _with_golden(report, cases, file, wanted)
    linted = Linted(ref, told(report, settings, file), cases, settings, file, golden)
    return linted if wanted.baseline is None else with_baseline(linted, wanted.baseline)


def _with_golden(
    report: Report, cases: tuple[Case, ...], file: Path | None, wanted: Wanted
) -> tuple[Report, Golden | None]:
    """The report with what its golden file says, and the file as it should be. Layouts with errors are none to keep or
    to compare."""
    from sharddsl.lint.golden import golden_of
    from sharddsl.lint.rules import golden_differs

    assert wanted.golden is not None
    if file is None:
        raise UsageError("lint --golden: a golden file is named for its spec's file; --stdin-filename says which it is")
    if not report.complete or errors(finding for case in cases for finding in case.findings):
        return replace(report, unchecked=(*report.unchecked, "its golden file: there are errors")), None
    golden = golden_of(file, cases)
    return report if wanted.write_golden else golden_differs.added(report, golden, wanted.golden), golden


def orphan(golden: Path, spec: str, wanted: Wanted) -> Linted:
    """What is told of a golden file whose spec is not there."""
    from sharddsl.lint.rules import golden_differs

    settings = _settings(golden, wanted)
    report = Report(str(golden), (Judged(golden_differs.orphaned(golden, spec)),), (), (), str(golden), {})
    linted = Linted(golden, told(report, settings, golden.absolute()), (), settings, golden)
    return linted if wanted.baseline is None else with_baseline(linted, wanted.baseline)


def with_baseline(linted: Linted, baseline: Baseline) -> Linted:
    """The same without the findings that the baseline knows, which takes note of them."""
    return replace(linted, report=without_known(linted.report, baseline))


def _settings(ref: str | Path, wanted: Wanted) -> Settings:
    if wanted.settings_file is not None:
        found = settings_in(wanted.settings_file)
    else:
        path = ref if isinstance(ref, Path) else Path(wanted.stdin_name or ".") if ref == STDIN else Path()
        found = settings_for((path if ref != path else path.parent).absolute())
    return narrowed(found, wanted.select, wanted.ignore, dict(wanted.severity))


def _resolved(
    ref: str | Path, wanted: Wanted, settings: Settings, content: bytes | None
) -> tuple[Loaded, tuple[Case, ...]]:
    """The spec, and what it is resolved for: the tensors given as data, the model that the command line names, the
    file's checks, or, where it has none, the model that the settings name."""
    devices = settings.devices if wanted.devices is None else wanted.devices
    if wanted.inventory is not None:
        loaded = _loaded(ref, wanted, _sizes(wanted.overrides), content)
        known = loaded.readable.mesh is not None
        return loaded, (case_of_inventory(loaded, wanted.inventory, devices=devices),) if known else ()
    if wanted.overrides:
        return _for_model(ref, wanted, (*settings.overrides, *wanted.overrides), devices, content)
    loaded = _loaded(ref, wanted, {}, content)
    if loaded.readable.checks or not any(word.startswith("model=") for word in settings.overrides):
        return loaded, tuple(cases_of_checks(loaded, PRESETS, RUNS))
    return _for_model(ref, wanted, settings.overrides, devices, content)


def _for_model(
    ref: str | Path, wanted: Wanted, overrides: tuple[str, ...], devices: int | None, content: bytes | None
) -> tuple[Loaded, tuple[Case, ...]]:
    config = _config(ref, overrides)
    loaded = _loaded(ref, wanted, config.spec.mesh, content)
    if loaded.readable.mesh is None:
        return loaded, ()
    return loaded, (case_of_model(loaded, loaded.readable, config.model, config.run, devices=devices),)


def _loaded(ref: str | Path, wanted: Wanted, mesh: Mapping[str, int], content: bytes | None) -> Loaded:
    if ref != STDIN:
        return load(ref, rules=wanted.rules, mesh=mesh, models=PRESETS, runs=RUNS, content=content)
    content = b"" if content is None else content
    if wanted.stdin_name is not None:
        return load(Path(wanted.stdin_name), rules=wanted.rules, mesh=mesh, models=PRESETS, runs=RUNS, content=content)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"lint: stdin is not UTF-8 text (at byte {error.start})") from None
    return parse(text, "<stdin>", rules=wanted.rules, mesh=mesh, models=PRESETS, runs=RUNS)


def _config(ref: str | Path, overrides: tuple[str, ...]) -> Config:
    """The model and run that the overrides name."""
    if given := [word for word in overrides if word.startswith("spec=")]:
        raise UsageError(f"lint: {given[0]}: specs are named without `spec=`: sharddsl lint {given[0][5:]}")
    if ref == STDIN:
        ref = "llama/dp"  # any: what counts of it is read from stdin
    choice = str(ref) if isinstance(ref, str) or ref.is_absolute() else f"./{ref}"
    config = fast.read((*overrides, f"spec='{choice}'"), "train")
    if config is None:
        raise UsageError(
            f"lint: it reads plain overrides alone, such as model=llama3_8b spec.mesh.fsdp=64 run.batch=64; not "
            f"{' '.join(overrides)}"
        )
    return config


def _sizes(overrides: tuple[str, ...]) -> dict[str, int]:
    """Of axes: all that overrides can say about tensors that are given as data."""
    sizes = {}
    for override in overrides:
        match = _SIZE.fullmatch(override)
        if match is None:
            raise UsageError(f"lint --inventory: {override}: only spec.mesh.AXIS=N goes with tensors given as data")
        sizes[match["axis"]] = int(match["size"])
    return sizes


def waiting(linted: Linted) -> tuple[int, int]:
    """How many fixes there are for this spec's own text that change no layout, and how many that decide something."""
    offered = fixes_of(linted)
    safe = sum(finding.code in SAFE for finding in offered)
    return safe, len(offered) - safe


def fixes_of(linted: Linted) -> list[Finding]:
    """The findings with a fix in the spec's own text: its base's is mended where that is linted itself."""
    source = linted.report.source
    findings = (judged.finding for judged in linted.report.findings)
    return [finding for finding in findings if finding.fix and all(edit.where.source == source for edit in finding.fix)]
