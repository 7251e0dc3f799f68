"""A layout as the table that `show` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from sharddsl.layout.model import OPEN, DimAxes, Layout, Placement
from sharddsl.layout.naming import names_of, sized_dims
from sharddsl.layout.totals import Total, sum_known, totals
from sharddsl.layout.words import bytes_text
from sharddsl.spec.model import NAMESPACES, Namespace
from sharddsl.tensors.model import LAYERS

_IDLE: Mapping[str, tuple[Namespace, ...]] = {
    "train": ("cache",),
    "prefill": ("grad", "opt"),
    "decode": ("grad", "opt"),
}
"""The namespaces that a mode does not hold; where they would lie is shown all the same."""

_GAP = "  "


@dataclass(frozen=True, slots=True)
class _Style:
    """How much a table says on a line: the dims beside each tensor or above those that share them, the deciding rule
    with its file's path, its file's name, or a letter for it."""

    dims_beside: bool
    files: Mapping[str, str]
    rule_below: bool = False


def to_text(layout: Layout, width: int = 100) -> str:
    """Every tensor's dims and sizes, its layout in the language's notation, the shape and bytes on one device, and the
    rule that decided, grouped by namespace with totals. Layers that are alike share a line. The widest style that fits
    in `width` columns is taken."""
    groups = [(namespace, list(_alike(layout, namespace))) for namespace in NAMESPACES]
    groups = [(namespace, kinds) for namespace, kinds in groups if kinds]
    for style in _styles(layout):
        bodies = [_group(kinds, style) for _, kinds in groups]
        if all(_fits(lines, width) for lines in bodies):
            break
    # where even the narrowest style is too wide, the groups that are so put the rule on a line of its own
    below = replace(style, rule_below=True)
    bodies = [
        lines if _fits(lines, width) else _group(kinds, below) for (_, kinds), lines in zip(groups, bodies, strict=True)
    ]
    summed = totals(layout)
    text = [_title(layout), *_sizes(layout)]
    for (namespace, _), lines in zip(groups, bodies, strict=True):
        text += ["", _heading(namespace, summed[namespace], layout), *lines]
    return "\n".join(line.rstrip() for line in (*text, *_footer(layout, style.files))) + "\n"


def layout_text(placement: Placement) -> str:
    """The layout in the language's notation, one layer's dims by position and the stack of layers by name:
    `[fsdp, mp, None]`, `[fsdp, mp] layers: pp`, `[None] @pinned_host`; `compiler` where nothing constrains it."""
    if placement.axes is None:
        return "compiler"
    pairs = list(zip(placement.tensor.dims, placement.axes, strict=True))
    text = f"[{', '.join(_entry(axes) for dim, axes in pairs if dim != LAYERS)}]"
    text += "".join(f" {LAYERS}: {_entry(axes)}" for dim, axes in pairs if dim == LAYERS and axes)
    return text if placement.memory is None else f"{text} @{placement.memory}"


# ---------------------------------------------------------------------------------------------------- what stands above


def _title(layout: Layout) -> str:
    mesh = layout.mesh
    plural = "" if mesh.size == 1 else "s"
    inferred = f" ({mesh.inferred} inferred)" if mesh.inferred else ""
    idle = f", {mesh.devices - mesh.size} more idle" if mesh.devices and mesh.devices > mesh.size else ""
    slow = "".join(f", {axis} crosses hosts {n} ways" for axis, n in mesh.dcn.items() if n > 1)
    on = f"{mesh}: {mesh.size} device{plural}{inferred}{idle}{slow}"
    return f"{layout.inventory.kind}, {layout.inventory.mode}, on {on}"


def _sizes(layout: Layout) -> Iterator[str]:
    shown = [
        f"{name} {'not known' if size is None else size}"
        for name, size in layout.inventory.sizes.items()
        if name in {LAYERS, "batch", "seq"}
    ]
    if shown:
        yield ", ".join(shown)


def _heading(namespace: Namespace, total: Total, layout: Layout) -> str:
    count = f"{total.tensors} tensor{'' if total.tensors == 1 else 's'}"
    idle = f" (not held in {layout.inventory.mode})" if namespace in _IDLE[layout.inventory.mode] else ""
    if namespace == "act":
        return f"act: {count}, each standing for its value in every layer"
    size = "" if total.nbytes is None else f", {bytes_text(total.nbytes)}"
    local = "" if total.local_bytes is None else f", {bytes_text(total.local_bytes)} per device"
    return f"{namespace}: {count}{size}{local}{idle}"


def _footer(layout: Layout, files: Mapping[str, str]) -> Iterator[str]:
    short = {name: source for source, name in files.items() if name != source}
    if short:
        yield ""
        for name, source in sorted(short.items()):
            yield f"{name or ':n'} is {source}" if name else f":n is line n of {source}"
    if layout.unknown:
        yield ""
        yield "not known here:"
        for text in layout.unknown:
            yield f"{_GAP}{text}"


# ----------------------------------------------------------------------------------------------------------------- rows


def _alike(layout: Layout, namespace: Namespace) -> Iterator[list[Placement]]:
    """Placements of one namespace: those that differ in nothing but the layer together, equal dims after each other."""
    found: dict[tuple[object, ...], list[Placement]] = {}
    for p in layout:
        if p.tensor.namespace == namespace:
            t = p.tensor
            decided = (p.reason, None if p.rule is None else p.rule.where, p.memory, p.axes, p.dropped)
            key = (t.path.segments, t.path.layer_at, t.path.layer is None, t.dims, t.shape, t.dtype, decided)
            found.setdefault(key, []).append(p)
    by_dims: dict[str, list[list[Placement]]] = {}
    for alike in found.values():
        by_dims.setdefault(sized_dims(alike[0].tensor), []).append(alike)
    return (alike for kinds in by_dims.values() for alike in kinds)


def _styles(layout: Layout) -> Iterator[_Style]:
    """From the widest to the narrowest."""
    sources = list(dict.fromkeys(p.rule.where.source for p in layout if p.rule is not None))
    paths = {source: source for source in sources}
    files = {source: PurePath(source).name or source for source in sources}
    if len(set(files.values())) < len(files):
        files = paths
    letters = {source: "" if len(sources) == 1 else chr(ord("a") + n % 26) for n, source in enumerate(sources)}
    for dims_beside in (True, False):
        yield _Style(dims_beside, paths)
        yield _Style(dims_beside, files)
    yield _Style(False, letters)


def _fits(lines: Sequence[str], width: int) -> bool:
    return all(len(line) <= width for line in lines)


def _group(kinds: Sequence[Sequence[Placement]], style: _Style) -> list[str]:
    """The lines of one namespace, its columns as wide as they need to be."""
    rows = [_cells(alike, style) for alike in kinds]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    above = ""
    indent = _GAP if style.dims_beside else _GAP * 2
    for alike, cells in zip(kinds, rows, strict=True):
        first = alike[0]
        if not style.dims_beside and (dims := sized_dims(first.tensor)) != above:
            above = dims
            lines.append(_GAP + dims)
        # bytes to the right, everything else to the left
        padded = [
            c.rjust(w) if n == len(cells) - 2 else c.ljust(w)
            for n, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        if style.rule_below:
            lines += [(indent + _GAP.join(padded[:-1])).rstrip(), f"{indent}{_GAP * 2}{cells[-1]}"]
        else:
            lines.append((indent + _GAP.join(padded)).rstrip())
        lines += [f"{indent}{_GAP * 2}{'*'.join(d.axes)}? dropped on {d.dim}: {d.why}" for d in first.dropped]
    return lines


def _cells(alike: Sequence[Placement], style: _Style) -> list[str]:
    """Name, dims (if beside), layout, local shape, bytes per device, what decided."""
    first = alike[0]
    (name,) = names_of(p.tensor for p in alike)
    here = sum_known([p.local_bytes for p in alike])
    return [
        name.removeprefix(f"{first.tensor.namespace}."),
        *([sized_dims(first.tensor)] if style.dims_beside else []),
        layout_text(first),
        (f"{len(alike)} of " if len(alike) > 1 and first.local_shape is not None else "") + _shape(first.local_shape),
        "" if here is None else bytes_text(here),
        _decided(first, style.files),
    ]


def _shape(shape: tuple[int | None, ...] | None) -> str:
    if shape is None:
        return ""
    return "×".join("?" if size is None else str(size) for size in shape) if shape else "1"


def _entry(axes: DimAxes) -> str:
    if axes == OPEN:
        return OPEN
    return "None" if not axes else axes[0] if len(axes) == 1 else f"({', '.join(axes)})"


def _decided(placement: Placement, files: Mapping[str, str]) -> str:
    where = None if placement.rule is None else placement.rule.where
    rule = ""
    if where is not None:
        rule = f"{files[where.source]}:{where.span.line}" if where.span.line else files[where.source]
    match placement.reason:
        case "rule":
            return rule
        case "follows param":
            return f"as param {rule}".rstrip()
        case "by dim name":
            return f"by dim name {rule}".rstrip()
        case "batch of act.resid":
            return f"as act.resid {rule}".rstrip()
        case "scalar":
            return "scalar"
        case "default":
            return "no rule: whole"
        case "compiler":
            return "no rule"
