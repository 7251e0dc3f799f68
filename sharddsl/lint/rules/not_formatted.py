"""SHD006 not-formatted (info)

The text is not in the one style: `sharddsl fmt` would change it. What it says is the same; that it looks the same
everywhere makes the next change a small diff.

Bad:

```shard
mesh: [fsdp = 4]
*:{embed:fsdp}
act: { batch:fsdp }
cache: {batch: fsdp}
check llama3_8b batch 64 seq 2048
```

Good:

```shard
mesh: [fsdp=4]
*:     {embed: fsdp}
act:   {batch: fsdp}
cache: {batch: fsdp}
check llama3_8b batch 64 seq 2048
```

How to mend it: `sharddsl fmt`, or `sharddsl lint --fix`. To leave it to `fmt --check` alone, ignore the code in the
project's settings.
"""

from __future__ import annotations

from dataclasses import replace

from sharddsl.findings import Edit, Finding, Location, ShardError, Span
from sharddsl.lint.judge import Judged, Report
from sharddsl.syntax.format import formatted

CODE = "SHD006"


def added(report: Report) -> Report:
    """The report with SHD006, if its text would change; of one that cannot be read nothing is said."""
    finding = finding_in(report.source, report.sources.get(report.source, ""))
    return report if finding is None else replace(report, findings=(*report.findings, Judged(finding)))


def finding_in(source: str, text: str) -> Finding | None:
    """SHD006 at the first line that would change."""
    try:
        after = formatted(text, source)
    except ShardError:
        return None
    if text == after:
        return None
    old, new = text.split("\n"), after.split("\n")
    differ = [n for n, line in enumerate(old, start=1) if n > len(new) or line != new[n - 1]]
    first = differ[0] if differ else len(old)
    lines = f"{len(differ)} lines" if len(differ) > 1 else "a line"
    return Finding(
        CODE,
        "info",
        f"not in the style of `sharddsl fmt`, which would change {lines}",
        Location(source, Span(first, 1, first, max(2, len(old[first - 1]) + 1))),
        help="sharddsl fmt, or sharddsl lint --fix",
        fix=(Edit(Location(source, Span(1, 1, len(old) + 1, 1)), after),),
    )
