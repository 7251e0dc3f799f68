"""The bytes of a layout, per namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharddsl.layout.model import Layout
from sharddsl.spec.model import NAMESPACES, Namespace


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
                sum_known([p.tensor.nbytes for p in placements]),
                sum_known([p.local_bytes for p in placements]),
            )
    return found


def sum_known(counts: Sequence[int | None]) -> int | None:
    """The sum, or None where one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
