"""What a spec is resolved for: the models, meshes and runs of its `check` lines, or those that a caller names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from sharddsl.findings import Finding, Location
from sharddsl.layout import Layout, layout_of_all, resolutions_of, size_mesh
from sharddsl.layout.resolution import Resolution
from sharddsl.models import LlamaConfig, Run, inventory
from sharddsl.spec import Loaded, mesh_of, with_mesh
from sharddsl.spec.model import Mode, Spec
from sharddsl.tensors import Inventory

MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class Case:
    """One model, run and mesh. `layout` has the findings of the case's own mode; it is None where there is no mesh, and
    `findings` say why. `resolutions` are those of every mode, for what is judged of a rule wherever it may apply.
    `where` is the `check` line that the case is of."""

    label: str
    layout: Layout | None
    resolutions: tuple[Resolution, ...]
    findings: tuple[Finding, ...]
    where: Location | None = None


def cases_of_checks(loaded: Loaded, models: Mapping[str, LlamaConfig], runs: Mapping[str, Run]) -> Iterator[Case]:
    """A case for each `check` of the file, whose models and runs are known: `load` was told which ones there are. A
    spec without a mesh has none; of a text with errors what can be read makes them."""
    spec = loaded.readable
    if spec.mesh is None:
        return
    for check in spec.checks:
        sized = with_mesh(spec, {axis.name: axis.size for axis in check.mesh or ()})
        given = runs[check.run] if check.run is not None else Run()
        run = given.model_copy(update={"mode": check.mode, "batch": check.batch, "seq": check.seq})
        yield replace(case_of_model(loaded, sized, models[check.model], run), where=check.where)


def case_of_model(loaded: Loaded, spec: Spec, model: LlamaConfig, run: Run, *, devices: int | None = None) -> Case:
    """A model's run on the spec's mesh. An axis of size -1 takes what the others leave of the devices; of a number
    that is not known, one."""

    def held(mode: Mode) -> Inventory:
        return inventory(model, run.model_copy(update={"mode": mode}))

    sizes = [f" {name} {value}" for name, value in (("batch", run.batch), ("seq", run.seq)) if value is not None]
    return _case(loaded, spec, [held(mode) for mode in _own_first(run.mode)], devices, "".join(sizes))


def case_of_inventory(loaded: Loaded, held: Inventory, *, devices: int | None = None) -> Case:
    """Any tensors on the spec's mesh. What they are in other modes is not known."""
    return _case(loaded, loaded.readable, [held], devices, "")


def _case(loaded: Loaded, spec: Spec, held: Sequence[Inventory], devices: int | None, run: str) -> Case:
    sizes, findings = size_mesh(mesh_of(spec), devices=devices, smallest=devices is None)
    what = f"{held[0].kind}, {held[0].mode}"
    if sizes is None:
        return Case(what, None, (), findings)
    taken = f" ({sizes.inferred}=-1 taken as 1)" if devices is None and sizes.inferred is not None else ""
    label = f"{what}, on {sizes}{taken}: {sizes.size} device{'s' * (sizes.size > 1)}{run}"
    each = [resolutions_of(spec, tensors, sizes, sources=loaded.sources) for tensors in held]
    layout = layout_of_all(each[0])
    return Case(label, layout, tuple(way for ways in each for way in ways), (*findings, *layout.findings))


def _own_first(mode: Mode) -> tuple[Mode, ...]:
    return (mode, *(other for other in MODES if other != mode))
