"""`sharddsl rule`: what a finding means, with a bad and a good example, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence

from sharddsl.cli.arguments import Parser
from sharddsl.cli.page import page_width
from sharddsl.lint.codes import codes_of


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    explain(options.words, options.format)
    return 0


def make_parser() -> Parser:
    """The options of `rule`."""
    parser = Parser(
        "rule",
        "Print the page of each code: what is found and why, a bad and a good example, how to\n"
        "mend it. Without a code, a line for each there is.",
        with_config=False,
    )
    parser.add_argument("words", nargs="*", metavar="CODE", help="a code, a name, the beginning of codes, or ALL")
    parser.add_argument(
        "--format", choices=["text", "markdown", "json"], default="text", help="how pages are written (default: text)"
    )
    return parser


def explain(words: Sequence[str], form: str = "text") -> None:
    """Print the pages of the codes that these words name; without words, a list of all."""
    from sharddsl.lint.pages import document, page_of, pages, to_markdown, to_text

    each = [page_of(code) for code in sorted(codes_of(words))] if words else list(pages())
    match form:
        case "json":
            import json
            from dataclasses import asdict

            print(json.dumps([asdict(page) for page in each], indent=2))
        case "markdown":
            print("\n".join(map(to_markdown, each)) if words else document(), end="")
        case _ if words:
            print("\n\n".join(to_text(page, min(page_width(), 100)) for page in each), end="")
        case _:
            widest = max(len(page.name) for page in each)
            print("\n".join(f"{page.code}  {page.name:<{widest}}  {page.severity}" for page in each))
