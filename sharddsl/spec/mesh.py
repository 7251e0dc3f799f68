"""The mesh: its axes, their sizes, and what a command-line override makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sharddsl.findings import NOWHERE, ShardError, Span, UsageError
from sharddsl.spec.model import Mesh, MeshAxis, Spec
from sharddsl.spec.report import Report
from sharddsl.spec.scope import MOST_AXES, RESERVED
from sharddsl.syntax import tree

OVERRIDES = "mesh override"
"""The source that findings about overridden sizes point into."""

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
    check_inferred([(axis.name, axis.size, axis.span) for axis in mesh.axes], report)
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


def check_inferred(axes: Sequence[tuple[str, int, Span]], report: Report) -> None:
    """SHD104 where more than one axis is -1."""
    inferred = [(name, span) for name, size, span in axes if size == -1]
    if len(inferred) > 1:
        names = " and ".join(f"`{name}`" for name, _ in inferred)
        related = ((report.at(inferred[0][1]), "the first"),) if inferred[0][1] != NOWHERE else ()
        message = f"{names} are all -1: the device count can fix one of them only"
        report.add("SHD104", inferred[-1][1], message, "give all but one a size", related=related)


def renamed(mesh: Mesh, names: Mapping[str, str]) -> Mesh:
    """The mesh under the names that `extends … with` gives its axes."""
    axes = (axis.model_copy(update={"name": names.get(axis.name, axis.name)}) for axis in mesh.axes)
    return mesh.model_copy(update={"axes": tuple(axes)})


def override_report(sizes: Mapping[str, int]) -> tuple[Report, dict[str, Span]]:
    """A source for overridden sizes, whose text is `fsdp=4, mp=2`, and each axis's span in it."""
    parts = [f"{name}={size}" for name, size in sizes.items()]
    spans, column = {}, 1
    for name, part in zip(sizes, parts, strict=True):
        spans[name] = Span(1, column, 1, column + len(part))
        column += len(part) + len(", ")
    return Report(OVERRIDES, ", ".join(parts)), spans


def override(mesh: Mesh | None, sizes: Mapping[str, int], report: Report, spans: Mapping[str, Span]) -> Mesh | None:
    """The mesh with other sizes; None, with findings, where an axis is not in it or a size is none."""
    if mesh is None:
        message = f"this spec has no mesh whose `{next(iter(sizes))}` could be changed"
        help = "extend it in a file of its own, with `mesh: [...]`, and use that"
        report.add("SHD101", next(iter(spans.values())), message, help)
        return None
    before = len(report.findings)
    for name, size in sizes.items():
        if name not in mesh.names:
            start = spans[name]
            span = Span(start.line, start.column, start.line, start.column + len(name))
            report.unknown("SHD101", span, name, "axis", mesh.names)
        else:
            check_size(name, size, spans[name], report)
    if len(report.findings) > before:
        return None
    axes = tuple(_resized(axis, sizes, report, spans) for axis in mesh.axes)
    for axis in axes:
        if axis.name in sizes:
            _check_dcn(axis.name, axis.size, axis.dcn, spans[axis.name], report)
    overridden_last = sorted(axes, key=lambda axis: axis.name in sizes)
    check_inferred([(axis.name, axis.size, spans.get(axis.name, NOWHERE)) for axis in overridden_last], report)
    return None if len(report.findings) > before else mesh.model_copy(update={"axes": axes})


def _resized(axis: MeshAxis, sizes: Mapping[str, int], report: Report, spans: Mapping[str, Span]) -> MeshAxis:
    if axis.name not in sizes:
        return axis
    return axis.model_copy(update={"size": sizes[axis.name], "where": report.at(spans[axis.name])})


def with_mesh(spec: Spec, sizes: Mapping[str, int]) -> Spec:
    """The spec with other axis sizes. Raises `ShardError` for an axis that its mesh has not, or a size that is none."""
    if not sizes:
        return spec
    report, spans = override_report(sizes)
    mesh = override(spec.mesh, sizes, report, spans)
    if report.findings:
        raise ShardError(report.findings, {report.source: report.text})
    return spec.model_copy(update={"mesh": mesh})
