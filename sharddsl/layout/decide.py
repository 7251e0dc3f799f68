"""One decision per kind of tensor: the winning rule or the fall-back, the axes, and what is wrong with them.

Tensors that the same rules match and that have the same dims and sizes are decided once: 126 unrolled layers cost as
much as one, and a gradient or a moment that follows its param copies the param's answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sharddsl.layout.assign import Assigned, assign, local_shape
from sharddsl.layout.entries import WHOLE, Asked, Wish, by_dim_name, chain, whole, wish
from sharddsl.layout.matching import Matcher, Matches
from sharddsl.layout.model import MeshSizes, Reason
from sharddsl.layout.problems import Problem
from sharddsl.spec.model import Axes, Follow, Rule
from sharddsl.tensors.model import Inventory, Path, Tensor

RESIDUAL = "act.resid"
BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Decision:
    """Where every tensor of one kind lies. `example` is the first of them."""

    example: Tensor
    matches: Matches
    reason: Reason
    rule: Rule | None = None
    wish: Wish | None = None
    assigned: Assigned | None = None
    """None where the compiler decides."""
    problems: tuple[Problem, ...] = ()
    missing: bool = False
    """No rule matches, and one must."""


class Decider:
    """Decides tensors one by one; params must come before the tensors that follow them."""

    def __init__(self, rules: Sequence[Rule], inventory: Inventory, mesh: MeshSizes) -> None:
        self.rules, self.mesh, self.mode = tuple(rules), mesh, inventory.mode
        self.matcher = Matcher([rule.pattern for rule in rules])
        self.decided: dict[tuple[object, ...], Decision] = {}
        self._params: dict[Path, Decision] = {}
        residual = inventory.by_name.get(RESIDUAL) if inventory.of("batch") else None
        self._residual = None if residual is None else self.decide(residual)

    def decide(self, tensor: Tensor) -> Decision:
        """The decision for this tensor; the same object for all tensors of a kind."""
        matches = self.matcher.match(tensor.namespace, tensor.path)
        param = None if tensor.param is None else self._params.get(tensor.param)
        layered = tensor.path.layer is not None
        key = (tensor.namespace, id(matches), tensor.dims, tensor.shape, tensor.heads, id(param), layered)
        decision = self.decided.get(key)
        if decision is None:
            decision = self.decided[key] = self._decide(tensor, matches, param)
        if tensor.namespace == "param":
            self._params[tensor.path] = decision
        return decision

    def _decide(self, tensor: Tensor, matches: Matches, param: Decision | None) -> Decision:
        if not tensor.dims:
            return Decision(tensor, matches, "scalar", assigned=Assigned((), ()))
        rules = [self.rules[number] for number in matches.rules]
        if not rules:
            return self._without_rule(tensor, matches, param)
        winner = rules[-1]
        if isinstance(winner.layout, Follow) and param is not None and param.wish is not None:
            followed = self._following(tensor, matches, param)
            if winner.memory is None or followed.wish is None:
                return followed
            return replace(followed, wish=replace(followed.wish, memory=winner.memory))
        wanted = wish(chain(rules), tensor, self._of_param(tensor, param))
        return self._assigned(Decision(tensor, matches, "rule", winner), wanted)

    def _assigned(self, decision: Decision, wanted: Wish) -> Decision:
        assigned = assign(wanted.asked, decision.example, self.mesh)
        return replace(decision, wish=wanted, assigned=assigned, problems=wanted.problems + assigned.problems)

    def _of_param(self, tensor: Tensor, param: Decision | None) -> Wish | None:
        """What the param is asked, in this tensor's dims."""
        if param is None or param.wish is None:
            return None
        wanted = _handed_down(param.wish, tensor)
        if param.example.dims == tensor.dims:
            return replace(wanted, problems=())
        return by_dim_name(wanted, param.example, tensor)

    # ------------------------------------------------------------------------------------------------------ fall-backs

    def _without_rule(self, tensor: Tensor, matches: Matches, param: Decision | None) -> Decision:
        match tensor.namespace:
            case "grad" | "opt" if param is not None and param.wish is not None:
                return self._following(tensor, matches, param)
            case "act":
                return Decision(tensor, matches, "compiler")
            case "batch":
                return self._as_residual(tensor, matches) or self._replicated(tensor, matches, missing=True)
            case "cache":
                return self._replicated(tensor, matches, missing=self.mode != "train")
            case "param":
                return self._replicated(tensor, matches, missing=True)
            case _:
                return self._replicated(tensor, matches, missing=False)

    def _following(self, tensor: Tensor, matches: Matches, param: Decision) -> Decision:
        """As its param where the shapes are equal, else by dim name. What is wrong with the param's layout is said of
        the param; a dim of another size than the param's that does not divide is whole, and that is shown."""
        source = param.example
        if param.wish is None or not any(dim in source.dims for dim in tensor.dims):
            return self._replicated(tensor, matches, missing=False)
        handed = _handed_down(param.wish, tensor)
        if (source.dims, source.shape) == (tensor.dims, tensor.shape):
            return Decision(tensor, matches, "follows param", param.rule, handed, param.assigned)
        carried = by_dim_name(handed, source, tensor)
        wanted = replace(carried, asked=tuple(_optional(item) for item in carried.asked))
        return self._assigned(Decision(tensor, matches, "by dim name", param.rule), wanted)

    def _as_residual(self, tensor: Tensor, matches: Matches) -> Decision | None:
        """The inputs are split as the residual stream's batch, if a rule says how."""
        residual = self._residual
        if residual is None or residual.wish is None or BATCH not in residual.example.dims:
            return None
        asked = residual.wish.asked[residual.example.dims.index(BATCH)]
        if BATCH not in tensor.dims or not isinstance(asked.entry, Axes):
            return None
        wanted = Wish(tuple(asked if dim == BATCH else Asked(WHOLE, None) for dim in tensor.dims))
        return self._assigned(Decision(tensor, matches, "batch of act.resid", residual.rule), wanted)

    def _replicated(self, tensor: Tensor, matches: Matches, *, missing: bool) -> Decision:
        axes = ((),) * len(tensor.dims)
        assigned = Assigned(axes, local_shape(tensor, axes, self.mesh))
        return Decision(tensor, matches, "default", None, whole(tensor), assigned, missing=missing)


def _handed_down(wanted: Wish, tensor: Tensor) -> Wish:
    """What a gradient or a moment takes of its param's wish. A memory kind says where an array rests between steps: the
    moments rest as the params do, and a gradient is formed and used up on the device."""
    return replace(wanted, memory=None) if tensor.namespace == "grad" else wanted


def _optional(item: Asked) -> Asked:
    """The same with `?`: nobody wrote this layout for this tensor, so it applies as far as it fits."""
    if not isinstance(item.entry, Axes) or not item.entry.axes:
        return item
    return replace(item, entry=item.entry.model_copy(update={"optional": True}))
