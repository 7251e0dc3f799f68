"""The mesh: its axes, their sizes, and what a command-line override makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sharddsl.findings import NOWHERE, Location, ShardError, Span, UsageError
from sharddsl.spec.model import Mesh, MeshAxis, Spec
from sharddsl.spec.report import Report, nearest
from sharddsl.spec.scope import MOST_AXES, RESERVED
from sharddsl.syntax import tree

LARGEST = 2**31 - 1
"""The largest size of an axis, batch or sequence that is taken for one."""


def mesh_of(spec: Spec) -> Mesh:
    """The spec's mesh. Raises `UsageError` for a fragment, which has none."""
    if spec.mesh is None:
        raise UsageError(f"{spec.name} has no mesh: it is a fragment, to be extended by a spec that has one")
    return spec.mesh


def lower_mesh(mesh: tree.Mesh, report: Report) -> Mesh | None:
    """The axes as written; None, with findings, where they are no mesh."""
    before = len(report.findings)
    if not mesh.axes:
        report.add("SHD007", mesh.span, "a mesh without axes", "name at least one: `mesh: [dp=-1]`")
    if len(mesh.axes) > MOST_AXES:
        report.add("SHD007", mesh.span, f"a mesh of {len(mesh.axes)} axes: at most {MOST_AXES} are read")
        return None
    first: dict[str, Span] = {}
    for axis in mesh.axes:
        if axis.name in first:
            related = ((report.at(first[axis.name]), "the first"),)
            report.add("SHD003", axis.span, f"axis `{axis.name}` stands twice in the mesh", related=related)
        elif axis.name in RESERVED:
            message = f"`{axis.name}` is a word of the language: an axis needs another name"
            report.add("SHD003", report.find(axis.name, axis.span), message)
        elif check_size(axis.name, axis.size, axis.span, report):
            _check_dcn(axis.name, axis.size, axis.dcn, axis.span, report)
        first.setdefault(axis.name, axis.span)
    check_inferred([(axis.name, axis.size, report.at(axis.span)) for axis in mesh.axes], report)
    if len(report.findings) > before:
        return None
    return Mesh(
        axes=tuple(
            MeshAxis(name=axis.name, size=axis.size, dcn=axis.dcn, where=report.at(axis.span)) for axis in mesh.axes
        ),
        allow_idle=mesh.allow_idle,
        where=report.at(mesh.span),
    )


def check_size(name: str, size: int, span: Span, report: Report) -> bool:
    if size == -1 or 1 <= size <= LARGEST:
        return True
    if size > LARGEST:
        report.add("SHD104", span, f"axis `{name}`: no machine has as many devices (at most {LARGEST:,})")
    else:
        message = f"axis `{name}` of size {size}: a size is at least 1, or -1 for what the other axes leave"
        report.add("SHD104", span, message)
    return False


def _check_dcn(name: str, size: int, dcn: int | str | None, span: Span, report: Report) -> None:
    if not isinstance(dcn, int):
        return
    if dcn < 1:
        report.add("SHD107", span, f"`@dcn({dcn})`: the factor of `{name}` that crosses hosts is at least 1")
    elif size != -1 and size % dcn:
        message = f"`{name}={size} @dcn({dcn})`: {dcn} does not divide {size}"
        factors = ", ".join(str(n) for n in range(1, min(size, 4096) + 1) if size % n == 0)
        report.add("SHD107", span, message, f"factors of {size}: {factors}")


def check_inferred(axes: Sequence[tuple[str, int, Location | None]], report: Report) -> None:
    """SHD104 where more than one axis is -1; the last of them stands in the report's source."""
    inferred = [(name, where) for name, size, where in axes if size == -1]
    if len(inferred) > 1:
        names = " and ".join(f"`{name}`" for name, _ in inferred)
        (_, first), (_, last) = inferred[0], inferred[-1]
        related = ((first, "the first"),) if first is not None and first.span != NOWHERE else ()
        message = f"{names} are all -1: the device count can fix one of them only"
        span = NOWHERE if last is None else last.span
        report.add("SHD104", span, message, "give all but one a size", related=related)


