"""How findings and tables put things: lists of names, bytes, sizes that divide."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import isqrt

from sharddsl.findings import Location
from sharddsl.spec.report import nearest

_CHOICES_SHOWN = 12

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def bytes_text(count: int) -> str:
    """`196.3 MiB`: binary units, one decimal above bytes."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:,.1f} {_UNITS[unit]}"


def listed(names: Iterable[str], most: int = 8) -> str:
    """`a, b, c and 4 more`: never a count without names behind it."""
    unique = list(dict.fromkeys(names))
    if len(unique) <= most:
        return ", ".join(unique)
    return f"{', '.join(unique[:most])} and {len(unique) - most} more"


def product(axes: Sequence[str], sizes: Sequence[int]) -> str:
    """`mp=16`, or `dp*fsdp=32` for several axes."""
    total = 1
    for size in sizes:
        total *= size
    return f"{'*'.join(axes)}={total}"


def divisors(number: int, upto: int) -> list[int]:
    """All divisors of `number` that are at most `upto`, ascending."""
    lower = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted(n for n in {*lower, *(number // n for n in lower)} if n <= upto)


def choices(numbers: Sequence[int], near: int = 1) -> str:
    """`{1, 2, 4, 8}`. Of very many, ascending, those around `near`: `{…, 24, 32, …}`."""
    start = max(0, min(bisect_left(numbers, near) - _CHOICES_SHOWN // 2, len(numbers) - _CHOICES_SHOWN))
    shown = [str(number) for number in numbers[start : start + _CHOICES_SHOWN]]
    before = ["…"] if start else []
    after = ["…"] if start + _CHOICES_SHOWN < len(numbers) else []
    return "{" + ", ".join([*before, *shown, *after]) + "}"


def did_you_mean(name: str, known: Sequence[str], what: str) -> str:
    """`did you mean fsdp?`, or all the names there are."""
    near = nearest(name, known)
    return f"did you mean {' or '.join(near)}?" if near else f"{what}: {listed(known) or 'none'}"


def place(where: Location | None) -> str:
    """`file:line`, or `the rule` where no text stands behind it."""
    return where.short if where is not None and where.source else "the rule"
