"""`check` and `expect`: one case each, validated and carried; what they measure comes from the compiled program."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sharddsl.findings import Span
from sharddsl.spec.evaluate import MODES
from sharddsl.spec.expressions import lower_condition
from sharddsl.spec.mesh import LARGEST, check_inferred, check_size
from sharddsl.spec.model import Check, CheckAxis, Condition, Mesh
from sharddsl.spec.scope import Scope
from sharddsl.spec.targets import problem_of
from sharddsl.syntax import tree


def lower_expects(expects: Sequence[tree.Expect], scope: Scope) -> tuple[Condition, ...]:
    lowered = (lower_condition(expect.condition, scope, "expect") for expect in expects)
    return tuple(condition for condition in lowered if condition is not None)


def lower_check(
    check: tree.Check,
    mesh: Mesh | None,
    models: Collection[str] | None,
    runs: Collection[str] | None,
    scope: Scope,
) -> Check | None:
    """The check; None, with findings, where it is wrong.

    `mesh` is the file's; None where it has none or a wrong one, and then axes are not looked up. `models` and
    `runs` are the names of those that are known; None where the caller does not know them.
    """
    report = scope.report
    before = len(report.findings)
    if models is not None and check.model not in models:
        report.unknown("SHD002", report.find(check.model, check.span), check.model, "model", models)
    if runs is not None and check.run is not None and check.run not in runs:
        report.unknown("SHD002", report.find(check.run, check.span), check.run, "run", runs)
    for axis in check.mesh or ():
        _check_axis(axis, mesh, scope)
    if len(report.findings) == before:
        _check_mesh(check, mesh, scope)
    if check.target is not None and (problem := problem_of(check.target)) is not None:
        report.add("SHD107", report.find(check.target, check.span), *problem)
    for what, size in (("batch", check.batch), ("seq", check.seq)):
        if size is not None and not 1 <= size <= LARGEST:
            span = report.find(what, check.span)
            report.add("SHD007", span, f"`{what}` must be a positive number, at most {LARGEST:,}")
    if check.mode is not None and check.mode not in MODES:
        report.unknown("SHD002", report.find(check.mode, check.span), check.mode, "mode", MODES)
    expect = lower_expects(check.body, scope)
    if len(report.findings) > before:
        return None
    return Check.model_validate(
        {
            "model": check.model,
            "mesh": None if check.mesh is None else tuple(CheckAxis(name=a.name, size=a.size) for a in check.mesh),
            "target": check.target,
            "batch": check.batch,
            "seq": check.seq,
            "mode": check.mode or "train",
            "run": check.run,
            "expect": expect,
            "where": scope.at(check.span),
        }
    )


def _check_axis(axis: tree.SizedAxis, mesh: Mesh | None, scope: Scope) -> None:
    report = scope.report
    if mesh is not None and axis.name not in mesh.names:
        report.unknown("SHD101", report.find(axis.name, axis.span), axis.name, "axis", mesh.names)
    else:
        check_size(axis.name, axis.size, axis.span, report)


def _check_mesh(check: tree.Check, mesh: Mesh | None, scope: Scope) -> None:
    """What the sizes of a check make of the file's mesh: an axis twice, two of -1, `@dcn` factors."""
    report = scope.report
    first: dict[str, Span] = {}
    sizes: dict[str, int] = {}
    for axis in check.mesh or ():
        if axis.name in first:
            related = ((report.at(first[axis.name]), "the first"),)
            report.add("SHD003", axis.span, f"axis `{axis.name}` stands twice in `on [...]`", related=related)
            continue
        first[axis.name], sizes[axis.name] = axis.span, axis.size
    merged = {axis.name: axis.size for axis in mesh.axes} | sizes if mesh is not None else sizes
    check_inferred([(name, size, report.at(first.get(name, check.span))) for name, size in merged.items()], report)
    for axis_of_file in mesh.axes if mesh is not None else ():
        size, dcn = sizes.get(axis_of_file.name), axis_of_file.dcn
        if size is not None and size > 0 and isinstance(dcn, int) and size % dcn:
            message = f"`{axis_of_file.name}={size}`: the mesh has @dcn({dcn}) on it, and {dcn} does not divide {size}"
            report.add("SHD107", first[axis_of_file.name], message)
