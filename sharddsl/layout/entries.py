"""What the rules ask for each dim of a tensor, before anything is known about whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharddsl.layout.problems import NoBase, Problem, TooManyEntries
from sharddsl.spec.model import Axes, Entry, Fill, Follow, Named, Open, Positional, Replicated, Rule
from sharddsl.tensors.model import LAYERS, Tensor

WHOLE = Axes()
"""No axis: the dim is not split."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one dim is asked to be, and the rule that asks (with `..`, an earlier one than the winner)."""

    entry: Axes | Open
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a tensor is asked to be: an item per dim, and the memory kind."""

    asked: tuple[Asked, ...]
    memory: str | None = None
    problems: tuple[Problem, ...] = ()


def chain(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules that make up a tensor's layout, of those that match it in order: the winner, before it the rules that
    its `..` reaches back to."""
    first = len(rules) - 1
    while first > 0 and _inherits(rules[first]):
        first -= 1
    return tuple(rules[first:])


def wish(rules: Sequence[Rule], tensor: Tensor, param: Wish | None) -> Wish:
    """What `rules` (a chain, base first) ask of this tensor. `param` is what its param is asked, in this tensor's dims
    (for `grad` and `opt`; None for all others)."""
    made: Wish | None = None
    for rule in rules:
        made = _extend(made, rule, tensor, param)
    if made is None:
        raise ValueError(f"no rule for {tensor.name}")
    return made


def by_dim_name(wanted: Wish, source: Tensor, target: Tensor) -> Wish:
    """What `source` is asked, carried over to `target`, whose dims differ: each dim takes what the dim of that name is
    asked (of several, in order); a dim that `source` lacks is whole."""
    waiting: dict[str, list[Asked]] = {}
    for dim, asked in zip(source.dims, wanted.asked, strict=True):
        waiting.setdefault(dim, []).append(asked)
    carried = tuple(waiting[dim].pop(0) if waiting.get(dim) else Asked(WHOLE, None) for dim in target.dims)
    return Wish(carried, wanted.memory)


def whole(tensor: Tensor) -> Wish:
    """Not split at all, by no rule's wish."""
    return Wish((Asked(WHOLE, None),) * len(tensor.dims))


def _inherits(rule: Rule) -> bool:
    return isinstance(rule.layout, Named) and rule.layout.inherit


def _extend(base: Wish | None, rule: Rule, tensor: Tensor, param: Wish | None) -> Wish:
    match rule.layout:
        case Replicated():
            return Wish((Asked(WHOLE, rule),) * len(tensor.dims), rule.memory)
        case Positional(entries=entries):
            return _positional(rule, entries, tensor)
        case Follow():
            if param is None:
                return Wish(whole(tensor).asked, rule.memory, (NoBase(rule),))
            return Wish(param.asked, rule.memory or param.memory)
        case Named(inherit=False):
            return _named(rule, rule.layout, tensor, Wish((Asked(WHOLE, rule),) * len(tensor.dims)))
        case Named():
            under = base or param
            if under is None:
                return _named(rule, rule.layout, tensor, Wish(whole(tensor).asked, None, (NoBase(rule),)))
            return _named(rule, rule.layout, tensor, under)


def _named(rule: Rule, layout: Named, tensor: Tensor, under: Wish) -> Wish:
    entries = {item.dim: item.entry for item in layout.entries}
    asked = tuple(
        Asked(_one(entries[dim]), rule) if dim in entries else below
        for dim, below in zip(tensor.dims, under.asked, strict=True)
    )
    return Wish(asked, rule.memory or under.memory, under.problems)


def _positional(rule: Rule, entries: Sequence[Entry], tensor: Tensor) -> Wish:
    """Entries in order, for the dims of one layer: the stack dim, wherever it is, is whole."""
    rank = sum(dim != LAYERS for dim in tensor.dims)
    given = [entry for entry in entries if not isinstance(entry, Fill)]
    problems: tuple[Problem, ...] = ()
    if len(given) > rank:
        problems = (TooManyEntries(rule, len(given)),)
        given, entries = given[:rank], given[:rank]
    filled: list[Axes | Open] = []
    for entry in entries:
        filled += [WHOLE] * (rank - len(given)) if isinstance(entry, Fill) else [entry]
    filled += [WHOLE] * (rank - len(filled))
    following = iter(filled)
    asked = tuple(Asked(WHOLE if dim == LAYERS else next(following), rule) for dim in tensor.dims)
    return Wish(asked, rule.memory, problems)


def _one(entry: Entry) -> Axes | Open:
    """`...` stands for several dims, and so for nothing within a named layout."""
    return WHOLE if isinstance(entry, Fill) else entry
