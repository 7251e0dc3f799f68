"""Which rules apply here: the `when` conditions, with what is known about the model, the mode and the mesh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharddsl.findings import Finding
from sharddsl.layout.model import MeshSizes
from sharddsl.spec.evaluate import EvaluationError, Value, evaluate
from sharddsl.spec.model import Condition, Rule, Spec
from sharddsl.tensors.model import Inventory


@dataclass(frozen=True, slots=True)
class Applying:
    """The rules that apply, in order; the conditions that could not be decided; what is wrong with some of them."""

    rules: tuple[Rule, ...]
    unknown: tuple[str, ...]
    findings: tuple[Finding, ...]


def applying(spec: Spec, inventory: Inventory, mesh: MeshSizes, hosts: int | None) -> Applying:
    """A rule applies if all its conditions are true; one whose condition is unknown does not, and is listed."""
    names = known_names(inventory, mesh, hosts)
    verdicts: dict[str, bool | None] = {}
    findings: list[Finding] = []
    for condition in dict.fromkeys(c for rule in spec.rules for c in rule.conditions):
        if condition.text not in verdicts:
            verdicts[condition.text], wrong = _verdict(condition, names)
            findings += wrong
    rules = tuple(rule for rule in spec.rules if all(verdicts[c.text] for c in rule.conditions))
    unknown = tuple(text for text, verdict in verdicts.items() if verdict is None)
    return Applying(rules, unknown, tuple(findings))


def known_names(inventory: Inventory, mesh: MeshSizes, hosts: int | None) -> Mapping[str, Value]:
    """What each name stands for; None where it has no value yet. A dim hides an axis of the same name, which is then
    `mesh.<axis>`."""
    axes = dict(mesh.sizes)
    return {
        **axes,
        **{f"mesh.{axis}": size for axis, size in axes.items()},
        **inventory.sizes,
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
