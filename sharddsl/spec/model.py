"""A validated spec: what a `.shard` file says once every name in it is resolved.

`let` names are replaced, `extends` is followed, blocks are flattened and conditions hang on the rules they guard. What
remains depends on nothing but the tensors and the mesh sizes it is resolved against (`layout`). The models are frozen,
refuse unknown fields, and `Spec.model_json_schema()` is the published schema.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sharddsl.findings import Location

Namespace = Literal["param", "grad", "opt", "act", "batch", "cache"]
NAMESPACES: tuple[Namespace, ...] = ("param", "grad", "opt", "act", "batch", "cache")
Mode = Literal["train", "prefill", "decode"]


class Model(BaseModel):
    """Frozen, and strict about unknown fields. Validators are built at a model's first use: most programs use few."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# ----------------------------------------------------------------------------------------------------------------- mesh


class MeshAxis(Model):
    """One axis. `size` -1 is inferred from the device count. `dcn` is the factor of it that crosses the slow network
    between hosts or slices ("whole": all of it)."""

    name: str
    size: Annotated[int, Field(ge=-1)]
    dcn: Annotated[int, Field(ge=1)] | Literal["whole"] | None = None
    where: Location | None = None


class Mesh(Model):
    """The axes, major to minor. `allow_idle`: fewer devices than there are is meant."""

    axes: tuple[MeshAxis, ...]
    allow_idle: bool = False
    where: Location | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)


# ------------------------------------------------------------------------------------------------------------- patterns


class Segment(Model):
    """A glob (`*`, `{a,b}` alternatives), `**`, or, where `literal`, text without globs. `layers` is the half-open
    range of a layer subscript, None at an open end."""

    text: str
    literal: bool = False
    layers: tuple[int | None, int | None] | None = None


class Pattern(Model):
    """Which tensors of a namespace: a path that ends in these segments, or is them from its root on if `rooted`.
    No segments (or a lone `*`) is every tensor of the namespace. `text` is the pattern as a person would write it,
    with the prefixes of its blocks."""

    namespace: Namespace
    segments: tuple[Segment, ...]
    rooted: bool = False
    text: str


# -------------------------------------------------------------------------------------------------------------- layouts


class AxisRef(Model):
    """An axis of the mesh; `optional` (`?`) where it may be dropped if it does not fit."""

    name: str
    optional: bool = False
    where: Location | None = None


class Axes(Model):
    """One dim over these axes, major first; none is replicated. `optional` on the tuple drops it whole."""

    kind: Literal["axes"] = "axes"
    axes: tuple[AxisRef, ...] = ()
    optional: bool = False
    where: Location | None = None


class Open(Model):
    """`*`: this dim is left to the compiler (`PartitionSpec.UNCONSTRAINED`)."""

    kind: Literal["open"] = "open"
    where: Location | None = None


class Fill(Model):
    """`...`: as many replicated dims as the rank needs."""

    kind: Literal["fill"] = "fill"
    where: Location | None = None


Entry = Annotated[Axes | Open | Fill, Field(discriminator="kind")]


class Positional(Model):
    """An entry per dim of one layer's tensor, in order. Missing trailing dims are replicated."""

    kind: Literal["positional"] = "positional"
    entries: tuple[Entry, ...]


class DimEntry(Model):
    dim: str
    entry: Entry
    where: Location | None = None


class Named(Model):
    """Entries by dim name. Dims not listed are replicated, or, if `inherit` (`..`), as the previous winner has them."""

    kind: Literal["named"] = "named"
    entries: tuple[DimEntry, ...]
    inherit: bool = False


class Replicated(Model):
    """Whole on every device, on purpose."""

    kind: Literal["replicated"] = "replicated"


class Follow(Model):
    """The param's layout (for `grad` and `opt`)."""

    kind: Literal["follow"] = "follow"


LayoutSpec = Annotated[Positional | Named | Replicated | Follow, Field(discriminator="kind")]


# ---------------------------------------------------------------------------------------------------------- expressions


class Number(Model):
    """A number in base units: a unit such as GiB is already multiplied in."""

    kind: Literal["number"] = "number"
    value: int | float


class Name(Model):
    """A dim, an axis (`mesh.seq`), `tied`, `mode`, `devices`, `hosts`, a quantity (`memory.peak`), or a mode's word."""

    kind: Literal["name"] = "name"
    text: str


class Unary(Model):
    kind: Literal["unary"] = "unary"
    op: Literal["-", "not"]
    operand: Expr


class Binary(Model):
    kind: Literal["binary"] = "binary"
    op: Literal["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"]
    left: Expr
    right: Expr


class CollectiveQuery(Model):
    """`count(…)` or `bytes(…)` over the collectives of the program; an absent argument does not filter."""

    kind: Literal["collectives"] = "collectives"
    function: Literal["count", "bytes"]
    collective: Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"] | None = None
    over: tuple[str, ...] = ()
    of: Pattern | None = None
    during: Literal["fwd", "remat", "bwd", "update", "step"] | None = None
    at: Literal["embed", "layer", "head", "update"] | None = None


Expr = Annotated[Number | Name | Unary | Binary | CollectiveQuery, Field(discriminator="kind")]


class Condition(Model):
    """A `when` or `expect` expression, with its text for messages."""

    expr: Expr
    text: str
    where: Location | None = None


# ---------------------------------------------------------------------------------------------------------------- rules


class Rule(Model):
    """One rule, ready to match. It applies if every one of `conditions` is true; of the rules that match a tensor
    the last one wins, whole. `origin` says how close it is: 0 for the file itself, 1 for its base, 2 for that one's
    base, …, and -1 for the command line."""

    pattern: Pattern
    layout: LayoutSpec
    memory: str | None = None
    conditions: tuple[Condition, ...] = ()
    where: Location
    """The whole statement; `pattern_at` and `layout_at` are its parts."""
    pattern_at: Location
    layout_at: Location
    origin: int = 0


class CheckAxis(Model):
    name: str
    size: Annotated[int, Field(ge=-1)]


class Check(Model):
    """One case that the linter resolves and `check` compiles. Axes not named keep the file's size."""

    model: str
    mesh: tuple[CheckAxis, ...] | None = None
    target: str | None = None
    batch: Annotated[int, Field(ge=1)] | None = None
    seq: Annotated[int, Field(ge=1)] | None = None
    mode: Mode = "train"
    run: str | None = None
    expect: tuple[Condition, ...] = ()
    where: Location | None = None


class Spec(Model):
    """A whole spec. `mesh` is None for a fragment, which must be extended before it can place anything."""

    name: str
    mesh: Mesh | None = None
    rules: tuple[Rule, ...] = ()
    checks: tuple[Check, ...] = ()
    expect: tuple[Condition, ...] = ()
