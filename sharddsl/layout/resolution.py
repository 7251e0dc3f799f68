"""Everything that resolving finds out, before it is cut down to a `Layout`: what findings are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sharddsl.findings import Finding, Location
from sharddsl.layout.decide import Decision
from sharddsl.layout.matching import Matcher
from sharddsl.layout.model import MeshSizes
from sharddsl.spec.model import Rule, Spec
from sharddsl.spec.report import Report
from sharddsl.tensors.model import Inventory, Tensor


@dataclass(frozen=True)
class Resolution:
    """`rules` are those that apply, in order, if the conditions of unknown value come out as `assumed`; `decided` has
    one decision per kind of tensor, `decisions` one per tensor, in the inventory's order."""

    spec: Spec
    inventory: Inventory
    mesh: MeshSizes
    hosts: int | None
    sources: Mapping[str, str]
    rules: tuple[Rule, ...]
    assumed: Mapping[str, bool]
    condition_findings: tuple[Finding, ...]
    matcher: Matcher
    decided: tuple[Decision, ...]
    decisions: tuple[Decision, ...]

    def tensors_of(self, decision: Decision) -> tuple[Tensor, ...]:
        """All tensors that were decided so."""
        return self._tensors.get(id(decision), ())

    @cached_property
    def _tensors(self) -> Mapping[int, tuple[Tensor, ...]]:
        found: dict[int, list[Tensor]] = {}
        for tensor, decision in zip(self.inventory.tensors, self.decisions, strict=True):
            found.setdefault(id(decision), []).append(tensor)
        return {key: tuple(tensors) for key, tensors in found.items()}

    @cached_property
    def matched(self) -> Mapping[int, tuple[Decision, ...]]:
        """For each rule that matches a tensor, by number, the decisions about the tensors that it matches."""
        found: dict[int, list[Decision]] = {}
        for decision in self.decided:
            for number in decision.matches.rules:
                found.setdefault(number, []).append(decision)
        return {number: tuple(decisions) for number, decisions in found.items()}

    def text_at(self, where: Location) -> str | None:
        """What is written there, within one line; None where the text is not known."""
        text = self.sources.get(where.source)
        return None if text is None else Report(where.source, text).excerpt(where.span)

    def numbered(self) -> Iterator[tuple[int, Rule]]:
        """The rules that apply, each with its number."""
        return iter(enumerate(self.rules))
