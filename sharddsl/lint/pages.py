"""Each code's page: the docstring of the module that is named for it, in `lint.rules` or `layout.rules`.

A page begins with `SHD106 axis-never-used (warning)`; what and why, a bad and a good example, and a remedy follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from textwrap import fill, indent

from sharddsl.findings import NAMES

PACKAGES = ("sharddsl.lint.rules", "sharddsl.layout.rules")
_TITLE = re.compile(r"(?P<code>SHD\d{3}) (?P<name>[a-z-]+) \((?P<severity>[^)]+)\)")
_FENCED = re.compile(r"^```\w+\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """What is to be known of one code. `severity` is in words, as some codes are an error here and a warning there;
    `body` is Markdown."""

    code: str
    name: str
    severity: str
    body: str


def page_of(code: str) -> Page:
    """The page of a code of `findings.NAMES`."""
    title, _, body = (import_module(_module_of(code)).__doc__ or "").partition("\n\n")
    said = _TITLE.fullmatch(title)
    if said is None or (said["code"], said["name"]) != (code, NAMES[code]):
        raise ValueError(f"{_module_of(code)}: its docstring does not begin as the page of {code} {NAMES[code]}")
    return Page(code, NAMES[code], said["severity"], body)


def pages() -> Iterator[Page]:
    """All pages, in the order of their codes."""
    yield from map(page_of, written())


def written() -> list[str]:
    """The codes that have a page."""
    return [code for code in sorted(NAMES) if _found(code)]


def _module_of(code: str) -> str:
    found = _found(code)
    if not found:
        raise LookupError(f"{code} {NAMES[code]} has no page: no module of {' or '.join(PACKAGES)} has its name")
    return found[0]


def _found(code: str) -> list[str]:
    modules = (f"{package}.{NAMES[code].replace('-', '_')}" for package in PACKAGES)
    return [module for module in modules if find_spec(module) is not None]


def to_text(page: Page, width: int = 100) -> str:
    """A page for a terminal of so many columns: examples are set off by four spaces, what is between them is filled."""
    blocks = [f"{page.code} {page.name} ({page.severity})"]
    for number, part in enumerate(_FENCED.split(page.body)):
        blocks += [indent(part.rstrip(), "    ")] if number % 2 else _filled(part, width)
    return "\n\n".join(blocks) + "\n"


def _filled(text: str, width: int) -> Iterator[str]:
    """The paragraphs of a text, with as many words to a line as there is room for."""
    for paragraph in filter(None, text.strip().split("\n\n")):
        yield fill(paragraph, width, break_long_words=False, break_on_hyphens=False)


def to_markdown(page: Page) -> str:
    """A page as a section of a Markdown document."""
    return f"## {page.code} {page.name}\n\nSeverity: {page.severity}.\n\n{page.body}"


DOCUMENT = """\
# Rules

Every finding has a code and a name, and both may be written wherever one is asked for: `--select`, `--ignore`,
`# shd: ignore[…]`, `[tool.sharddsl.lint]`. `sharddsl rule CODE` prints a page of these.

"""


def document() -> str:
    """All pages as one Markdown document, with a table of them in front: what `docs/rules.md` holds."""
    each = list(pages())
    rows = [f"| [{p.code}](#{p.code.lower()}-{p.name}) | {p.name} | {p.severity} |\n" for p in each]
    table = "".join(["| code | name | severity |\n| --- | --- | --- |\n", *rows])
    return DOCUMENT + "\n".join([table, *map(to_markdown, each)])
