"""`target "…"`: the devices that a check compiles for; here only how they are written."""

from __future__ import annotations

import re

from sharddsl.spec.report import nearest, suggestion

TPU_DIMS = {"v4": 3, "v5e": 2, "v5p": 3, "v6e": 2, "tpu7x": 3}
"""TPU generations, with how many dims a topology of each has."""

GPUS = ("a100", "b200", "b300", "gb200", "gb300", "h100", "h200", "l4", "l40s", "v100")

_TARGET = re.compile(r"(?:(?P<slices>\d+)\*)?(?P<name>[A-Za-z0-9]+):(?P<sizes>\d+(?:x\d+)*)", re.ASCII)
_FORMS = '`"cpu:8"`, `"cpu:2x4"` (hosts × devices), `"v5e:4x4"`, `"2*v5e:4x4"` (slices), `"h100:2x8"` (hosts × GPUs)'


def problem_of(target: str) -> tuple[str, str | None] | None:
    """What is wrong with a target, and what would work; None where it is well formed."""
    match = _TARGET.fullmatch(target)
    if match is None:
        return f"`{target}` is not a target", f"a target is written {_FORMS}"
    name, sizes = match["name"], match["sizes"].split("x")
    if any(int(size[:9]) == 0 for size in (*sizes, match["slices"] or "1")):
        return f"target `{target}` has no devices", "every size is at least 1"
    if any(len(size) > 9 for size in (*sizes, match["slices"] or "1")):
        return f"target `{target}` has more devices than any machine", f"a target is written {_FORMS}"
    if name in TPU_DIMS:
        return _shape_problem(target, len(sizes), (TPU_DIMS[name],), f"a {name} topology has {TPU_DIMS[name]} dims")
    if match["slices"] is not None:
        return f"target `{target}`: only TPUs come in slices", f"write `{target.partition('*')[2]}`"
    if name == "cpu":
        return _shape_problem(target, len(sizes), (1, 2), "`cpu:N` is one host, `cpu:HxN` is H hosts of N devices")
    if name in GPUS:
        return _shape_problem(target, len(sizes), (2,), f"`{name}:HxN` is H hosts of N GPUs, `{name}:1x8` one host")
    known = ["cpu", *TPU_DIMS, *GPUS]
    return f"unknown target `{name}`", suggestion(nearest(name, known), known)


def _shape_problem(target: str, dims: int, allowed: tuple[int, ...], form: str) -> tuple[str, str] | None:
    return None if dims in allowed else (f"target `{target}` has {dims} size{'' if dims == 1 else 's'}", form)
