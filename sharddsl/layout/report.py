"""A layout as text, as JSON-able data, and as totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sharddsl.layout.model import OPEN, DimAxes, Layout, Placement
from sharddsl.layout.naming import names_of
from sharddsl.layout.words import bytes_text
from sharddsl.spec.model import NAMESPACES, Namespace
from sharddsl.tensors.model import LAYERS, Tensor

VERSION = 1
"""The version of `to_json`'s schema."""

_IDLE: dict[str, tuple[Namespace, ...]] = {
    "train": ("cache",), "prefill": ("grad", "opt"), "decode": ("grad", "opt"),
}  # fmt: skip
"""The namespaces that a mode does not hold; their layout is shown all the same."""


@dataclass(frozen=True, slots=True)
class Total:
    """The bytes of a namespace: of its whole arrays, and of what one device holds. None where a size is not known, or
    where the compiler decides."""

    tensors: int
    nbytes: int | None
    local_bytes: int | None


def totals(layout: Layout) -> dict[Namespace, Total]:
    """Totals per namespace, for those that the inventory has. Activations are counted once per name, though every
    layer has its own: their total is no memory figure."""
    found: dict[Namespace, Total] = {}
    for namespace in NAMESPACES:
        placements = [p for p in layout if p.tensor.namespace == namespace]
        if placements:
            found[namespace] = Total(
                len(placements),
                _sum([p.tensor.nbytes for p in placements]),
                _sum([p.local_bytes for p in placements]),
            )
    return found


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


# ----------------------------------------------------------------------------------------------------------------- JSON


def to_json(layout: Layout) -> dict[str, Any]:
    """The layout as data that `json.dump` takes.

    `axes` has a list of axes per dim, or "*" for one left to the compiler, and is null where nothing constrains the
    tensor; `rule` is where the deciding rule stands. Bytes and sizes are null where they are not known.
    """
    return {
        "version": VERSION,
        "model": layout.inventory.kind,
        "mode": layout.inventory.mode,
        "mesh": {
            "axes": dict(layout.mesh.sizes),
            "dcn": dict(layout.mesh.dcn),
            "devices": layout.mesh.devices,
            "inferred": layout.mesh.inferred,
        },
        "tensors": [_tensor_json(placement) for placement in layout],
        "totals": {
            namespace: {"tensors": t.tensors, "bytes": t.nbytes, "bytes_per_device": t.local_bytes}
            for namespace, t in totals(layout).items()
        },
        "findings": [
            {
                "code": f.code,
                "name": f.name,
                "severity": f.severity,
                "message": f.message,
                "where": None if f.where is None else str(f.where),
                "help": f.help,
                "tensor": f.tensor,
                "dim": f.dim,
                "count": f.count,
            }
            for f in layout.findings
        ],
        "unknown": list(layout.unknown),
    }


def _tensor_json(placement: Placement) -> dict[str, Any]:
    tensor = placement.tensor
    return {
        "name": tensor.name,
        "namespace": tensor.namespace,
        "dims": list(tensor.dims),
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "axes": None if placement.axes is None else [a if a == OPEN else list(a) for a in placement.axes],
        "local_shape": None if placement.local_shape is None else list(placement.local_shape),
        "bytes": tensor.nbytes,
        "bytes_per_device": placement.local_bytes,
        "memory": placement.memory,
        "reason": placement.reason,
        "rule": None if placement.rule is None else placement.rule.where.short,
        "dropped": [{"axes": list(d.axes), "dim": d.dim, "why": d.why} for d in placement.dropped],
    }


# ----------------------------------------------------------------------------------------------------------------- text


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    dims: str
    layout: str
    local: str
    per_device: str
    decided: str
    drops: tuple[str, ...] = ()


_HEADINGS = _Row("tensor", "dims", "layout", "per device", "bytes", "decided by")
_FIELDS = ("name", "dims", "layout", "local", "per_device", "decided")
_GAP = "  "


def to_text(layout: Layout, width: int = 100) -> str:
    """The table of `show`: every tensor's dims and sizes, its layout in the language's notation, what one device holds,
    and the rule that decided, grouped by namespace. Layers that are alike share a line. A table that is wider than
    `width` columns puts the deciding rule, then the local shape, on a line of their own."""
    groups: list[tuple[Namespace, list[_Row]]] = []
    for namespace in NAMESPACES:
        rows = [_row(alike, layout) for alike in _alike(layout, namespace)]
        if rows:
            groups.append((namespace, rows))
    widths = _widths([_HEADINGS, *(row for _, rows in groups for row in rows)])
    fields = _fields_within(widths, width)
    lines = [_title(layout), "", _line(_HEADINGS, widths, fields)]
    summed = totals(layout)
    for namespace, rows in groups:
        lines += ["", _heading(namespace, summed[namespace], layout)]
        for row in rows:
            lines += _lines(row, widths, fields)
    lines += _footer(layout)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _title(layout: Layout) -> str:
    mesh = layout.mesh
    inferred = f" ({mesh.inferred} inferred)" if mesh.inferred else ""
    idle = f", {mesh.devices - mesh.size} of {mesh.devices} idle" if mesh.devices and mesh.devices > mesh.size else ""
    slow = "".join(f", {axis} crosses hosts {n} ways" for axis, n in mesh.dcn.items() if n > 1)
    known = layout.inventory.sizes
    asked = "".join(f", {name} {size}" for name in ("batch", "seq") if (size := known.get(name)) is not None)
    plural = "" if mesh.size == 1 else "s"
    return f"{layout.inventory.kind}, {layout.inventory.mode}{asked} on {mesh}: {mesh.size} device{plural}" + (
        f"{inferred}{idle}{slow}"
    )


