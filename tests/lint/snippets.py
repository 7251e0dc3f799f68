"""Snippets of a rule's test file: a spec, what is found in it and, where there is a fix, what comes of it.

```
== the title
mesh: [fsdp=4, mp=2]
*: {embed: fsdp}
check llama_tiny batch 8 seq 64
-- found
1:16-20 warning SHD106 mp=2 splits no tensor: the 2 devices along it do the same work
  help: split a dim over it, as in `act: {batch: mp}`, or give its devices to another axis
-- fixed
what the text is after the fixes of the file's code
```

`-- clean` says that nothing is found. `-- tensors` (lines as `tests.layout.cases.tensors` reads them) stands for the
checks, `-- rules` holds overrides of the command line, `-- golden` is the golden file of the spec (empty: it is
missing), and `-- devices 8` is the device count. Everything that is found in the snippet is listed, of every code, in
order; a help that is listed is compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_SECTIONS = {"found", "clean", "fixed", "tensors", "rules", "golden"}
FOLDER = Path(__file__).with_name("rules")


@dataclass(frozen=True)
class Snippet:
    title: str
    text: str
    found: tuple[str, ...]
    """A finding each: its first line, and its help if that is compared."""
    fixed: str | None
    tensors: tuple[str, ...]
    rules: tuple[str, ...]
    devices: int | None
    golden: str | None


def snippets(file: Path) -> list[Snippet]:
    parts = re.split(r"^== (.*)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert not parts[0].strip(), f"{file}: text before the first title"
    return [_snippet(title, body) for title, body in zip(parts[1::2], parts[2::2], strict=True)]


def _snippet(title: str, body: str) -> Snippet:
    text, *parts = re.split(r"^-- (.*)\n", body.rstrip("\n") + "\n", flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    devices = [int(name.partition(" ")[2]) for name in sections if name.startswith("devices ")]
    unknown = [
        n
        for n in sections
        if n not in {"found", "clean", "fixed", "tensors", "rules", "golden"} and n[:8] != "devices "
    ]
    assert not unknown, f"{title}: no section is called {unknown}"
    assert ("found" in sections) != ("clean" in sections), f"{title}: either `-- found` or `-- clean`"
    found = re.split(r"\n(?! )", sections.get("found", "").rstrip("\n")) if "found" in sections else []
    return Snippet(
        title,
        text,
        tuple(found),
        sections.get("fixed"),
        tuple(sections.get("tensors", "").splitlines()),
        tuple(sections.get("rules", "").splitlines()),
        devices[0] if devices else None,
        sections.get("golden"),
    )
