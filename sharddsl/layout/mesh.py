"""From the mesh of a spec to sizes: -1 from the device count, the product against the devices, `@dcn` factors."""

from __future__ import annotations

from math import prod

from sharddsl.findings import Finding, Location
from sharddsl.layout.model import MeshSizes
from sharddsl.layout.words import choices, divisors
from sharddsl.spec.model import Mesh

_MESHES_SHOWN = 4


def size_mesh(
    mesh: Mesh, *, devices: int | None = None, smallest: bool = False
) -> tuple[MeshSizes | None, tuple[Finding, ...]]:
    """The sizes of this mesh on `devices` devices (None: not known, so their number is taken to be the product).

    An axis of -1 takes what the others leave of the devices; without a device count it is an error with a remedy, or 1
    if `smallest` (a command that makes its own virtual devices). None with error findings where there is no answer.
    """
    open_axes = [axis for axis in mesh.axes if axis.size == -1]
    if len(open_axes) > 1:
        names = ", ".join(axis.name for axis in open_axes)
        return None, (
            _error(
                "SHD104",
                f"more than one axis is -1 ({names}): only one size can be inferred",
                open_axes[1].where or mesh.where,
                f"give all but one of them a size: {_override(open_axes[0].name, 1)}",
            ),
        )
    sizes = {axis.name: axis.size for axis in mesh.axes}
    rest = prod(size for size in sizes.values() if size != -1)
    if rest == 0:
        zero = next(axis for axis in mesh.axes if axis.size == 0)
        return None, (
            _error(
                "SHD104", f"axis {zero.name} has size 0", zero.where or mesh.where, "an axis has one device or more"
            ),
        )
    inferred = open_axes[0].name if open_axes else None
    if inferred is not None:
        if devices is None and not smallest:
            return None, (
                _error(
                    "SHD104",
                    f"{inferred}=-1 cannot be inferred: the number of devices is not known",
                    open_axes[0].where or mesh.where,
                    f"give it a size: {_override(inferred, 8)}",
                ),
            )
        if devices is not None and (devices % rest or devices < rest):
            return None, (_not_whole(mesh, inferred, rest, devices),)
        sizes[inferred] = 1 if devices is None else devices // rest
    product = prod(sizes.values())
    if devices is not None and product != devices and not (mesh.allow_idle and product < devices):
        return None, (_wrong_product(mesh, sizes, devices),)
    dcn, findings = _dcn(mesh, sizes)
    if findings:
        return None, findings
    return MeshSizes(sizes, dcn, devices, inferred), ()


def _error(code: str, message: str, where: Location | None, help_: str) -> Finding:
    return Finding(code, "error", message, where, help=help_)


def _override(axis: str, size: int) -> str:
    return f"spec.mesh.{axis}={size}"


def _not_whole(mesh: Mesh, inferred: str, rest: int, devices: int) -> Finding:
    others = {axis.name: axis.size for axis in mesh.axes if axis.name != inferred}
    shown = " * ".join(f"{name}={size}" for name, size in others.items())
    wrong = "is not a whole number" if devices > rest else "is less than one"
    help_ = _meshes_that_work(mesh, others | {inferred: 1}, devices)
    where = next(axis.where for axis in mesh.axes if axis.name == inferred) or mesh.where
    return _error("SHD104", f"{inferred}=-1 cannot be inferred: {devices} devices over {shown} {wrong}", where, help_)


def _wrong_product(mesh: Mesh, sizes: dict[str, int], devices: int) -> Finding:
    product = prod(sizes.values())
    shown = " * ".join(f"{name}={size}" for name, size in sizes.items())
    message = f"the mesh takes {_devices(product)} ({shown}), and there {'is' if devices == 1 else 'are'} {devices}"
    help_ = _meshes_that_work(mesh, sizes, devices)
    if product < devices:
        message += f": {devices - product} would be idle"
        help_ += "\nor say that this is meant: `mesh: [...] allow_idle`"
    else:
        help_ += f"\nor run on {_devices(product)} instead of {_devices(devices)}"
    return _error("SHD103", message, mesh.where, help_)


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _meshes_that_work(mesh: Mesh, sizes: dict[str, int], devices: int) -> str:
    """Meshes of this shape on this many devices: one axis changed, the others kept; then everything on one axis."""
    found: list[str] = []
    for name in _by_size(sizes):
        others = prod(size for other, size in sizes.items() if other != name)
        if devices % others == 0:
            found.append(_written(mesh, sizes | {name: devices // others}))
    for name in _by_size(sizes):
        kept = {other: size for other, size in sizes.items() if other != name}
        while kept and devices % prod(kept.values()):
            largest = max(kept, key=lambda axis: kept[axis])
            kept[largest] = max(d for d in divisors(devices, kept[largest]) if d < kept[largest] or d == 1)
            if kept[largest] == 1 and prod(kept.values()) == 1:
                break
        found.append(_written(mesh, sizes | kept | {name: devices // prod(kept.values())}))
    unique = list(dict.fromkeys(found))[:_MESHES_SHOWN]
    return f"meshes of this shape for {devices}: " + "; ".join(unique)


def _by_size(sizes: dict[str, int]) -> list[str]:
    return sorted(sizes, key=lambda axis: -sizes[axis])


def _written(mesh: Mesh, sizes: dict[str, int]) -> str:
    """In the mesh's order, which counts."""
    axes = (f"{axis.name}={sizes[axis.name]}{'' if axis.dcn is None else ' @dcn'}" for axis in mesh.axes)
    return f"[{', '.join(axes)}]"


def _dcn(mesh: Mesh, sizes: dict[str, int]) -> tuple[dict[str, int], tuple[Finding, ...]]:
    """The factor of each axis that crosses the slow network. A factor that does not divide its axis is an error: the
    part inside a slice would not be whole."""
    factors: dict[str, int] = {}
    findings: list[Finding] = []
    for axis in mesh.axes:
        if axis.dcn is None:
            continue
        size = sizes[axis.name]
        factor = size if axis.dcn == "whole" else axis.dcn
        factors[axis.name] = factor
        if size % factor:
            carriers = [name for name, other in sizes.items() if other % factor == 0]
            help_ = f"factors that divide {axis.name}={size}: {choices(divisors(size, size))}"
            if carriers:
                carrier = max(carriers, key=lambda name: sizes[name])
                help_ += f"\nor let another axis cross: {carrier}={sizes[carrier]} @dcn({factor})"
            help_ += "\nor leave the tag out, for a mesh that knows no slow network"
            findings.append(
                _error(
                    "SHD107",
                    f"@dcn({factor}) does not divide {axis.name}={size}: "
                    f"each slice would hold {size}/{factor} of the axis",
                    axis.where or mesh.where,
                    help_,
                )
            )
    return factors, tuple(findings)
