"""Whatever is written: a `Loaded` comes back, its findings have places, and a spec without errors is complete."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharddsl.findings import errors, render
from sharddsl.spec import Loaded, Spec, parse
from sharddsl.spec.model import Axes, Named, Positional, Rule
from sharddsl.syntax import parse as parse_tree
from sharddsl.syntax import to_text, tree
from tests.syntax.strategies import files

NAMES = st.sampled_from(["a", "b", "c", "dp", "mp", "seq", "heads", "mode", "tied", "None", "follow"])
AXES = st.builds("{}{}".format, NAMES, st.sampled_from(["", "?"]))
TUPLES = st.builds("({}){}".format, st.lists(AXES, min_size=1, max_size=3).map(", ".join), st.sampled_from(["", "?"]))
ENTRIES = st.one_of(AXES, TUPLES, st.sampled_from(["None", "*", "..."]))
NAMED = st.lists(st.builds("{}: {}".format, st.sampled_from(["embed", "heads", "ffn"]), ENTRIES), max_size=3)
LAYOUTS = st.one_of(
    st.lists(ENTRIES, max_size=4).map(lambda entries: f"[{', '.join(entries)}]"),
    st.builds(
        "{{{}}}".format, st.builds(lambda dots, items: ", ".join(dots + items), st.sampled_from([[], [".."]]), NAMED)
    ),
    st.sampled_from(["replicated", "follow", "a", "b", "mp"]),
)
SEGMENTS = st.sampled_from(
    ["act", "opt", "param", "grad", "w", "*", "**", "w_{in, gate}", "layers[0:2]", "l[3]", '"1"', "0"]
)
PATTERNS = st.builds(
    "{}{}".format, st.sampled_from(["", "", "/"]), st.lists(SEGMENTS, min_size=1, max_size=3).map(".".join)
)
ATOMS = st.one_of(
    NAMES,
    st.sampled_from(["1", "0", "2.5", "4 GiB", "3 XB", "mesh.mp", "memory.peak", "flops", "train", "devices"]),
    st.builds(
        "count({})".format, st.sampled_from(["", "all_gather", "permute, over=mp", "of=act.*, in=fwd", "over=(a, b)"])
    ),
)
OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "and", "or"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, OPERATORS, inner),
        st.builds("({} {})".format, st.sampled_from(["not", "-"]), inner),
    ),
    max_leaves=5,
)
RULES = st.builds("{}: {}{}".format, PATTERNS, LAYOUTS, st.sampled_from(["", "", " @pinned_host", " @disk"]))
BODIES = st.recursive(
    RULES,
    lambda inner: st.one_of(
        st.builds("{} {{\n{}\n}}".format, PATTERNS, inner),
        st.builds("when {} {{\n{}\n}}".format, EXPRESSIONS, inner),
        st.builds("{}\n{}".format, inner, inner),
    ),
    max_leaves=4,
)
SIZES = st.lists(st.builds("{}={}".format, NAMES, st.integers(-2, 6)), max_size=3)
STATEMENTS = st.one_of(
    BODIES,
    st.builds("let {} = {}".format, NAMES, st.one_of(AXES, TUPLES, LAYOUTS)),
    st.builds("mesh: [{}]".format, SIZES.map(lambda sizes: ", ".join(f"{size} @dcn(2)" for size in sizes))),
    st.builds("mesh: [{}]".format, SIZES.map(", ".join)),
    st.builds("check {} on [{}] batch {}".format, NAMES, SIZES.map(", ".join), st.integers(0, 3)),
    st.builds("expect {}".format, EXPRESSIONS),
    st.builds('extends "{}" with {}={}'.format, st.sampled_from(["llama/fsdp", "llama/no", "x.shard"]), NAMES, NAMES),
)
TEXTS = st.lists(STATEMENTS, max_size=5).map("\n".join)


@given(TEXTS, st.lists(RULES, max_size=2), st.dictionaries(NAMES, st.integers(-2, 4), max_size=2))
@settings(max_examples=400, deadline=None)
def test_a_spec_or_errors_with_places(text: str, rules: list[str], sizes: dict[str, int]) -> None:
    loaded = parse(text, rules=rules, mesh=sizes, models=["a", "b"])
    assert (loaded.spec is None) == bool(errors(loaded.findings))
    for finding in loaded.findings:
        assert finding.where is not None
        lines = loaded.sources[finding.where.source].splitlines()
        span = finding.where.span
        assert 1 <= span.line <= span.end_line <= max(1, len(lines))
        assert (span.line, span.column) < (span.end_line, span.end_column)


GOOD_AXES = st.builds("{}{}".format, st.sampled_from(["dp", "mp", "pair"]), st.sampled_from(["", "?"]))
GOOD_ENTRIES = st.one_of(GOOD_AXES, st.sampled_from(["None", "(dp, mp)", "(mp, pair)", "(dp, mp?)?"]))
GOOD_LAYOUTS = st.one_of(
    st.lists(GOOD_ENTRIES, max_size=4).map(lambda entries: f"[{', '.join(entries)}]"),
    st.dictionaries(st.sampled_from(["embed", "heads", "ffn"]), GOOD_ENTRIES).map(
        lambda entries: f"{{{', '.join(f'{dim}: {entry}' for dim, entry in entries.items())}}}"
    ),
    st.sampled_from(["replicated", "column", "{..}", "{.., layers: dp}"]),
)
GOOD_PATTERNS = st.sampled_from(
    ["w", "act", "opt.w", "*", "a.**.b", "layers[1].w", "w_{in, gate}", "param.act", '"0".w']
)
GOOD_RULES = st.builds("{}: {}".format, GOOD_PATTERNS, GOOD_LAYOUTS)
GOOD_CONDITIONS = st.sampled_from(
    ["tied", "mp > heads", "not (dp == 1 or mesh.mp % 2 == 0)", "mode == decode", "batch > 1"]
)
GOOD_BODIES = st.recursive(
    GOOD_RULES,
    lambda inner: st.one_of(
        st.builds("{} {{\n{}\n}}".format, st.sampled_from(["attn", "mlp.w_*", "act", "opt.mu"]), inner),
        st.builds("when {} {{\n{}\n}}".format, GOOD_CONDITIONS, inner),
        st.builds("{}\n{}".format, inner, inner),
    ),
    max_leaves=5,
)


@given(GOOD_BODIES, st.lists(GOOD_RULES, max_size=2))
@settings(max_examples=200, deadline=None)
def test_a_good_text_keeps_every_rule_in_order_and_comes_back_from_json(text: str, rules: list[str]) -> None:
    header = "let pair = (fsdp, pp)\nlet column = [dp, mp]\nmesh: [dp=-1, fsdp=2, pp=1, mp=3]\n"
    spec = parse(header + text, rules=rules).checked()
    written = [rule.where.span.line for rule in spec.rules if rule.origin == 0]
    assert written == sorted(written)
    assert len(written) == rules_in(text)
    assert [rule.where.source for rule in spec.rules[len(written) :]] == [f"--rule {n + 1}" for n in range(len(rules))]
    assert {axis for rule in spec.rules for axis in axes_of(rule)} <= {"dp", "fsdp", "pp", "mp"}
    assert Spec.model_validate_json(spec.model_dump_json()) == spec


def axes_of(rule: Rule) -> list[str]:
    """Every axis that a rule's layout names: no `let` is left."""
    match rule.layout:
        case Positional(entries=entries):
            found = list(entries)
        case Named(entries=items):
            found = [item.entry for item in items]
        case _:
            found = []
    return [ref.name for entry in found if isinstance(entry, Axes) for ref in entry.axes]


