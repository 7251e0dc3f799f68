"""Hypothesis strategies for syntax trees: every tree that some text can give, and no other."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from sharddsl.syntax import tree

_NOT_AXES = {"None", "none", "null", "nil", "NONE", "NULL", "replicated", "follow"}
_STARTERS = {"extends", "let", "mesh", "when", "check", "expect"}
_COMMON = ["fsdp", "mp", "dp", "embed", "heads", "attn", "act", "opt", "layers", "batch", "w_in", "on", "seq", "run"]
_OPERATOR_WORDS = {"and", "or", "not"}

names = st.sampled_from(_COMMON) | st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
axis_words = names.filter(lambda name: name not in _NOT_AXES)
quotable = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=6)
sizes = st.integers(min_value=0, max_value=10**12)

# ---------------------------------------------------------------------------------------------------------- expressions

numbers = st.builds(
    tree.Number,
    sizes | st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    st.none() | st.sampled_from(["KiB", "GiB", "GB"]),
)
_plain_words = names.filter(lambda name: name not in _OPERATOR_WORDS)
words = st.builds(
    tree.Word, _plain_words | st.builds(".".join, st.lists(names, min_size=2, max_size=3))
)  # a dotted name may hold any word

globs = st.sampled_from(["*", "**", "w_*", "*norm", "{wq,wk}", "w_{in,gate}", "{a*,0}_b"]) | names


def segments(*, first: bool = False) -> st.SearchStrategy[tree.Segment]:
    """One segment of a pattern; as the first one of a statement it is none of the statements' own words."""
    text = globs.filter(lambda glob: glob not in _STARTERS) if first else globs
    bound = st.none() | st.integers(0, 200)
    layers = st.none() | st.tuples(bound, bound)
    literal = quotable | st.sampled_from(["0", "12", "layer norm", "a.b"])
    return st.builds(tree.Segment, text, st.just(False), layers) | st.builds(
        tree.Segment, literal, st.just(True), layers
    )


@st.composite
def patterns(draw: st.DrawFn) -> tree.Pattern:
    rest = draw(st.lists(segments(), max_size=3))
    first = draw(segments(first=True))
    root = draw(st.none() | st.integers(0, len(rest)))
    return tree.Pattern((first, *rest), root)


arguments = st.builds(tree.Argument, names, patterns() | st.lists(names, min_size=1, max_size=3).map(tuple))
calls = st.builds(
    tree.Call,
    _plain_words,
    st.none() | st.sampled_from(["all_gather", "permute"]),
    st.lists(arguments, max_size=3).map(tuple),
)
_OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"]
expressions: st.SearchStrategy[Any] = st.recursive(
    numbers | words | calls,
    lambda inner: (
        st.builds(tree.Unary, st.sampled_from(["-", "not"]), inner)
        | st.builds(tree.Binary, st.sampled_from(_OPERATORS), inner, inner)
    ),
    max_leaves=12,
)

# -------------------------------------------------------------------------------------------------------------- layouts

axes = st.builds(tree.AxisName, axis_words, st.booleans())
axis_tuples = st.builds(tree.AxisTuple, st.lists(axes, min_size=1, max_size=3).map(tuple), st.booleans())
dim_values = axes | axis_tuples | st.just(tree.Whole()) | st.just(tree.Open())
dim_entries = st.builds(tree.DimEntry, names, dim_values)
named = st.builds(tree.Named, st.lists(dim_entries, max_size=4).map(tuple), st.booleans())


@st.composite
def positionals(draw: st.DrawFn) -> tree.Positional:
    entries: list[Any] = draw(st.lists(dim_values, max_size=4))
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), tree.Fill())
    return tree.Positional(tuple(entries))


layouts = (
    positionals() | named | st.just(tree.Replicated()) | st.just(tree.Follow()) | st.builds(tree.LayoutName, axis_words)
)
let_values = axes | axis_tuples | positionals() | named | st.just(tree.Replicated()) | st.just(tree.Follow())

# ----------------------------------------------------------------------------------------------------------- statements

rules = st.builds(tree.Rule, patterns(), layouts, st.none() | names)
inner_statements: st.SearchStrategy[Any] = st.recursive(
    rules,
    lambda inner: (
        st.builds(tree.Block, patterns(), st.lists(inner, max_size=3).map(tuple))
        | st.builds(tree.When, expressions, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=6,
)
mesh_axes = st.builds(tree.MeshAxis, names, st.integers(-1, 4096), st.none() | st.just("whole") | st.integers(1, 64))
expects = st.builds(tree.Expect, expressions)
sized_axes = st.builds(tree.SizedAxis, names, st.integers(-1, 4096))
_values = names | quotable
checks = st.builds(
    tree.Check,
    model=_values,
    mesh=st.none() | st.lists(sized_axes, max_size=3).map(tuple),
    target=st.none() | quotable,
    batch=st.none() | sizes,
    seq=st.none() | sizes,
    mode=st.none() | _values,
    run=st.none() | _values,
    body=st.lists(expects, max_size=2).map(tuple),
)
statements: st.SearchStrategy[Any] = (
    inner_statements
    | st.builds(tree.Extends, quotable, st.lists(st.builds(tree.Rename, names, names), max_size=2).map(tuple))
    | st.builds(tree.Let, names, let_values)
    | st.builds(tree.Mesh, st.lists(mesh_axes, max_size=4).map(tuple), st.booleans())
    | checks
    | expects
)
files = st.builds(tree.File, st.lists(statements, max_size=6).map(tuple))
