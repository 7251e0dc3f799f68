"""From text to tree, with every syntax error of the text in one run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lark import UnexpectedInput

from sharddsl.findings import NOWHERE, Finding, Span
from sharddsl.syntax import tree
from sharddsl.syntax.places import comments
from sharddsl.syntax.problem import Problem, syntax_error
from sharddsl.syntax.table import parser

MAX_CHARACTERS = 1_000_000
"""The longest text that is read: some 20,000 rules. A longer one is no spec, and its errors would take long to find."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The statements that could be read, and a finding for each that could not."""

    file: tree.File
    findings: tuple[Finding, ...] = ()


def decode(data: bytes, source: str) -> tuple[str, tuple[Finding, ...]]:
    """The text of a file's bytes, which are UTF-8, with or without a byte-order mark. Anything else is one finding."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    try:
        text = data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: {error.reason} at byte {start + error.start}"
        return "", (syntax_error(message, NOWHERE, source, _REMEDY),)
    if "\0" in text:
        at = start + len(text[: text.index("\0")].encode())
        return "", (syntax_error(f"not a text file: a zero byte at byte {at}", NOWHERE, source, _REMEDY),)
    return text, ()


_REMEDY = "a spec is a UTF-8 text file"


def parse(text: str, source: str = "<text>") -> Parsed:
    """The tree of `text`, and its syntax errors (SHD001) in the order of their places. Never raises on any text.

    Lines end with LF, CRLF or CR. `source` is what findings call the text: a file's path, or an option's name.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"too long: {len(text):,} characters, and a spec may have {MAX_CHARACTERS:,}"
        return Parsed(tree.File(()), (syntax_error(message, Span(1, 1, 1, 2), source),))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        file = _whole(text)
        findings: tuple[Finding, ...] = ()
    except (Problem, UnexpectedInput):
        from sharddsl.syntax.recovery import recover  # most texts have no error: start fast

        file, findings = recover(text, source)
    return Parsed(replace(file, comments=comments(text)), findings)


def parse_rule(text: str, source: str) -> tuple[tree.Rule | None, tuple[Finding, ...]]:
    """The one rule that `text` holds, as an option of the command line gives it, or why it is none."""
    parsed = parse(text, source)
    if parsed.findings:
        return None, parsed.findings
    match parsed.file.statements:
        case (tree.Rule() as rule,):
            return rule, ()
        case ():
            return None, (syntax_error("expected a rule, found nothing", Span(1, 1, 1, 2), source, _RULE_FORM),)
        case (tree.Rule(), second, *_):
            return None, (syntax_error("expected one rule, found more", second.span, source, _RULE_FORM),)
        case (first, *_):
            return None, (syntax_error("expected a rule, found another statement", first.span, source, _RULE_FORM),)
    raise AssertionError("every sequence of statements is one of these")


_RULE_FORM = "a rule is a pattern, `:` and a layout: `attn.wq: [fsdp, mp]`"


def _whole(text: str) -> tree.File:
    file: tree.File = parser().parse(text)  # type: ignore[assignment]
    return file
