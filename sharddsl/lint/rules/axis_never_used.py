"""SHD106 axis-never-used (warning)

An axis of the mesh that splits no tensor: every device along it holds the same shards and does the same work.

Bad, as nothing speaks of `mp`:

```shard
mesh: [fsdp=4, mp=2]
*: {embed: fsdp}
act: {batch: fsdp}
```

Good:

```shard
mesh: [fsdp=4, mp=2]
*: {embed: fsdp, heads: mp, ffn: mp}
act: {batch: fsdp, heads: mp, ffn: mp}
```

How to mend it: split something over the axis, give its devices to another axis, or take it out of the mesh. An axis of
size 1 is not reported: it does nothing, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from sharddsl.findings import Finding
from sharddsl.layout.model import OPEN
from sharddsl.layout.resolution import Resolution
from sharddsl.lint.subject import Subject


def findings(subject: Subject) -> Iterator[Finding]:
    """SHD106, once for each axis that is larger than 1 in some case and used in none."""
    resolutions = [resolution for case in subject.cases for resolution in case.resolutions]
    used = {axis for resolution in resolutions for axis in used_axes(resolution)}
    mesh = subject.spec.mesh
    for axis in mesh.axes if mesh is not None else ():
        size = max((resolution.mesh.sizes[axis.name] for resolution in resolutions), default=1)
        if axis.name in used or size == 1:
            continue
        yield Finding(
            "SHD106",
            "warning",
            f"{axis.name}={size} splits no tensor: the {size} devices along it do the same work",
            axis.where,
            help=f"split a dim over it, as in `act: {{batch: {axis.name}}}`, or give its devices to another axis",
        )


def used_axes(resolution: Resolution) -> Iterator[str]:
    """Every axis that splits a tensor."""
    for decision in resolution.decided:
        for axes in () if decision.assigned is None else decision.assigned.axes:
            if axes != OPEN:
                yield from axes
