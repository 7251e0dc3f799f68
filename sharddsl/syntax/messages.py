"""What was found and what could stand there, in a person's words.

`explain` first looks for the mistakes that people make (a table of functions, of which the first that recognises one
answers), and else lists what the parser would have accepted. Terminal names never reach a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sharddsl.syntax.pieces import begins_statement
from sharddsl.syntax.problem import shortened

_FOUND = re.compile(
    r"""[A-Za-z_]\w*|[0-9]+(?:\.[0-9]+)?|"(?:[^"\\\n]|\\["\\])*"|'[^'\n]*'|\.{2,3}|[=!<>]=|&&|\|\||//|.""", re.DOTALL
)

PHRASES: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(terminals.split()), phrase)
    for terminals, phrase in [
        ("LET MESH EXTENDS CHECK EXPECT WHEN GLOB STRING SLASH $END", "a statement"),
        ("LET MESH EXTENDS CHECK EXPECT WHEN GLOB STRING SLASH", "a statement"),
        ("WHEN GLOB STRING SLASH", "a rule|a block|`when`"),
        ("GLOB STRING SLASH LPAR", "a pattern|`(axis, …)`"),
        ("GLOB STRING SLASH", "a pattern"),
        ("GLOB STRING", "the next segment of the pattern"),
        ("LSQB LBRACE REPLICATED FOLLOW NAME LPAR", "an axis|a tuple of axes|a layout"),
        ("LSQB LBRACE REPLICATED FOLLOW NAME", "a layout (`[…]`, `{…}`, `replicated`, `follow`, a `let` name)"),
        ("NAME NONE LPAR STAR ELLIPSIS", "an axis|`(axis, …)`|`None`|`*`|`...`"),
        ("NAME NONE LPAR STAR", "an axis|`(axis, …)`|`None`|`*`"),
        ("NUMBER WORD LPAR MINUS NOT", "an expression"),
        ("NUMBER WORD LPAR MINUS", "a number|a name|`(`"),
        ("COMPARISON PLUS MINUS STAR SLASH PERCENT AND OR", "an operator"),
        ("PLUS MINUS STAR SLASH PERCENT AND OR", "an operator that is no comparison"),
        ("PLUS MINUS STAR SLASH PERCENT", "an operator"),
        ("ON TARGET BATCH SEQ MODE RUN", "a part of the check (`on`, `target`, `batch`, `seq`, `mode`, `run`)"),
        ("NEWLINE $END", "the end of the line"),
        ("NEWLINE", "the end of the line"),
        ("$END", "the end of the line"),
        ("RSQB", "`]`"),
        ("RPAR", "`)`"),
        ("RBRACE", "`}`"),
        ("COMMA", "`,`"),
        ("COLON", "`:`"),
        ("EQUAL", "`=`"),
        ("DOT", "`.`"),
        ("LSQB", "`[`"),
        ("LPAR", "`(`"),
        ("LBRACE", "`{`"),
        ("QMARK", "`?`"),
        ("AT", "`@`"),
        ("INHERIT", "`..`"),
        ("ALLOW_IDLE", "`allow_idle`"),
        ("WITH", "`with`"),
        ("EXPECT", "`expect`"),
        ("NAME STRING", "a name"),
        ("NAME", "a name"),
        ("STRING", 'text in double quotes (`"…"`)'),
        ("INT", "a whole number"),
        ("SIGNED", "a whole number, or -1 for what is left of the devices"),
        ("OR", "`or`"),
        ("AND", "`and`"),
        ("NOT", "`not`"),
        ("COMPARISON", "a comparison"),
        ("STAR", "`*`"),
        ("SLASH", "`/`"),
        ("PLUS", "`+`"),
        ("MINUS", "`-`"),
        ("PERCENT", "`%`"),
        ("LET", "`let`"),
        ("MESH", "`mesh`"),
        ("WHEN", "`when`"),
        ("CHECK", "`check`"),
        ("EXTENDS", "`extends`"),
        ("REPLICATED", "`replicated`"),
        ("FOLLOW", "`follow`"),
        ("NONE", "`None`"),
        ("ELLIPSIS", "`...`"),
        ("GLOB", "a pattern"),
        ("WORD", "a name"),
        ("NUMBER", "a number"),
        ("ON", "`on`"),
        ("TARGET", "`target`"),
        ("BATCH", "`batch`"),
        ("SEQ", "`seq`"),
        ("MODE", "`mode`"),
        ("RUN", "`run`"),
    ]
)
"""What a set of terminals is called, where the parser would accept all of them; larger sets first. `|` parts
alternatives."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the parser stopped in a statement: the offset, what it would have accepted, and the bracket it is in."""

    text: str
    offset: int
    accepted: frozenset[str]
    inside: tuple[str, int] | None
    """The innermost bracket that is open there, and its offset."""

    @property
    def found(self) -> str:
        """The token at the stop, as written; empty at the end of the statement."""
        match = _FOUND.match(self.text, self.offset)
        return match[0] if match and match[0] != "\n" else ""


