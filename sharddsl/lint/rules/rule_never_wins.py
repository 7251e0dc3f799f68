"""SHD203 rule-never-wins (warning)

A rule of which no tensor takes anything: whatever it matches, a later rule matches too, and the last one wins.

Bad, as the second rule has the first one's tensors and more:

```shard
mesh: [fsdp=4]
mlp.w_in: [fsdp, None]
*: {embed: fsdp}
act: {batch: fsdp}
```

Good, from the general to the particular:

```shard
mesh: [fsdp=4]
*: {embed: fsdp}
mlp.w_in: [fsdp, None]
act: {batch: fsdp}
```

How to mend it: move the rule behind the one that shadows it, or remove it. A rule counts as winning where a later one
takes it over with `..`, in any case and mode of the file. One that is shadowed from the command line, or in a file that
extends this one, is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sharddsl.findings import Finding, Location
from sharddsl.layout.entries import chain
from sharddsl.layout.words import listed
from sharddsl.lint.subject import Subject
from sharddsl.spec.model import Rule
from sharddsl.spec.removal import removal


def findings(subject: Subject) -> Iterator[Finding]:
    """SHD203, for each rule of the file itself that matches tensors and places none."""
    shadows: dict[Location, dict[Location, Rule]] = {}
    alive: set[Location] = set()
    sources: dict[str, str] = {}
    for resolution in (resolution for case in subject.cases for resolution in case.resolutions):
        sources |= resolution.sources
        for decision in resolution.decided:
            rules = [resolution.rules[number] for number in decision.matches.rules]
            own = [rule for rule in rules if rule.origin != -1]
            if not own:
                continue
            places = chain(own)
            alive |= {rule.where for rule in places}
            for rule in own[: len(own) - len(places)]:
                shadows.setdefault(rule.where, {})[places[-1].where] = places[-1]
    for rule in subject.spec.rules:
        if rule.origin == 0 and rule.where in shadows and rule.where not in alive:
            alive.add(rule.where)  # a rule with alternatives is several, at one place
            yield _finding(rule, tuple(shadows[rule.where].values()), sources)


def _finding(rule: Rule, by: Sequence[Rule], sources: dict[str, str]) -> Finding:
    later = listed(f"`{shadow.pattern.text}` (line {shadow.where.span.line})" for shadow in by)
    return Finding(
        "SHD203",
        "warning",
        f"`{rule.pattern.text}` never wins: every tensor that it matches is placed by {later}",
        rule.where,
        help="the last rule that matches a tensor places it: move this one behind, or remove it",
        related=tuple((shadow.where, "places them") for shadow in by),
        fix=removal(rule.where, sources.get(rule.where.source, "")),
    )
