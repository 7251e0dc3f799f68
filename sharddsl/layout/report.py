"""A layout for people and for programs: totals, a table as text, JSON-able data."""

from __future__ import annotations

from typing import Any

from sharddsl.layout.model import OPEN, Layout, Placement
from sharddsl.layout.table import to_text
from sharddsl.layout.totals import Total, totals

__all__ = ["VERSION", "Total", "to_json", "to_text", "totals"]

VERSION = 1
"""The version of `to_json`'s schema."""


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