def rules_in(text: str) -> int:
    """How many rules are written, by the tree."""

    def count(statements: tuple[tree.Statement, ...]) -> int:
        return sum(
            count(s.body) if isinstance(s, tree.Block | tree.When) else isinstance(s, tree.Rule) for s in statements
        )

    return count(parse_tree(text).file.statements)


CHAINS = {
    "sum": "expect 1 > " + " + ".join(["1"] * 3000),
    "calls": "expect 1 > " + " + ".join(["count(all_gather, over=a)"] * 3000),
    "calls over tuples": "expect 1 > " + " + ".join(["count(over=(a, b), at=head)"] * 3000),
    "signs": "expect 1 > " + "-" * 3000 + "1",
    "parentheses": "expect 1 > " + "(" * 3000 + "1" + ")" * 3000,
    "blocks": "a {\n" * 3000 + "w: []\n" + "}\n" * 3000,
    "conditions": "when tied {\n" * 3000 + "w: []\n" + "}\n" * 3000,
}


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS)
def test_what_is_nested_too_deep_to_follow_is_refused(text: str) -> None:
    assert {finding.code for finding in parse(text).findings} == {"SHD001"}


@given(files)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_every_tree_is_taken(file: tree.File) -> None:
    loaded = parse(to_text(file))
    assert "SHD001" not in {finding.code for finding in loaded.findings}
    assert (loaded.spec is None) == bool(errors(loaded.findings))
    assert isinstance(render(loaded.findings, loaded.sources), str)


@given(st.text(max_size=200))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(parse(text, rules=[text]), Loaded)