def _heading(namespace: Namespace, total: Total, layout: Layout) -> str:
    count = f"{total.tensors} tensor{'' if total.tensors == 1 else 's'}"
    idle = f" (not in {layout.inventory.mode})" if namespace in _IDLE[layout.inventory.mode] else ""
    if namespace == "act":
        return f"act: {count}, each in every layer that has it{idle}"
    size = "" if total.nbytes is None else f", {bytes_text(total.nbytes)}"
    local = "" if total.local_bytes is None else f", {bytes_text(total.local_bytes)} per device"
    return f"{namespace}: {count}{size}{local}{idle}"


def _alike(layout: Layout, namespace: Namespace) -> Iterator[list[Placement]]:
    """Placements of one namespace, those that differ in nothing but the layer together."""
    found: dict[tuple[object, ...], list[Placement]] = {}
    for p in layout:
        if p.tensor.namespace == namespace:
            t = p.tensor
            decided = (p.reason, None if p.rule is None else p.rule.where, p.memory, p.axes, p.dropped)
            key = (t.path.segments, t.path.layer_at, t.dims, t.shape, t.dtype, decided)
            found.setdefault(key, []).append(p)
    return iter(found.values())


def _row(alike: Sequence[Placement], layout: Layout) -> _Row:
    first = alike[0]
    (name,) = names_of(p.tensor for p in alike)
    bytes_here = _sum([p.local_bytes for p in alike])
    times = f" ×{len(alike)}" if len(alike) > 1 else ""
    return _Row(
        name.removeprefix(f"{first.tensor.namespace}."),
        _dims(first.tensor),
        layout_text(first),
        "" if first.local_shape is None else _shape(first.local_shape) + times,
        "" if bytes_here is None else bytes_text(bytes_here),
        _decided(first),
        tuple(f"{'*'.join(d.axes)} dropped on {d.dim}: {d.why}" for d in first.dropped),
    )


def _dims(tensor: Tensor) -> str:
    if not tensor.dims:
        return "scalar"
    return " ".join(
        f"{dim}={'?' if size is None else size}" for dim, size in zip(tensor.dims, tensor.shape, strict=True)
    )


def _shape(shape: Sequence[int | None]) -> str:
    return "×".join("?" if size is None else str(size) for size in shape) if shape else "1"


def layout_text(placement: Placement) -> str:
    """The layout in the language's notation, the stack of layers by name: `[fsdp, mp, None]`, `[…] layers: pp`."""
    if placement.axes is None:
        return "*"
    entries = [_entry(axes) for dim, axes in zip(placement.tensor.dims, placement.axes, strict=True) if dim != LAYERS]
    stack = [axes for dim, axes in zip(placement.tensor.dims, placement.axes, strict=True) if dim == LAYERS and axes]
    text = f"[{', '.join(entries)}]"
    if stack:
        text += f" {LAYERS}: {_entry(stack[0])}"
    return text if placement.memory is None else f"{text} @{placement.memory}"


def _entry(axes: DimAxes) -> str:
    if axes == OPEN:
        return OPEN
    return "None" if not axes else axes[0] if len(axes) == 1 else f"({', '.join(axes)})"


def _decided(placement: Placement) -> str:
    rule = placement.rule.where.short if placement.rule is not None else ""
    match placement.reason:
        case "rule":
            return rule
        case "default":
            return "no rule: whole"
        case "compiler":
            return "no rule: the compiler"
        case reason:
            return f"{reason} {rule}".strip()


def _widths(rows: Sequence[_Row]) -> dict[str, int]:
    return {field: max(len(getattr(row, field)) for row in rows) for field in _FIELDS}


def _fields_within(widths: dict[str, int], width: int) -> tuple[str, ...]:
    """The columns that fit side by side. The deciding rule gives way first, then the dims, then the local shape; what
    gives way follows on a line of its own."""
    fields = list(_FIELDS)
    for leaves in ("decided", "dims", "local"):
        if sum(widths[f] for f in fields) + len(_GAP) * len(fields) <= width:
            break
        fields.remove(leaves)
    return tuple(fields)


def _line(row: _Row, widths: dict[str, int], fields: Sequence[str]) -> str:
    cells = []
    for field in fields:
        text = getattr(row, field)
        cells.append(text.rjust(widths[field]) if field == "per_device" else text.ljust(widths[field]))
    return _GAP + _GAP.join(cells)


def _lines(row: _Row, widths: dict[str, int], fields: Sequence[str]) -> Iterator[str]:
    yield _line(row, widths, fields)
    rest = [getattr(row, field) for field in _FIELDS if field not in fields]
    if any(rest):
        yield "      " + "; ".join(text for text in rest if text)
    for drop in row.drops:
        yield f"      {drop}"


def _footer(layout: Layout) -> Iterator[str]:
    if layout.unknown:
        yield ""
        yield "not known here, so their rules were taken not to apply:"
        for text in layout.unknown:
            yield f"{_GAP}{text}"
