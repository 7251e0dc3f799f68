"""A version of a spec, resolved for its checks or for the model that a command line names, ready to be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharddsl.cli.versions import Pair, Version
from sharddsl.config import fast
from sharddsl.config.groups import RUNS
from sharddsl.config.schema import Config
from sharddsl.findings import ShardError, UsageError, errors
from sharddsl.lint.cases import Case, case_of_model, cases_of_checks
from sharddsl.lint.differences import Side
from sharddsl.lint.settings import settings_for
from sharddsl.models import PRESETS
from sharddsl.spec import Loaded, load
from sharddsl.spec.model import Check


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line says of all specs: the model, run and mesh that take the place of checks, more rules, and how
    many devices there are."""

    overrides: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    devices: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A version's cases, and why there are none."""

    sides: tuple[Side, ...] = ()
    unchecked: str | None = None


def read(version: Version, pair: Pair, asked: Asked) -> Read:
    """The cases of one version of this pair. Raises `ShardError` for a text or a mesh with errors, `UsageError` for a
    file that cannot be read."""
    if asked.overrides:
        return _for_model(version, asked.overrides, asked)
    loaded = _loaded(version, asked, {})
    spec = loaded.checked()
    if not spec.checks and (settings := settings_for(_folder(pair))).overrides:
        return _for_model(version, settings.overrides, asked)
    if spec.mesh is None:
        return Read(unchecked=_NO_MESH)
    if not spec.checks:
        return Read(unchecked="it has no `check` line; name a model (model=…), or add `check MODEL on [AXIS=SIZE]`")
    cases = cases_of_checks(loaded, PRESETS, RUNS)
    return Read(tuple(_labelled(cases, spec.checks, loaded)))


_NO_MESH = "it has no mesh of its own, and is there to be extended"


def _folder(pair: Pair) -> Path:
    """Where the settings are looked for: upward from the spec as it is."""
    ref = None if pair.after is None else pair.after.ref
    return (ref.parent if isinstance(ref, Path) else Path()).absolute()


def _for_model(version: Version, overrides: tuple[str, ...], asked: Asked) -> Read:
    config = _config(overrides)
    loaded = _loaded(version, asked, config.spec.mesh)
    spec = loaded.checked()
    if spec.mesh is None:
        return Read(unchecked=_NO_MESH)
    case = case_of_model(loaded, spec, config.model, config.run, devices=asked.devices)
    return Read((_side(case, case.label, "", loaded),))


def _loaded(version: Version, asked: Asked, mesh: dict[str, int]) -> Loaded:
    return load(
        version.ref,
        rules=asked.rules,
        mesh=mesh,
        project=version.project,
        cwd=version.cwd,
        models=PRESETS,
        runs=RUNS,
    )


def _config(overrides: tuple[str, ...]) -> Config:
    if given := [word for word in overrides if word.startswith("spec=")]:
        raise UsageError(f"diff: {given[0]}: specs are named without `spec=`: {given[0][5:]}")
    config = fast.read((*overrides, "spec=llama/dp"), "train")  # any spec: only its sizes count, which are overrides
    if config is None:
        raise UsageError(
            f"diff: it reads plain overrides alone, such as model=llama3_8b spec.mesh.fsdp=64 run.batch=64; not "
            f"{' '.join(overrides)}"
        )
    return config


def _labelled(cases: Iterator[Case], checks: Sequence[Check], loaded: Loaded) -> Iterator[Side]:
    for case, check in zip(cases, checks, strict=True):
        yield _side(case, _text(check), _text(check, sizes=False), loaded)


def _side(case: Case, label: str, stem: str, loaded: Loaded) -> Side:
    if case.layout is None:
        raise ShardError(case.findings, loaded.sources)
    wrong = tuple(f"{finding.code} {finding.name}" for finding in errors(case.findings))
    return Side(label, stem, case.layout, wrong)


def _text(check: Check, sizes: bool = True) -> str:
    """The check as a spec has it, without the word: `llama3_8b on [fsdp=64] batch 64 seq 8192`."""
    mesh = ", ".join(f"{axis.name}={axis.size}" for axis in check.mesh or ())
    parts = {
        "on": f"[{mesh}]" if sizes and check.mesh is not None else None,
        "target": None if check.target is None else f'"{check.target}"',
        "batch": check.batch,
        "seq": check.seq,
        "mode": check.mode if check.mode != "train" else None,
        "run": check.run,
    }
    return " ".join([check.model, *(f"{name} {value}" for name, value in parts.items() if value is not None)])
