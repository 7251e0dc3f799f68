"""The syntax tree of a `.shard` file: what was written, before any name is looked up.

Nodes are immutable and compare by meaning, not by place: `span` takes no part in equality, so that a tree and the tree
of its printed text are equal. Names stay text here; what they stand for (an axis, a `let`, a dim) is `spec`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sharddsl.findings import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Node:
    """Anything that stands somewhere in a text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# ---------------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Number(Node):
    """`80`, `0.5`, `80 GiB`: the number as written, and its unit."""

    value: int | float
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Word(Node):
    """`kv_heads`, `memory.peak`, `mesh.seq`, `tied`, `decode`: a name, dotted or not."""

    text: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-x`, `not x`."""

    op: Literal["-", "not"]
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`a + b`, `a < b`, `a and b`: operators of equal rank group from the left; comparisons do not chain."""

    op: Literal["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"]
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """`over=mp`, `over=(dp, fsdp)`, `of=act.mlp.*`, `at=embed`, `in=fwd`: a keyword, and a pattern or a name tuple."""

    name: str
    value: Pattern | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`count(all_gather, over=mp, of=act)`; `kind` is the collective, or None for all of them."""

    function: str
    kind: str | None
    arguments: tuple[Argument, ...] = ()


Expr = Number | Word | Unary | Binary | Call


# ------------------------------------------------------------------------------------------------------------- patterns


@dataclass(frozen=True, slots=True)
class Segment(Node):
    """One segment of a pattern: a glob (`w_{in, gate}` normalised to `w_{in,gate}`), `**`, or literal text.

    `quoted` marks a segment written as a string or an integer: its text is taken as it is, without globs.
    `layers` is the half-open range of a subscript: `[0:4]` is (0, 4), `[3]` is (3, 4), `[:4]` is (None, 4).
    """

    text: str
    quoted: bool = False
    layers: tuple[int | None, int | None] | None = None


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """`mlp.w_in`, `/embed.w`, `opt./mu.embed.w`: segments as written, a leading namespace included.

    `root` is the index of the segment before which `/` stands (0 for `/embed.w`, 1 for `opt./mu.embed.w`), or None.
    """

    segments: tuple[Segment, ...]
    root: int | None = None


# -------------------------------------------------------------------------------------------------------------- layouts


@dataclass(frozen=True, slots=True)
class AxisName(Node):
    """`fsdp`, `mp?`: an axis, or a `let` that stands for one (or, outside a tuple, for a tuple of them)."""

    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class AxisTuple(Node):
    """`(dp, fsdp)`, `(a, b)?`, `(a, b?)`: one dim over several axes, major first."""

    axes: tuple[AxisName, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Whole(Node):
    """`None`: this dim is not split."""


@dataclass(frozen=True, slots=True)
class Open(Node):
    """`*`: left to the compiler."""


@dataclass(frozen=True, slots=True)
class Fill(Node):
    """`...`: as many `None` as the rank needs."""


Entry = AxisName | AxisTuple | Whole | Open | Fill


@dataclass(frozen=True, slots=True)
class Positional(Node):
    """`[fsdp, mp]`."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class DimEntry(Node):
    """`embed: fsdp` within a named layout."""

    dim: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Named(Node):
    """`{embed: fsdp, heads: mp}`; `inherit` where it begins with `..`."""

    entries: tuple[DimEntry, ...]
    inherit: bool = False


@dataclass(frozen=True, slots=True)
class Replicated(Node):
    """`replicated`."""


@dataclass(frozen=True, slots=True)
class Follow(Node):
    """`follow`: the param's layout."""


@dataclass(frozen=True, slots=True)
class LayoutName(Node):
    """A `let` name where a layout stands."""

    name: str


LayoutExpr = Positional | Named | Replicated | Follow | LayoutName


# ----------------------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Rename(Node):
    """`mp=model` after `extends … with`: the base's axis `old` is called `new` here."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Extends(Node):
    """`extends "llama/fsdp" with mp=model`."""

    target: str
    renames: tuple[Rename, ...] = ()


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`let data = (dp, fsdp)`: the value is an axis or another let (`AxisName`), a tuple, or a layout."""

    name: str
    value: AxisName | AxisTuple | LayoutExpr


@dataclass(frozen=True, slots=True)
class MeshAxis(Node):
    """`dp=1 @dcn`, `fsdp=32 @dcn(4)`. `dcn` is "whole", the factor that crosses, or None where none does."""

    name: str
    size: int
    dcn: int | Literal["whole"] | None = None


@dataclass(frozen=True, slots=True)
class Mesh(Node):
    """`mesh: [dp=1 @dcn, fsdp=-1, mp=2] allow_idle`."""

    axes: tuple[MeshAxis, ...]
    allow_idle: bool = False


@dataclass(frozen=True, slots=True)
class Rule(Node):
    """`mlp.w_in: [fsdp, mp] @pinned_host`; `memory` is the memory kind after `@`."""

    pattern: Pattern
    layout: LayoutExpr
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class Block(Node):
    """`attn { wo: … }`: the body's patterns are prefixed."""

    pattern: Pattern
    body: tuple[Rule | Block | When, ...]


@dataclass(frozen=True, slots=True)
class When(Node):
    """`when mp > kv_heads { … }`."""

    condition: Expr
    body: tuple[Rule | Block | When, ...]


@dataclass(frozen=True, slots=True)
class Expect(Node):
    """`expect memory.peak <= 80 GiB`."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class SizedAxis(Node):
    """`fsdp=16` within a check's mesh; -1 is allowed as in `mesh:`."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Check(Node):
    """`check llama3_8b on [fsdp=16] target "v5p:4x4x4" batch 64 seq 8192 mode train run bf16 { expect … }`."""

    model: str
    mesh: tuple[SizedAxis, ...] | None = None
    target: str | None = None
    batch: int | None = None
    seq: int | None = None
    mode: str | None = None
    run: str | None = None
    body: tuple[Expect, ...] = ()


Statement = Extends | Let | Mesh | Rule | Block | When | Check | Expect


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """A comment's text from `#` on; `own_line` where nothing stands before it. Kept beside the tree."""

    text: str
    own_line: bool


@dataclass(frozen=True, slots=True)
class File(Node):
    """The statements of a text, in order, and its comments, which are no part of what it means."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...] = field(default=(), compare=False)
