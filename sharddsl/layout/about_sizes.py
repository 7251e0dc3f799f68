"""Findings about sizes: dims that do not divide, heads cut in two, batches that are not whole, a -1 gone wild.

A size and the axes over it are one root cause, wherever they meet: mp=16 against 8 kv_heads is one finding, though it
shows in wk, in wv, in two activations and in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from sharddsl.findings import Edit, Finding, Location, Severity
from sharddsl.layout.about_processes import batch_sizes, microbatches
from sharddsl.layout.assign import HEAD_DIMS, units_of
from sharddsl.layout.decide import BATCH, Decision
from sharddsl.layout.model import OPEN
from sharddsl.layout.naming import names_of, note_of
from sharddsl.layout.problems import Dropped, NotDivisible
from sharddsl.layout.resolution import Resolution
from sharddsl.layout.words import bytes_text, choices, divisors, listed
from sharddsl.spec.model import NAMESPACES
from sharddsl.tensors.model import Tensor

SEQ = "seq"


@dataclass(frozen=True)
class Uneven:
    """One size that some axes do not divide, and everything that shows it; activations last."""

    dim: str
    units: int
    heads: bool
    axes: tuple[str, ...]
    ways: int
    shown: tuple[tuple[NotDivisible, tuple[Tensor, ...]], ...]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(tensor for _, tensors in self.shown for tensor in tensors))

    @property
    def over(self) -> str:
        """`mp=16`, `dp*fsdp=32`."""
        return f"{'*'.join(self.axes)}={self.ways}"

    @property
    def only_activations(self) -> bool:
        return all(tensor.namespace == "act" for tensor in self.tensors)


def findings(resolution: Resolution) -> tuple[Finding, ...]:
    """All findings about sizes."""
    uneven = _root_causes(tuple(_uneven(resolution)))
    heads: dict[tuple[str, ...], list[Uneven]] = {}
    for item in uneven:
        if item.heads:
            heads.setdefault(item.axes, []).append(item)
    return (
        *(splits_a_head(items, resolution) for items in heads.values()),
        *(_one(item, resolution) for item in uneven if not item.heads),
        *surprising_axis(resolution, uneven),
    )


def _uneven(resolution: Resolution) -> Iterator[Uneven]:
    found: dict[tuple[str, int, bool, tuple[str, ...]], list[tuple[NotDivisible, tuple[Tensor, ...]]]] = {}
    for decision in sorted(resolution.decided, key=_weight):
        for problem in decision.problems:
            if isinstance(problem, NotDivisible):
                dim = decision.example.dims[problem.dim]
                key = (dim, problem.units, problem.heads, tuple(ref.name for ref in problem.axes))
                found.setdefault(key, []).append((problem, resolution.tensors_of(decision)))
    for (dim, units, heads, axes), shown in found.items():
        yield Uneven(dim, units, heads, axes, shown[0][0].ways, tuple(shown))


def _root_causes(uneven: Sequence[Uneven]) -> tuple[Uneven, ...]:
    """Without the microbatch that is uneven because the whole batch is."""
    whole = any(item.dim == BATCH and not item.only_activations for item in uneven)
    return tuple(item for item in uneven if not (whole and item.dim == BATCH and item.only_activations))


def _weight(decision: Decision) -> tuple[bool, int]:
    """Activations last: they are padded where everything else is refused."""
    namespace = decision.example.namespace
    return namespace == "act", NAMESPACES.index(namespace)


def _one(item: Uneven, resolution: Resolution) -> Finding:
    if item.only_activations and item.dim == BATCH:
        return rows_not_whole(item, resolution)
    return does_not_divide(item, resolution)


def _finding(item: Uneven, code: str, severity: Severity, message: str, help_: str) -> Finding:
    first, tensors = item.shown[0]
    where = first.where or first.rule.layout_at
    related: dict[Location, list[Tensor]] = {}
    for problem, others in item.shown[1:]:
        place = problem.where or problem.rule.layout_at
        if place != where:
            related.setdefault(place, []).extend(others)
    same = [t for problem, ts in item.shown if (problem.where or problem.rule.layout_at) == where for t in ts]
    return Finding(
        code,
        severity,
        message,
        where,
        help=help_,
        tensor=tensors[0].name,
        dim=item.dim,
        count=len(item.tensors),
        note=note_of(same),
        related=tuple((place, f"the same for {listed(names_of(ts), 4)}") for place, ts in sorted(related.items())),
    )


def _optional_axis(item: Uneven, resolution: Resolution) -> tuple[Edit, ...]:
    """`mp` becomes `mp?` wherever it is written alone; nothing where it came through a `let` that says more."""
    places = dict.fromkeys(p.axes[0].where for p, _ in item.shown if len(p.axes) == 1)
    edits = tuple(Edit(place, f"{item.axes[0]}?") for place in places if place is not None)
    return edits if all(resolution.text_at(edit.where) == item.axes[0] for edit in edits) else ()


# --------------------------------------------------------------------------------------------------------------- SHD303


def splits_a_head(items: Sequence[Uneven], resolution: Resolution) -> Finding:
    """SHD303: some axes have more parts than there are heads, or cut one in two. `items` are the head counts that
    these axes do not divide (heads, kv_heads), which is one thing to mend."""
    first = items[0]
    whole = replace(first, shown=tuple(shown for item in items for shown in item.shown))
    how = "is more than" if all(item.ways > item.units for item in items) else "does not divide"
    counts = {
        name: count for name in HEAD_DIMS if (count := resolution.inventory.sizes.get(name)) is not None and count > 0
    }
    for item in items:
        if item.units not in counts.values():
            counts[item.dim if item.dim in HEAD_DIMS else f"heads in {item.dim}"] = item.units
    # Sizes beyond this mesh too: where its product follows from the axes, as on virtual devices, they are a way out.
    common = gcd(*counts.values())
    fits = divisors(common, common)
    shown = " and ".join(_counted(count, name) for name, count in counts.items())
    help_ = (
        f"{'*'.join(first.axes)} in {choices(fits, first.ways)} divides {'both ' if len(counts) == 2 else ''}{shown}"
    )
    if len(first.axes) == 1:
        held = "k and v" if {item.dim for item in items} == {"kv_heads"} else "them"
        help_ += f"; or write `{first.axes[0]}?` to replicate {held} over {first.axes[0]}"
        help_ += _other_size(first.axes[0], fits, resolution)
    help_ += _if_inferred(first.axes, fits, resolution)
    # XLA pads an activation; everything else is refused
    severity: Severity = "warning" if whole.only_activations else "error"
    message = f"{first.over} {how} {' and '.join(map(_heads_of, items))}"
    return replace(_finding(whole, "SHD303", severity, message, help_), fix=_optional_axis(whole, resolution))


def _heads_of(item: Uneven) -> str:
    """`the 8 kv_heads of layers.attn.wk, layers.attn.wv`."""
    names = listed(names_of(t for t in item.tensors if t.namespace == item.tensors[0].namespace), 3)
    counted = _counted(item.units, item.dim if item.dim in HEAD_DIMS else f"heads in {item.dim}")
    return f"the {counted} of {names}"


def _counted(count: int, name: str) -> str:
    return f"1 {name.replace('heads', 'head', 1)}" if count == 1 else f"{count} {name}"


def _other_size(axis: str, fits: Sequence[int], resolution: Resolution) -> str:
    """A size for the axis that fits. Where the part that does not fit has another axis to go to, the number of devices
    stays as it is; otherwise, or where that would take the axis away, the nearest size besides 1 is named too."""
    sizes = dict(resolution.mesh.sizes)
    size = sizes.pop(axis)
    fitting = _largest_factor(size, fits)
    text = ""
    if (fitting == 1 or not sizes) and axis != resolution.mesh.inferred and len(fits) > 1:
        nearest = min(fits[1:], key=lambda n: (abs(n - size), -n))
        text += f",\nor use the nearest size that fits: spec.mesh.{axis}={nearest}"
    if sizes and fitting != size:
        taker = "fsdp" if "fsdp" in sizes else max(sizes, key=lambda name: sizes[name])
        changed = {axis: fitting, taker: sizes[taker] * (size // fitting)}
        mesh = ", ".join(f"{name}={changed.get(name, kept)}" for name, kept in resolution.mesh.sizes.items())
        text += f",\nor give the other factor to {taker}: mesh: [{mesh}]"
    return text


def _largest_factor(size: int, fits: Sequence[int]) -> int:
    """The largest of these sizes that leaves a whole number of devices to other axes."""
    return max(n for n in fits if size % n == 0)


def _if_inferred(axes: Sequence[str], fits: Sequence[int], resolution: Resolution) -> str:
    inferred = resolution.mesh.inferred
    if inferred is None or inferred not in axes:
        return ""
    return (
        f"\n{inferred} was -1 and grew with the {resolution.mesh.size} devices: give it a size "
        f"(spec.mesh.{inferred}={_largest_factor(resolution.mesh.sizes[inferred], fits)}), "
        "and -1 to an axis that splits the batch"
    )


# --------------------------------------------------------------------------------------------------------------- SHD302


def does_not_divide(item: Uneven, resolution: Resolution) -> Finding:
    """SHD302: a size that the axes do not divide. An error for what jit refuses, a warning for activations, which
    XLA pads."""
    rest = item.units % item.ways
    below, above = item.units - rest, item.units - rest + item.ways
    first = item.tensors[0]
    same = names_of(t for t in item.tensors if t.namespace == first.namespace)
    message = f"{item.dim} {item.units} of {listed(same, 3)} is not a multiple of {item.over} (remainder {rest})"
    # Sizes beyond this mesh too, as in SHD303.
    fits = divisors(item.units, item.units)
    if item.dim == BATCH:
        help_ = batch_sizes(item.units, resolution)
        help_ += f"\nor sizes of {'*'.join(item.axes)} that divide {item.units}: {choices(fits, item.ways)}"
    else:
        help_ = f"sizes of {'*'.join(item.axes)} that divide {item.units}: {choices(fits, item.ways)}"
        near = f"{below} or {above}" if below else f"{above}"
        if item.dim == SEQ and item.units == 1:
            help_ += (
                "\nor a rule for the other modes only, since a single token cannot be split: when mode != decode { … }"
            )
        elif item.dim == SEQ:
            help_ += f"\nor another sequence length: {near}"
        elif first.namespace in {"param", "opt", "grad"}:
            help_ += f"\nor another size of {item.dim}: {near}; padding to {above} changes the checkpoint's shape"
            help_ += _other_dim(first, item, resolution)
        else:
            help_ += f"\nor another size of {item.dim}: {near}"
    help_ += _if_inferred(item.axes, fits, resolution)
    if item.only_activations:
        help_ += (
            f"\nXLA pads it to {above}, {-(-item.units // item.ways)} on each device; "
            "if the value leaves the program it comes back whole"
        )
    return _finding(item, "SHD302", "warning" if item.only_activations else "error", message, help_)


def _other_dim(tensor: Tensor, item: Uneven, resolution: Resolution) -> str:
    """The other ways out for a weight: split another dim, or keep the dim whole, with the bytes that this costs."""
    text = ""
    taken = item.axes[0] if len(item.axes) == 1 else f"({', '.join(item.axes)})"
    decision = next(d for d in resolution.decided if tensor in resolution.tensors_of(d))
    axes = decision.assigned.axes if decision.assigned else ()
    for dim, (name, size, split) in enumerate(zip(tensor.dims, tensor.shape, axes, strict=True)):
        units, _ = units_of(tensor, dim)
        if name not in {item.dim, "layers"} and not split and units is not None and units % item.ways == 0 and size:
            text += f"\nor split {name} instead: {{{name}: {taken}}}"
            break
    kept = prod(resolution.mesh.ways(s) for d, s in zip(tensor.dims, axes, strict=True) if s != OPEN and d != item.dim)
    if tensor.nbytes is not None:
        held = f"{bytes_text(-(-tensor.nbytes // kept))} per device for {tensor.name}"
        text += f"\nor keep {item.dim} whole where it does not divide, `{taken}?`: {held}"
    return text


# --------------------------------------------------------------------------------------------------------------- SHD308


def rows_not_whole(item: Uneven, resolution: Resolution) -> Finding:
    """SHD308: the rows of the batch, or of a microbatch of it, do not come out whole, where the inputs themselves are
    not split so."""
    names = listed(names_of(item.tensors), 3)
    batch = resolution.inventory.sizes.get(BATCH) or item.units
    rows = f"batch {batch}"
    if (accum := microbatches(batch, resolution)) > 1:
        rows += f" in {accum} microbatches of {item.units}"
    message = f"{rows} over {item.over} is not a whole number of rows per device, in {names}"
    return _finding(item, "SHD308", "error", message, batch_sizes(batch, resolution))


# --------------------------------------------------------------------------------------------------------------- SHD108


def surprising_axis(resolution: Resolution, uneven: Sequence[Uneven]) -> Iterator[Finding]:
    """SHD108: -1 made an axis that splits heads larger than a head count. Yields to SHD303."""
    inferred = resolution.mesh.inferred
    if inferred is None or any(item.heads and inferred in item.axes for item in uneven):
        return
    size = resolution.mesh.sizes[inferred]
    counts = {n: c for n in HEAD_DIMS if (c := resolution.inventory.sizes.get(n)) is not None and 0 < c < size}
    if not counts or not _splits_heads(inferred, resolution):
        return
    name, count = min(counts.items(), key=lambda pair: pair[1])
    where = None
    mesh = resolution.spec.mesh
    if mesh is not None:
        where = next((axis.where for axis in mesh.axes if axis.name == inferred), None) or mesh.where
    fits = divisors(gcd(*[c for n in HEAD_DIMS if (c := resolution.inventory.sizes.get(n))]), size)
    yield Finding(
        "SHD108",
        "warning",
        f"{inferred}=-1 became {size}, more than the {count} {name}: it splits heads, and grew with the "
        f"{resolution.mesh.size} devices",
        where,
        help=f"give it a size, {inferred} in {choices(fits)} (spec.mesh.{inferred}={fits[-1]}), and -1 to an axis "
        "that splits the batch",
    )


def _splits_heads(axis: str, resolution: Resolution) -> bool:
    """Whether the axis is on a head dim somewhere, or was dropped from one."""
    for decision in resolution.decided:
        tensor = decision.example
        if decision.assigned is not None and any(
            axis in split and units_of(tensor, dim)[1] for dim, split in enumerate(decision.assigned.axes)
        ):
            return True
        if any(isinstance(p, Dropped) and axis in p.drop.axes and p.drop.dim in HEAD_DIMS for p in decision.problems):
            return True
    return False
