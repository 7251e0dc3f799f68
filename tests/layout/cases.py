"""Short forms for the tests of the layout: a spec as text, an inventory as lines, a mesh as sizes."""

from __future__ import annotations

from typing import Any

from sharddsl import spec
from sharddsl.findings import Finding
from sharddsl.layout import Layout, MeshSizes, resolve, size_mesh
from sharddsl.models import Run, inventory, preset
from sharddsl.tensors import Inventory
from sharddsl.tensors.data import from_data


def tensors(*lines: str, dtype: str = "float32", **rest: Any) -> Inventory:
    """An inventory from lines such as `attn.wk: embed 64, kv_heads 8, head_dim 16`; `?` is a size not known, and
    `kv 512/8` a dim of 512 that fuses 8 heads. The sizes of equal dims go into `sizes`."""
    data = []
    sizes: dict[str, int | None] = {}
    for line in lines:
        name, _, dims = line.partition(":")
        tensor: dict[str, Any] = {"name": name.strip(), "dtype": dtype, "dims": [], "shape": [], "heads": {}}
        for item in filter(None, (part.strip() for part in dims.split(","))):
            dim, _, size = item.partition(" ")
            size, _, heads = size.partition("/")
            tensor["dims"].append(dim)
            tensor["shape"].append(None if size == "?" else int(size))
            sizes[dim] = tensor["shape"][-1]
            if heads:
                tensor["heads"][dim] = int(heads)
        if name.startswith(("opt.", "grad.")) and dims.strip():
            skipped = 2 if name.startswith("opt.") else 1
            tensor["param"] = ".".join(name.split(".")[skipped:])
        data.append(tensor)
    return from_data({"kind": "these", "tensors": data, "sizes": sizes, **rest})


def tiny(**run: Any) -> Inventory:
    """`llama_tiny`: vocab 512, embed 128, layers 4, heads 16, kv_heads 8, head_dim 8, ffn 512."""
    return inventory(preset("llama_tiny"), Run.model_validate({"batch": 8, "seq": 64, **run}))


def resolved(
    text: str, held: Inventory, *, devices: int | None = None, hosts: int | None = None, rules: tuple[str, ...] = ()
) -> Layout:
    """The layout of these tensors under this text, whose mesh must fit."""
    loaded = spec.parse(text, "my.shard", rules=rules)
    made = loaded.checked()
    assert made.mesh is not None
    sizes, findings = size_mesh(made.mesh, devices=devices)
    assert sizes is not None, findings
    return resolve(made, held, sizes, hosts=hosts, sources=loaded.sources)


def sized(text: str, devices: int | None) -> tuple[MeshSizes | None, tuple[Finding, ...]]:
    """The sizes of a mesh written as text."""
    made = spec.parse(f"mesh: {text}\n").checked()
    assert made.mesh is not None
    return size_mesh(made.mesh, devices=devices)


def codes(layout: Layout) -> list[tuple[str, str]]:
    """Code and severity of each finding."""
    return [(finding.code, finding.severity) for finding in layout.findings]


def only(layout: Layout, code: str) -> Finding:
    """The one finding with this code."""
    found = [finding for finding in layout.findings if finding.code == code]
    assert len(found) == 1, layout.findings
    return found[0]


def place(finding: Finding) -> tuple[int, int]:
    """Line and column."""
    assert finding.where is not None
    return finding.where.span.line, finding.where.span.column
