"""SHD304 large-and-replicated (warning)

A large param that every device holds whole, of which no rule says that this is meant.

Bad: `[None, None]` may be a slip, and 2 GiB stand on each of the 64 devices:

```shard
mesh: [fsdp=64]
*: {embed: fsdp}
embed.w: [None, None]
act: {batch: fsdp}
```

Good, if it is meant:

```shard
mesh: [fsdp=64]
*: {embed: fsdp}
embed.w: replicated
act: {batch: fsdp}
```

How to mend it: split the param, or write `replicated`, which says so to every reader. Large is 64 MiB and more, or what
`large` in `[tool.sharddsl.lint]` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sharddsl.findings import Finding
from sharddsl.layout.naming import names_of, note_of
from sharddsl.layout.words import bytes_text, listed
from sharddsl.lint.subject import Subject
from sharddsl.spec.model import Replicated, Rule
from sharddsl.tensors.model import Tensor


def findings(subject: Subject) -> Iterator[Finding]:
    """SHD304, once for each rule that leaves large params whole, with the largest of them over all cases."""
    found: dict[object, tuple[Rule, list[Tensor], str]] = {}
    for case in subject.cases:
        for resolution in case.resolutions:
            for decision in resolution.decided:
                rule, assigned = decision.rule, decision.assigned
                if decision.example.namespace != "param" or rule is None or assigned is None:
                    continue
                if isinstance(rule.layout, Replicated) or any(assigned.axes) or resolution.mesh.size == 1:
                    continue
                tensors = [t for t in resolution.tensors_of(decision) if (t.nbytes or 0) >= subject.large]
                if tensors:
                    before = found.get(rule.where)
                    if before is None or _largest(before[1]) < _largest(tensors):
                        found[rule.where] = (rule, tensors, str(resolution.mesh))
    for rule, tensors, mesh in found.values():
        held = bytes_text(_largest(tensors))
        yield Finding(
            "SHD304",
            "warning",
            f"every device of {mesh} holds {listed(names_of(tensors), 4)} whole: {held}",
            rule.layout_at,
            help=f"split a dim of it, or say that it is meant: `{rule.pattern.text}: replicated`",
            tensor=tensors[0].name,
            count=len(tensors),
            note=note_of(tensors),
        )


def _largest(tensors: Sequence[Tensor]) -> int:
    return max(tensor.nbytes or 0 for tensor in tensors)
