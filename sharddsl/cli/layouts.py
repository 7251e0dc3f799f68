"""From a job's configuration to its layout, for every command that needs one. No jax here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from sharddsl.config.groups import RUNS
from sharddsl.config.schema import Config
from sharddsl.findings import ShardError, errors
from sharddsl.layout import resolve, size_mesh
from sharddsl.layout.model import Layout
from sharddsl.models import PRESETS, LlamaConfig, Run, inventory
from sharddsl.spec import Loaded, load, mesh_of
from sharddsl.spec.model import Mesh


def load_spec(config: Config, rules: Sequence[str]) -> tuple[Loaded, Mesh]:
    """The job's spec and its mesh. Raises `ShardError` for errors in the text, `UsageError` for a spec without mesh."""
    loaded = load(config.spec.ref, rules=rules, mesh=config.spec.mesh, models=PRESETS, runs=RUNS)
    return loaded, mesh_of(loaded.checked())


def lay_out(loaded: Loaded, model: LlamaConfig, run: Run, devices: int | None) -> Layout:
    """Where every tensor lies, with all findings, errors included. Raises `ShardError` where there can be no layout.

    `devices` is the number from which an axis of size -1 is inferred.
    """
    spec = loaded.checked()
    sizes, findings = size_mesh(mesh_of(spec), devices=devices)
    if sizes is None:
        raise ShardError((*loaded.findings, *findings), loaded.sources)
    layout = resolve(spec, inventory(model, run), sizes)
    return replace(
        layout,
        findings=(*loaded.findings, *findings, *layout.findings),
        sources={**loaded.sources, **layout.sources},
    )


def usable(layout: Layout) -> Layout:
    """The layout. Raises `ShardError` with all its findings if there is an error among them."""
    if errors(layout.findings):
        raise ShardError(layout.findings, layout.sources)
    return layout


def smallest(mesh: Mesh) -> int:
    """How many devices the mesh takes at least: an axis of size -1 counts as one."""
    return prod(axis.size for axis in mesh.axes if axis.size > 0)
