"""From a reference or a text to a `Spec`: the one way in. Everything that can be found wrong is found in one run."""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sharddsl.findings import Finding, ShardError, UsageError, errors
from sharddsl.search import SUFFIX, SearchPath, absolute, is_name, read, search_path
from sharddsl.spec.chain import Unit, chain, unit_from, unit_of
from sharddsl.spec.checks import lower_check, lower_expects
from sharddsl.spec.inherit import MeshView, composed, effective_meshes, report_renames
from sharddsl.spec.lets import define_lets, report_unused
from sharddsl.spec.mesh import override, override_reports
from sharddsl.spec.model import Check, Mesh, Rule, Spec
from sharddsl.spec.report import Report, nearest, suggestion
from sharddsl.spec.rules import lower_rules
from sharddsl.spec.scope import Scope
from sharddsl.syntax import parse_rule, tree


@dataclass(frozen=True)
class Loaded:
    """What a file, its bases and the overrides say.

    `spec` is None where a finding is an error. `readable` is then what the other statements say, in which further
    errors may be looked for, and nothing else. `source` is what the file or text itself is called; `sources` maps each
    source's name to its text, and `paths` those that are files to where they lie.
    """

    source: str
    spec: Spec | None
    readable: Spec
    findings: tuple[Finding, ...]
    sources: Mapping[str, str]
    paths: Mapping[str, Path]

    def checked(self) -> Spec:
        """The spec. Raises `ShardError` with every finding if there is an error among them."""
        if self.spec is None:
            raise ShardError(self.findings, self.sources)
        return self.spec


def load(
    ref: str | Path,
    *,
    rules: Sequence[str] = (),
    mesh: Mapping[str, int] | None = None,
    project: Path | None = None,
    cwd: Path | None = None,
    models: Collection[str] | None = None,
    runs: Collection[str] | None = None,
    content: bytes | None = None,
) -> Loaded:
    """The spec that `ref` names: `llama/fsdp` on the search path, or a file (`x.shard`, `./x.shard`, a `Path`).

    `rules` are appended after the file's own, `mesh` replaces axis sizes, `project` is where `specs/` and what may be
    extended lie (by default the nearest folder upward with a `pyproject.toml`), `cwd` is what relative paths start
    from, and `models` and `runs` are the names that a `check` may use (by default any). `content` stands for what
    the file holds, as an editor has it that has not saved it yet. Raises `UsageError` where there is no such spec or it
    cannot be read; all else is a finding.
    """
    start = search_path(None, project, cwd)
    if isinstance(ref, str) and (is_name(ref) or not ref):
        path, search, name = _named(ref, start), start, ref
    else:
        path = absolute(Path(ref), start.cwd)
        search = search_path(path.parent, project, cwd)
        name = search.shown(path)
    data = read(path) if content is None else content
    if isinstance(data, str):
        raise UsageError(f"cannot read the spec {name}: {data}{_other_than(path, ref, start)}")
    with _collector_paused():
        root = unit_from(data, search.shown(path), path)
        return _assembled(name, root, search, _Options(rules, mesh or {}, models, runs))


def parse(
    text: str,
    source: str = "<text>",
    *,
    rules: Sequence[str] = (),
    mesh: Mapping[str, int] | None = None,
    project: Path | None = None,
    cwd: Path | None = None,
    models: Collection[str] | None = None,
    runs: Collection[str] | None = None,
) -> Loaded:
    """The spec that a text states, as if it lay in a file in the working folder. The rest is as in `load`."""
    search = search_path(None, project, cwd)
    with _collector_paused():
        return _assembled(source, unit_of(text, source, None), search, _Options(rules, mesh or {}, models, runs))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No garbage collection: a spec's tree and values hold no cycles, and walking them over and over while they grow
    takes longer than making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _named(name: str, search: SearchPath) -> Path:
    """The file of a name. Raises `UsageError` with the nearest and the available names."""
    for path in search.candidates(name):
        if not search.allows(path):
            raise UsageError(f"the spec {name} is a link out of the project ({search.project}): copy the file instead")
        return path
    known = search.names()
    remedies = [suggestion(nearest(name, known), known)]
    if os.path.isfile(search.cwd / f"{name}{SUFFIX}"):
        remedies.insert(0, f"a file is named by its path: ./{name}{SUFFIX}")
    elif remedies[0] is not None and remedies[0].startswith("did"):
        remedies.append("known: " + ", ".join(known))
    raise UsageError(f"unknown spec `{name}`: " + "; ".join(remedy for remedy in remedies if remedy))


