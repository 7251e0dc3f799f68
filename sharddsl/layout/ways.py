"""The ways in which conditions of unknown value can come out.

`batch > 8` and `batch <= 8` are both unknown without a batch, yet exactly one of them holds. So the unknown names are
given values (those around every number that the conditions mention), and what the conditions come out as, together, is
looked at. Combinations that no value gives are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product

from sharddsl.spec.evaluate import MODES, EvaluationError, Value, evaluate
from sharddsl.spec.model import Binary, Condition, Expr, Name, Number, Unary

Way = tuple[bool, ...]
"""Which of the conditions hold, in their order."""

_MOST_SAMPLES = 4096
_MOST_WAYS = 16
"""A resolution each: with more, no person reads what comes of them."""

_LARGE = 2**30


def ways(conditions: Sequence[Condition], names: Mapping[str, Value]) -> tuple[Way, ...]:
    """Ways in which these conditions, whose value is unknown under `names`, can come out: so many that each of them
    comes out both ways, if it can. The first is the one in which the fewest hold."""
    possible = sorted(_possible(conditions, names), key=lambda way: (sum(way), way))
    if not possible:
        return ((False,) * len(conditions),)
    chosen, seen = [possible[0]], set(enumerate(possible[0]))
    while len(chosen) < _MOST_WAYS:
        most = max(possible, key=lambda way: len(set(enumerate(way)) - seen))
        if seen.issuperset(enumerate(most)):
            break
        chosen.append(most)
        seen.update(enumerate(most))
    return tuple(chosen)


def _possible(conditions: Sequence[Condition], names: Mapping[str, Value]) -> set[Way]:
    found = set[Way]()
    for sample in _samples(conditions, names):
        known = {**names, **sample}
        try:
            values = [evaluate(condition.expr, known) for condition in conditions]
        except EvaluationError:  # a division by zero at this value: nothing holds there
            continue
        if all(isinstance(value, bool) for value in values):
            found.add(tuple(value is True for value in values))
    return found


def _samples(conditions: Sequence[Condition], names: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
    """Values for the names that have none."""
    parts = [part for condition in conditions for part in _parts(condition.expr)]
    mentioned = dict.fromkeys(part.text for part in parts if isinstance(part, Name))
    unknown = [name for name in mentioned if names.get(name) is None and name not in MODES]
    numbers = {part.value for part in parts if isinstance(part, Number)}
    numbers.update(
        value for name in mentioned if isinstance(value := names.get(name), int | float) and not isinstance(value, bool)
    )
    around = _around(numbers, int(_MOST_SAMPLES ** (1 / max(1, len(unknown)))))
    choices: list[Sequence[Value]] = [(False, True) if name == "tied" else around for name in unknown]
    for values in product(*choices):
        yield dict(zip(unknown, values, strict=True))


def _around(numbers: Iterable[int | float], most: int) -> Sequence[int]:
    """Sizes on both sides of each number and, if these are not too many, of each product of two."""
    bounds = [int(number) for number in numbers if 0 <= number <= _LARGE]
    sizes = {1, _LARGE, *_neighbours(bounds)}
    both = sizes | set(_neighbours(a * b for a, b in combinations_with_replacement(bounds, 2)))
    return sorted(both if len(both) <= most else sizes)[-most:]


def _neighbours(bounds: Iterable[int]) -> Iterator[int]:
    return (size for bound in bounds for size in (bound - 1, bound, bound + 1) if size >= 1)


def _parts(expr: Expr) -> Iterator[Name | Number]:
    match expr:
        case Name() | Number():
            yield expr
        case Unary(operand=operand):
            yield from _parts(operand)
        case Binary(left=left, right=right):
            yield from _parts(left)
            yield from _parts(right)
