"""Two versions of a spec, each resolved for its checks, compared tensor by tensor.

Layouts are compared as effective ones: an axis of size 1 splits nothing, and an axis that only goes by another name
moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sharddsl.layout.effective import effective_layout, effective_mesh
from sharddsl.layout.model import Layout, MeshSizes
from sharddsl.layout.naming import names_of
from sharddsl.layout.totals import totals
from sharddsl.lint.differences.model import Bytes, Change, CheckDifference, Side
from sharddsl.spec.model import NAMESPACES, Namespace
from sharddsl.tensors.model import Tensor


def compared(before: Sequence[Side], after: Sequence[Side]) -> Iterator[CheckDifference]:
    """Each check of the newer version, and then those that were removed."""
    for old, new in _pairs(before, after):
        if old is None or new is None:
            yield _alone(old, new)
        else:
            yield _between(old, new)


def _pairs(before: Sequence[Side], after: Sequence[Side]) -> Iterator[tuple[Side | None, Side | None]]:
    """Checks of equal text together; then, of those that are left, those that differ in sizes of the mesh alone."""
    found: dict[int, int] = {}
    for text_of in (_label, _stem):
        for index, new in enumerate(after):
            if index not in found:
                alike = (n for n, old in enumerate(before) if text_of(old) == text_of(new))
                match = next((n for n in alike if n not in found.values()), None)
                if match is not None:
                    found[index] = match
    yield from ((before[found[index]] if index in found else None, new) for index, new in enumerate(after))
    yield from ((old, None) for n, old in enumerate(before) if n not in found.values())


def _label(side: Side) -> str:
    return side.label


def _stem(side: Side) -> str:
    return side.stem


def _alone(old: Side | None, new: Side | None) -> CheckDifference:
    side = new or old
    assert side is not None
    held = {namespace: total.local_bytes for namespace, total in totals(side.layout).items()}
    return CheckDifference(
        side.label,
        "removed" if new is None else "added",
        bytes={
            namespace: Bytes(None if old is None else count, None if new is None else count)
            for namespace, count in held.items()
        },
        errors_before=() if old is None else old.errors,
        errors_after=() if new is None else new.errors,
    )


def _between(old: Side, new: Side) -> CheckDifference:
    renamed = _renamed(old.layout.mesh, new.layout.mesh)
    meshes = effective_mesh(old.layout.mesh, renamed), effective_mesh(new.layout.mesh)
    return CheckDifference(
        new.label,
        "both",
        tuple(_changes(old.layout, new.layout, renamed)),
        _bytes(old.layout, new.layout),
        meshes if meshes[0] != meshes[1] else None,
        renamed,
        old.errors,
        new.errors,
    )


def _renamed(old: MeshSizes, new: MeshSizes) -> Mapping[str, str]:
    """What the axes of the older mesh are called now, those that go by another name: at the same place, of the same
    size, and neither name is one of the other mesh."""
    if len(old.sizes) != len(new.sizes):
        return {}
    pairs = [(was, now) for was, now in zip(old.sizes, new.sizes, strict=True) if was != now]
    fits = all(was not in new.sizes and now not in old.sizes and old.sizes[was] == new.sizes[now] for was, now in pairs)
    return dict(pairs) if fits else {}


def _changes(old: Layout, new: Layout, renamed: Mapping[str, str]) -> Iterator[Change]:
    """Those of the params first, in the inventory's order."""
    was = {p.tensor.name: effective_layout(p, old.mesh, renamed) for p in old}
    now = {p.tensor.name: effective_layout(p, new.mesh) for p in new}
    alike: dict[tuple[str | None, str | None], list[Tensor]] = {}
    for tensor in (*new.inventory, *(t for t in old.inventory if t.name not in now)):
        change = (was.get(tensor.name), now.get(tensor.name))
        if change[0] != change[1]:
            alike.setdefault(change, []).append(tensor)
    for (before, after), tensors in alike.items():
        yield Change(before, after, tuple(names_of(tensors)), len(tensors))


def _bytes(old: Layout, new: Layout) -> dict[Namespace, Bytes]:
    before, after = totals(old), totals(new)
    return {
        name: Bytes(
            before[name].local_bytes if name in before else None, after[name].local_bytes if name in after else None
        )
        for name in NAMESPACES
        if name in before or name in after
    }
