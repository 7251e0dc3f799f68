"""Which rules apply here: the `when` conditions, with what is known about the model, the mode and the mesh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharddsl.findings import Finding
from sharddsl.layout.model import MeshSizes
from sharddsl.layout.ways import ways
from sharddsl.spec.evaluate import EvaluationError, Value, evaluate
from sharddsl.spec.expressions import KINDS
from sharddsl.spec.model import Condition, Rule, Spec
from sharddsl.tensors.model import Inventory


@dataclass(frozen=True, slots=True)
class Applying:
    """The rules that apply, in order, if the conditions that could not be decided are what `assumed` says."""

    rules: tuple[Rule, ...]
    assumed: Mapping[str, bool]


def applying(
    spec: Spec, inventory: Inventory, mesh: MeshSizes, hosts: int | None
) -> tuple[tuple[Applying, ...], tuple[Finding, ...]]:
    """A rule applies if all its conditions are true. Where the value of some is unknown, the ways in which they can
    come out, the one in which the fewest hold first; and what is wrong with conditions."""
    names = known_names(inventory, mesh, hosts)
    verdicts: dict[str, bool] = {}
    unknown: dict[str, Condition] = {}
    findings: list[Finding] = []
    for condition in dict.fromkeys(c for rule in spec.rules for c in rule.conditions):
        if condition.text not in verdicts and condition.text not in unknown:
            verdict, wrong = _verdict(condition, names)
            findings += wrong
            if verdict is None:
                unknown[condition.text] = condition
            else:
                verdicts[condition.text] = verdict
    found = []
    for way in ways(tuple(unknown.values()), names) if unknown else ((),):
        assumed = dict(zip(unknown, way, strict=True))
        holds = {**verdicts, **assumed}
        found.append(Applying(tuple(r for r in spec.rules if all(holds[c.text] for c in r.conditions)), assumed))
    return tuple(found), tuple(findings)


def known_names(inventory: Inventory, mesh: MeshSizes, hosts: int | None) -> Mapping[str, Value]:
    """What each name stands for; None where it has no value yet. An axis that is called like a dim or another word of
    conditions is `mesh.<axis>` alone, and of the inventory's sizes only the dims that the language knows are names."""
    return {
        **{axis: size for axis, size in mesh.sizes.items() if axis not in KINDS},
        **{f"mesh.{axis}": size for axis, size in mesh.sizes.items()},
        **{dim: size for dim, size in inventory.sizes.items() if dim in KINDS},
        "tied": inventory.tied,
        "mode": inventory.mode,
        "devices": mesh.size if mesh.devices is None else mesh.devices,
        "hosts": hosts,
    }


def _verdict(condition: Condition, names: Mapping[str, Value]) -> tuple[bool | None, tuple[Finding, ...]]:
    try:
        value = evaluate(condition.expr, names)
    except EvaluationError as error:
        return False, (Finding("SHD007", "error", f"`{condition.text}`: {error}", condition.where),)
    if value is None or isinstance(value, bool):
        return value, ()
    message = f"`{condition.text}` is {value}, neither true nor false"
    return False, (Finding("SHD007", "error", message, condition.where, help="compare it: `mp > 1`"),)