def renamed(mesh: Mesh, names: Mapping[str, str]) -> Mesh:
    """The mesh under the names that `extends … with` gives its axes."""
    axes = (axis.model_copy(update={"name": names.get(axis.name, axis.name)}) for axis in mesh.axes)
    return mesh.model_copy(update={"axes": tuple(axes)})


def override_reports(sizes: Mapping[str, int]) -> dict[str, Report]:
    """For each axis a source of its own, `spec.mesh.fsdp`, whose text is the option: `spec.mesh.fsdp=4`."""
    return {name: Report(f"{_OPTION}{name}", f"{_OPTION}{name}={size}") for name, size in sizes.items()}


_OPTION = "spec.mesh."


def override(
    mesh: Mesh | None, sizes: Mapping[str, int], reports: Mapping[str, Report], called: Mapping[str, str] | None = None
) -> Mesh | None:
    """The mesh with other sizes; None, with findings in the axis's report, where an axis is not in it or a size is
    none. `called` has the axes of bases that go by another name in the mesh."""
    if mesh is None:
        name = next(iter(sizes))
        message = f"this spec has no mesh whose `{name}` could be changed"
        help = "extend it in a file of its own, with `mesh: [...]`, and use that"
        reports[name].add("SHD101", _whole(reports[name]), message, help)
        return None
    for name, size in sizes.items():
        if name not in mesh.names:
            _report_unknown(name, size, mesh, reports[name], (called or {}).get(name))
        else:
            check_size(name, size, _whole(reports[name]), reports[name])
    if any(report.findings for report in reports.values()):
        return None
    axes = tuple(_resized(axis, sizes, reports) for axis in mesh.axes)
    for axis in axes:
        if axis.name in sizes:
            _check_dcn(axis.name, axis.size, axis.dcn, _whole(reports[axis.name]), reports[axis.name])
    overridden_last = sorted(axes, key=lambda axis: axis.name in sizes)
    last = [axis.name for axis in overridden_last if axis.name in sizes and axis.size == -1]
    if last:
        check_inferred([(axis.name, axis.size, axis.where) for axis in overridden_last], reports[last[-1]])
    return None if any(report.findings for report in reports.values()) else mesh.model_copy(update={"axes": axes})


def _whole(report: Report) -> Span:
    return Span(1, 1, 1, 1 + len(report.text))


def _report_unknown(name: str, size: int, mesh: Mesh, report: Report, called: str | None) -> None:
    """SHD101: what the axis is called here, where a base has it under that name; else the nearest axes, and all."""
    span = Span(1, 1 + len(_OPTION), 1, 1 + len(_OPTION) + len(name))
    if called in mesh.names:
        help = f"`{name}` of the base is called `{called}` here: {_OPTION}{called}={size}"
        report.add("SHD101", span, f"unknown axis `{name}`", help)
        return
    every = f"the mesh has: {', '.join(mesh.names)}" if nearest(name, mesh.names) else None
    report.unknown("SHD101", span, name, "axis", mesh.names, or_else=every)


def _resized(axis: MeshAxis, sizes: Mapping[str, int], reports: Mapping[str, Report]) -> MeshAxis:
    if axis.name not in sizes:
        return axis
    report = reports[axis.name]
    return axis.model_copy(update={"size": sizes[axis.name], "where": report.at(_whole(report))})


def with_mesh(spec: Spec, sizes: Mapping[str, int]) -> Spec:
    """The spec with other axis sizes. Raises `ShardError` for an axis that its mesh has not, or a size that is none."""
    if not sizes:
        return spec
    reports = override_reports(sizes)
    mesh = override(spec.mesh, sizes, reports)
    findings = [finding for report in reports.values() for finding in report.findings]
    if findings:
        raise ShardError(findings, {report.source: report.text for report in reports.values()})
    return spec.model_copy(update={"mesh": mesh})
