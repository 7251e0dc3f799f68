"""Findings about the processes that feed a mesh: how they share its devices, and the rows that each of them loads."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm, prod

from sharddsl.findings import Finding, Location
from sharddsl.layout.decide import BATCH, Decision
from sharddsl.layout.model import OPEN
from sharddsl.layout.problems import NotDivisible
from sharddsl.layout.processes import parts_per_process
from sharddsl.layout.resolution import Resolution
from sharddsl.layout.words import choices, divisors
from sharddsl.spec.model import Axes


def findings(resolution: Resolution) -> tuple[Finding, ...]:
    """All findings about processes; none where they are not known, or there is one only."""
    hosts = resolution.hosts
    if hosts is None or hosts < 2:
        return ()
    return tuple(devices_of_processes(resolution, hosts)) or tuple(rows_of_processes(resolution, hosts))


# --------------------------------------------------------------------------------------------------------------- SHD107


def devices_of_processes(resolution: Resolution, hosts: int) -> Iterator[Finding]:
    """SHD107: processes that cannot have as many devices each, or `@dcn` factors that they do not make up."""
    mesh, written = resolution.mesh, resolution.spec.mesh
    groups = prod(mesh.dcn.values())
    if mesh.size % hosts and mesh.devices in {None, mesh.size}:
        yield Finding(
            "SHD107",
            "error",
            f"{hosts} processes cannot share the {mesh.size} devices of {mesh} evenly",
            None if written is None else written.where,
            help=f"numbers of processes that can: {choices(divisors(mesh.size, max(hosts, 64)))}\n"
            f"or let the sizes of the axes multiply to a multiple of {hosts}",
        )
    elif groups > 1 and hosts % groups:
        crossing = [name for name, factor in mesh.dcn.items() if factor > 1]
        said = "*".join(f"{name} @dcn({mesh.dcn[name]})" for name in crossing)
        other = next((name for name, size in mesh.sizes.items() if size % hosts == 0), None)
        example = "" if other is None else f", as in {other}={mesh.sizes[other]} @dcn({hosts})"
        yield Finding(
            "SHD107",
            "error",
            f"the slow network has {groups} parts ({said}), which {hosts} processes cannot be: each is within one part",
            _axis_place(resolution, crossing[0]),
            help=f"let the @dcn factors multiply to {choices([n for n in divisors(hosts, hosts) if n > 1])}{example}\n"
            "or leave the tag out, for a mesh that knows no slow network",
        )


def _axis_place(resolution: Resolution, name: str) -> Location | None:
    mesh = resolution.spec.mesh
    if mesh is None:
        return None
    return next((axis.where for axis in mesh.axes if axis.name == name), None) or mesh.where


# --------------------------------------------------------------------------------------------------------------- SHD308


def rows_of_processes(resolution: Resolution, hosts: int) -> Iterator[Finding]:
    """SHD308: processes that own overlapping parts of the batch, so that none can say which rows to load. Yields to
    a batch that is not whole per device (SHD302)."""
    if _batch_is_uneven(resolution):
        return
    for decision in _inputs(resolution):
        axes = _batch_axes(decision)
        if not axes or parts_per_process(axes, resolution.mesh, hosts) is not None:
            continue
        ways = resolution.mesh.ways(axes)
        yield Finding(
            "SHD308",
            "error",
            f"{hosts} processes do not own whole, equal parts of the {ways} parts of the batch "
            f"({'*'.join(axes)}={ways})",
            _batch_place(decision),
            help="let the axes of the batch come first in the mesh, with a size that is a multiple or a divisor of "
            f"{hosts}",
            tensor=decision.example.name,
            dim=BATCH,
            count=len(resolution.tensors_of(decision)),
        )
        return


def batch_sizes(batch: int, resolution: Resolution) -> str:
    """The batch sizes that this mesh allows, nearest first, and the rows that each process feeds, now and then.
    `batch` is that of a whole step."""
    splits = (_batch_axes(decision) for decision in resolution.decided)
    each, accum = lcm(*(resolution.mesh.ways(axes) for axes in splits)), microbatches(batch, resolution)
    ways = each * accum
    below = batch // ways * ways
    sizes = [size for size in (below, below + ways, below + 2 * ways) if size]
    under = f" with accum={accum}" if accum > 1 else ""
    text = f"batch sizes that this mesh allows{under} are multiples of {ways}: {', '.join(map(str, sizes))}"
    if accum > 1 and batch % each == 0:
        text += f"\nor, for batch {batch}, accum in {choices(divisors(batch // each, batch // each))}"
    hosts, inputs = resolution.hosts, next(_inputs(resolution), None)
    if hosts is None or hosts < 2 or inputs is None:
        return text
    axes = _batch_axes(inputs)
    parts, of = parts_per_process(axes, resolution.mesh, hosts), resolution.mesh.ways(axes)
    if parts is None:
        return text
    if batch * parts % of == 0:
        text += f"\nat {batch}, each of {hosts} processes feeds {_rows(batch * parts // of)} for {parts} of {of} parts"
    return f"{text}\nat {below + ways}, each of {hosts} processes feeds {_rows((below + ways) * parts // of)}"


def microbatches(batch: int, resolution: Resolution) -> int:
    """Into how many parts, one after another, a step's `batch` is cut: activations have the rows of one."""
    rows = (
        size
        for tensor in resolution.inventory.tensors
        if tensor.namespace == "act"
        for name, size in zip(tensor.dims, tensor.shape, strict=True)
        if name == BATCH and size
    )
    return batch // next(rows, batch)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _batch_is_uneven(resolution: Resolution) -> bool:
    return any(
        isinstance(problem, NotDivisible) and decision.example.dims[problem.dim] == BATCH
        for decision in resolution.decided
        for problem in decision.problems
    )


def _inputs(resolution: Resolution) -> Iterator[Decision]:
    for decision in resolution.decided:
        if decision.example.namespace == "batch" and BATCH in decision.example.dims:
            yield decision


def _batch_axes(decision: Decision) -> tuple[str, ...]:
    """The axes that split the batch of these tensors."""
    if decision.assigned is None or BATCH not in decision.example.dims:
        return ()
    axes = decision.assigned.axes[decision.example.dims.index(BATCH)]
    return () if axes == OPEN else axes


def _batch_place(decision: Decision) -> Location | None:
    """Where a rule says how the batch is split."""
    if decision.rule is None or decision.wish is None:
        return None
    entry = decision.wish.asked[decision.example.dims.index(BATCH)].entry
    return (entry.where if isinstance(entry, Axes) else None) or decision.rule.layout_at
