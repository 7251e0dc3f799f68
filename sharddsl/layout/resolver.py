"""Spec × Inventory × mesh sizes → Layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sharddsl.findings import in_order
from sharddsl.layout import about_entries, about_patterns, about_processes, about_rules
from sharddsl.layout.across_ways import of_all_ways
from sharddsl.layout.conditions import applying
from sharddsl.layout.decide import Decider, Decision
from sharddsl.layout.model import Layout, MeshSizes, Placement
from sharddsl.layout.resolution import Resolution
from sharddsl.spec.model import NAMESPACES, Rule, Spec
from sharddsl.tensors.model import Inventory, Tensor


def resolve(
    spec: Spec,
    inventory: Inventory,
    mesh: MeshSizes,
    *,
    hosts: int | None = None,
    sources: Mapping[str, str] | None = None,
) -> Layout:
    """Where every tensor of `inventory` lies on a mesh of these sizes.

    Whatever is wrong with the spec is in the layout's findings; a layout with an error among them is good for showing
    only. They come errors first, each by its place. `hosts` is the number of processes that feed the mesh, for
    conditions and for the rows that each one loads. `sources` maps file names to texts, for findings to show.

    Where conditions have no value yet, the layout is the one in which the fewest of them hold. What the others would
    bring is among its findings, as warnings, since it may never come to it.
    """
    return layout_of_all(resolutions_of(spec, inventory, mesh, hosts=hosts, sources=sources))


def layout_of_all(resolutions: Sequence[Resolution]) -> Layout:
    """The layout of the first of these ways, with the findings of all of them."""
    shown, *others = (layout_of(resolution) for resolution in resolutions)
    findings = of_all_ways(resolutions, (shown, *others)) if others else shown.findings
    return replace(shown, findings=in_order(findings))


def resolutions_of(
    spec: Spec,
    inventory: Inventory,
    mesh: MeshSizes,
    *,
    hosts: int | None = None,
    sources: Mapping[str, str] | None = None,
) -> tuple[Resolution, ...]:
    """All that `resolve` finds out, for those who judge the rules further: once for each way in which conditions of
    unknown value can come out, the one that is shown first."""
    ways, findings = applying(spec, inventory, mesh, hosts)
    found: list[Resolution] = []
    for way in ways:
        decider = Decider(way.rules, inventory, mesh)
        decisions = _decisions(decider, inventory)
        found.append(
            Resolution(
                spec=spec,
                inventory=inventory,
                mesh=mesh,
                hosts=hosts,
                sources=dict(sources or {}),
                rules=way.rules,
                assumed=way.assumed,
                condition_findings=findings,
                matcher=decider.matcher,
                decided=tuple(decider.decided.values()),
                decisions=decisions,
            )
        )
    return tuple(found)


def _decisions(decider: Decider, inventory: Inventory) -> tuple[Decision, ...]:
    """One per tensor, in the inventory's order; params are decided first, since others follow them."""
    decisions: dict[int, Decision] = {}
    for index, tensor in enumerate(inventory.tensors):
        if tensor.namespace == "param":
            decisions[index] = decider.decide(tensor)
    for index, tensor in enumerate(inventory.tensors):
        if tensor.namespace != "param":
            decisions[index] = decider.decide(tensor)
    return tuple(decisions[index] for index in range(len(inventory.tensors)))


def layout_of(resolution: Resolution) -> Layout:
    """The placements and findings of a resolution."""
    findings = (
        *resolution.condition_findings,
        *about_entries.findings(resolution),
        *about_processes.findings(resolution),
        *about_patterns.findings(resolution),
        *about_rules.findings(resolution),
    )
    placements = tuple(
        _placement(tensor, decision)
        for tensor, decision in zip(resolution.inventory.tensors, resolution.decisions, strict=True)
    )
    unknown = (*_assumptions(resolution.assumed), *_absent(resolution.rules, resolution.inventory))
    return Layout(resolution.mesh, resolution.inventory, placements, findings, unknown, resolution.sources)


def _placement(tensor: Tensor, decision: Decision) -> Placement:
    assigned, wanted = decision.assigned, decision.wish
    if assigned is None:
        return Placement(tensor, None, decision.reason, decision.rule)
    return Placement(
        tensor,
        assigned.axes,
        decision.reason,
        decision.rule,
        None if wanted is None else wanted.memory,
        assigned.dropped,
        assigned.local_shape,
    )


def _assumptions(assumed: Mapping[str, bool]) -> tuple[str, ...]:
    return tuple(f"{text} (taken {'to hold' if holds else 'not to hold'})" for text, holds in assumed.items())


def _absent(rules: Sequence[Rule], inventory: Inventory) -> tuple[str, ...]:
    """The namespaces that rules speak of and the inventory says nothing about: an inventory of params alone cannot
    tell whether a rule for activations is right."""
    held = {tensor.namespace for tensor in inventory}
    asked = {rule.pattern.namespace for rule in rules}
    return tuple(f"rules for {name} (the inventory has none)" for name in NAMESPACES if name in asked - held)