@dataclass(frozen=True, slots=True)
class Words:
    """A message with its place in the statement, and what would work."""

    message: str
    start: int
    end: int
    remedy: str | None = None


def explain(stop: Stop) -> Words:
    """The message for a stop."""
    for recognise in _MISTAKES:
        words = recognise(stop)
        if words is not None:
            return words
    return _at(stop, f"expected {wanted(stop.accepted)}, found {_quoted(stop.found)}")


def wanted(accepted: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`: what could stand there."""
    left = set(accepted)
    phrases: list[str] = []
    for terminals, phrase in PHRASES:
        if terminals <= left:
            left -= terminals
            phrases += [choice for choice in phrase.split("|") if choice not in phrases]
    if len(phrases) > 1:
        return f"{', '.join(phrases[:-1])} or {phrases[-1]}"
    return phrases[0] if phrases else "nothing more"


def _quoted(found: str) -> str:
    if not found:
        return "the end of the line"
    shown = shortened(found)
    return f"`{shown}`" if shown.isprintable() and shown.strip() else f"the character U+{ord(found[0]):04X}"


def _at(stop: Stop, message: str, remedy: str | None = None) -> Words:
    return Words(message, stop.offset, stop.offset + max(1, len(stop.found)), remedy)


# ------------------------------------------------------------------------------------------------ what people get wrong


_ENDS = frozenset({"NEWLINE", "$END"})

_TEXT_BEGUN = re.compile(r'"(?:[^"\\\n]|\\["\\])*')


def _open_string(stop: Stop) -> Words | None:
    if stop.found == '"':
        readable = _TEXT_BEGUN.match(stop.text, stop.offset)
        if readable is not None and stop.text[readable.end() : readable.end() + 1] == "\\":
            message = 'in double quotes a `\\` stands before `"` or another `\\` only'
            return Words(message, readable.end(), readable.end() + 1, "write `\\\\` for the character itself")
        return _at(stop, 'text in double quotes does not end on this line: expected a closing `"`')
    return None


def _quoted_axis(stop: Stop) -> Words | None:
    if stop.found[:1] in ("'", '"') and len(stop.found) > 2 and stop.inside is not None and "NAME" in stop.accepted:
        name = shortened(stop.found[1:-1])
        return _at(stop, f"names are written without quotes: `{name}`, not {shortened(stop.found)}")
    return None


def _single_quotes(stop: Stop) -> Words | None:
    if stop.found[:1] == "'" and len(stop.found) > 1:
        inside = shortened(stop.found[1:-1])
        if "STRING" in stop.accepted:
            return _at(stop, f'quotes are double here: "{inside}", not {shortened(stop.found)}')
    return None


def _partition_spec(stop: Stop) -> Words | None:
    near = max(0, stop.offset - 80)
    before = re.search(r"[:=]\s*(\w+)$", stop.text[near : stop.offset])
    written = _PARTITION_SPEC.match(stop.text, near + before.start(1)) if before else None
    if written is None:
        return None
    return Words(
        "a layout is not written as a PartitionSpec",
        written.start(),
        written.end() - 1,
        "write the entries in brackets, names without quotes: `[fsdp, None]` for `P('fsdp', None)`",
    )


_PARTITION_SPEC = re.compile(r"(?:\w+\.){0,4}(?:P|PS|PartitionSpec)\(")


def _chained(stop: Stop) -> Words | None:
    if re.fullmatch(r"[<>]|[=!<>]=", stop.found) and "PLUS" in stop.accepted and "COMPARISON" not in stop.accepted:
        return _at(stop, "comparisons do not chain", "write both and join them: `a < b and b < c`")
    return None


def _equals_in_expression(stop: Stop) -> Words | None:
    if stop.found == "=" and "COMPARISON" in stop.accepted:
        return _at(stop, "`=` compares nothing", "write `==`")
    return None


def _other_operators(stop: Stop) -> Words | None:
    words = {"&&": "and", "||": "or", "&": "and", "|": "or", "!": "not"}
    if stop.found in words and words[stop.found].upper() in stop.accepted:
        return _at(stop, f"`{stop.found}` is no operator here", f"write `{words[stop.found]}`")
    return None


def _other_comments(stop: Stop) -> Words | None:
    if stop.found == "//" or stop.text.startswith("/*", stop.offset):
        return _at(stop, "a comment begins with `#`")
    return None


def _equals_for_colon(stop: Stop) -> Words | None:
    if stop.found == "=" and "COLON" in stop.accepted:
        what = "a dim and its axis" if stop.inside else "a pattern and its layout"
        return _at(stop, f"expected `:` between {what}, found `=`")
    return None


def _colon_for_equals(stop: Stop) -> Words | None:
    if stop.found == ":" and "EQUAL" in stop.accepted:
        return _at(stop, "expected `=`, found `:`")
    return None


def _subscript(stop: Stop) -> Words | None:
    """`attn.wq [fsdp, mp]` reads as the beginning of a layer subscript."""
    if stop.inside is None or stop.inside[0] != "[" or not {"INT", "COLON"} <= stop.accepted or not stop.found:
        return None
    where = stop.inside[1]
    if stop.found == "-":
        return _at(stop, "layers are counted from 0, from the first one on: expected a whole number")
    if _SUBSCRIPT.match(stop.text, where):
        return _at(stop, f"expected a layer's number or a range such as `0:4`, found {_quoted(stop.found)}")
    return Words("expected `:` between a pattern and its layout", where, where + 1, "write `pattern: […]`")


_SUBSCRIPT = re.compile(r"\[[^\]\n]*\]\s*[.:\[{]")


def _missing_colon(stop: Stop) -> Words | None:
    if {"COLON", "DOT"} <= stop.accepted and re.match(r"replicated\b|follow\b|\(", stop.found):
        return _at(stop, "expected `:` between a pattern and its layout")
    return None


def _not_as_operand(stop: Stop) -> Words | None:
    if "COMPARISON" in stop.accepted or "PLUS" in stop.accepted:
        near = max(0, stop.offset - 80)
        word = re.search(r"\bnot(\s*)$", stop.text[near : stop.offset])
        if word:
            start = near + word.start()
            return Words("`not` binds looser than a comparison", start, start + 3, "put it in parentheses: `(not a)`")
    return None


def _wrong_tuple(stop: Stop) -> Words | None:
    if stop.found == ")" and "NAME" in stop.accepted and stop.text[: stop.offset].rstrip().endswith("("):
        return _at(stop, "a tuple holds at least one axis")
    if stop.found == "(" and stop.inside and stop.inside[0] == "(" and "NAME" in stop.accepted:
        return _at(stop, "a tuple of axes cannot hold another one")
    return None


def _tuple_as_layout(stop: Stop) -> Words | None:
    if stop.found == "(" and {"LSQB", "REPLICATED"} <= stop.accepted:
        return _at(stop, "a tuple of axes is an entry, not a layout", "write it in brackets: `[(dp, fsdp)]`")
    return None


def _inherit_not_first(stop: Stop) -> Words | None:
    if stop.found == ".." and stop.inside and stop.inside[0] == "{" and "NAME" in stop.accepted:
        return _at(stop, "`..` comes first in a layout: `{.., dim: axis}`")
    return None


def _wrong_closer(stop: Stop) -> Words | None:
    pairs = {")": "(", "]": "[", "}": "{"}
    if stop.found not in pairs:
        return None
    if stop.inside is None:
        return _at(stop, f"`{stop.found}` closes nothing")
    if stop.inside[0] != pairs[stop.found]:
        return _at(stop, f"`{stop.found}` cannot close `{stop.inside[0]}`: expected {wanted(stop.accepted)}")
    return None


def _unclosed(stop: Stop) -> Words | None:
    if stop.found or stop.inside is None:
        return None
    bracket, where = stop.inside
    return Words(f"`{bracket}` is never closed: expected {wanted(stop.accepted - _ENDS)}", where, where + 1)


def _two_on_a_line(stop: Stop) -> Words | None:
    if "NEWLINE" not in stop.accepted:
        return None
    if stop.found == ";":
        return _at(stop, "statements are not separated by `;`", "begin the next statement on its own line")
    if begins_statement(stop.text, stop.offset):
        return _at(stop, "a statement begins on its own line", f"break the line before `{shortened(stop.found)}`")
    return None


_MISTAKES: tuple[Callable[[Stop], Words | None], ...] = (
    _open_string,
    _partition_spec,
    _quoted_axis,
    _single_quotes,
    _wrong_tuple,
    _tuple_as_layout,
    _inherit_not_first,
    _chained,
    _equals_in_expression,
    _other_operators,
    _other_comments,
    _subscript,
    _missing_colon,
    _not_as_operand,
    _equals_for_colon,
    _colon_for_equals,
    _wrong_closer,
    _unclosed,
    _two_on_a_line,
)