def _other_than(missing: Path, ref: str | Path, search: SearchPath) -> str:
    """What may have been meant by a path where there is nothing."""
    if os.path.lexists(missing):
        return ""
    name = str(ref).removesuffix(SUFFIX)
    if search.candidates(name):
        return f"; the spec of that name is written without `{SUFFIX}`: {name}"
    near = nearest(missing.name, (p.name for p in missing.parent.glob(f"*{SUFFIX}"))) if missing.parent.is_dir() else []
    return f"; did you mean {search.shown(missing.parent / near[0])}?" if near else ""


@dataclass(frozen=True, slots=True)
class _Options:
    """What `load` and `parse` are asked for beside the text."""

    rules: Sequence[str]
    mesh: Mapping[str, int]
    models: Collection[str] | None
    runs: Collection[str] | None


def _assembled(name: str, root: Unit, search: SearchPath, options: _Options) -> Loaded:
    """The text and its bases, lowered from the farthest base to the command line."""
    units, whole = chain(root, search)
    views = effective_meshes(units, whole)
    scopes = _scopes(units, views)
    per_file = [lower_rules(unit.file.statements, scope) for unit, scope in zip(units, scopes, strict=True)]
    appended = [_override_rule(text, f"--rule {n}", scopes[0]) for n, text in enumerate(options.rules, start=1)]
    checks = _checks(root.file, views[0].mesh, options, scopes[0])
    expects = lower_expects(_all(root.file, tree.Expect), scopes[0])
    report_renames(units, views, [scope.used_axes for scope in scopes])
    if root.complete:
        report_unused(_all(root.file, tree.Let), scopes[0])
    called = {old: new for names in reversed(composed(units)) for old, new in names.items()}  # the nearest base's wins
    mesh, resizing = _resized(views[0], options.mesh, called)
    own = [root.report, *(report for _, report in appended), *resizing]
    bases = [unit.report for unit in units[1:]]
    findings = _findings(own, bases)
    rules = (
        *(rule for found in reversed(per_file) for rule in found),
        *(r for found, _ in appended for r in found),
    )
    readable = Spec(name=name, mesh=mesh, rules=rules, checks=checks, expect=expects)
    return Loaded(
        source=root.report.source,
        spec=None if errors(findings) else readable,
        readable=readable,
        findings=findings,
        sources={report.source: report.text for report in (*own, *bases)},
        paths={unit.report.source: unit.path for unit in units if unit.path is not None},
    )


def _scopes(units: Sequence[Unit], views: Sequence[MeshView]) -> list[Scope]:
    """What the names in each file stand for, its `let`s defined."""
    mesh = views[0].mesh
    axes = None if mesh is None else frozenset(mesh.names)
    scopes = []
    for origin, (unit, view, renames) in enumerate(zip(units, views, composed(units), strict=True)):
        scope = Scope(unit.report, renames=renames, axes=axes, origin=origin)
        define_lets(_all(unit.file, tree.Let), view.mesh.names if view.mesh is not None else (), scope)
        scopes.append(scope)
    return scopes


def _resized(view: MeshView, sizes: Mapping[str, int], called: Mapping[str, str]) -> tuple[Mesh | None, list[Report]]:
    """The mesh with sizes from outside, and what is wrong with those; neither where the mesh itself is not known."""
    if not sizes or not view.known:
        return view.mesh, []
    reports = override_reports(sizes)
    return override(view.mesh, sizes, reports, called), list(reports.values())


_Statement = TypeVar("_Statement", bound=tree.Statement)


def _all(file: tree.File, kind: type[_Statement]) -> list[_Statement]:
    return [statement for statement in file.statements if isinstance(statement, kind)]


def _override_rule(text: str, source: str, root: Scope) -> tuple[tuple[Rule, ...], Report]:
    """A rule from the command line: read like a line of the root file, whose `let`s it may use."""
    rule, findings = parse_rule(text, source)
    report = Report(source, text, list(findings))
    scope = Scope(report, lets=root.lets, axes=root.axes, origin=-1, used_lets=root.used_lets)
    return lower_rules((rule,) if rule is not None else (), scope), report


def _checks(file: tree.File, mesh: Mesh | None, options: _Options, scope: Scope) -> tuple[Check, ...]:
    lowered = (lower_check(check, mesh, options.models, options.runs, scope) for check in _all(file, tree.Check))
    return tuple(check for check in lowered if check is not None)


def _findings(own: Sequence[Report], bases: Sequence[Report]) -> tuple[Finding, ...]:
    """All findings once. Of the bases only errors count: their warnings are their own authors' to read."""
    told = [finding for report in own for finding in report.findings]
    return tuple(dict.fromkeys([*told, *errors(finding for report in bases for finding in report.findings)]))
