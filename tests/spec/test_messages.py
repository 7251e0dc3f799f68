"""Every thing that can be wrong with a spec's meaning: its code, the text it points at, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sharddsl.findings import Finding, ShardError
from sharddsl.lint.fixes import fixed
from sharddsl.spec import Loaded, parse

MESH = "mesh: [dp=1, fsdp=4, mp=2]\n"


@dataclass(frozen=True)
class Case:
    """`text` gives exactly one finding, of `code`, whose span is the text `at` and whose words include `says`."""

    name: str
    text: str
    code: str
    at: str
    says: tuple[str, ...]


CASES = [
    # -------------------------------------------------------------------------------------------------------------- let
    Case("let twice", "let a = x\nlet a = y\nw: [a]", "SHD003", "let a = y", ("`let a` stands twice",)),
    Case("let is a word of the language", "let mode = x\nw: [mode]", "SHD003", "mode", ("word of the language",)),
    Case("let is an axis", MESH + "let mp = dp\nw: [mp]", "SHD003", "mp", ("name of a mesh axis", "another name")),
    Case("let by itself", "let a = a\nw: [a]", "SHD002", "let a = a", ("defined by itself", "`a` → `a`")),
    Case(
        "lets in a circle",
        "let a = (x, b)\nlet b = c\nlet c = [a]\nw: c",
        "SHD002",
        "let a = (x, b)",
        ("`a` → `b` → `c` → `a`",),
    ),
    Case("let unused", "let a = x\nw: [x]", "SHD005", "let a = x", ("used by nothing", "remove it")),
    Case("let is a layout, in an entry", "let a = [x]\nw: [a]", "SHD007", "a", ("is a layout", "axis is needed")),
    Case("let is a layout, in a tuple", "let a = [x]\nw: [(y, a)]", "SHD007", "a", ("is a layout",)),
    Case("let is axes, as a layout", "let a = (x, y)\nw: a", "SHD007", "a", ("stands for axes", "`[a]`")),
    Case("axis as a layout", MESH + "w: mp", "SHD007", "mp", ("is an axis", "`[mp]`")),
    Case(
        "unknown layout", "let zero = [x]\nv: zero\nw: zeor", "SHD002", "zeor", ("layout `zeor`", "did you mean `zero`")
    ),
    Case("optional tuple in a tuple", "let a = (x, y)?\nw: [(z, a)]", "SHD007", "a", ("dropped whole", "`?` on each")),
    Case("made optional in a tuple", "let a = (x, y)\nw: [(z, a?)]", "SHD007", "a?", ("dropped whole",)),
    # ------------------------------------------------------------------------------------------------------------- mesh
    Case("mesh twice", "mesh: [a=1]\nmesh: [b=1]", "SHD003", "mesh: [b=1]", ("`mesh` stands twice",)),
    Case("axis twice", "mesh: [a=1, b=2, a=3]", "SHD003", "a=3", ("axis `a` stands twice",)),
    Case("axis is a word", "mesh: [devices=1]", "SHD003", "devices", ("word of the language",)),
    Case("axis of size 0", "mesh: [a=0]", "SHD104", "a=0", ("size 0", "at least 1, or -1")),
    Case("axis of size -2", "mesh: [a=-2]", "SHD104", "a=-2", ("size -2",)),
    Case("axis too large", "mesh: [a=99999999999]", "SHD104", "a=99999999999", ("as many devices",)),
    Case("two inferred", "mesh: [a=-1, b=2, c=-1]", "SHD104", "c=-1", ("`a` and `c` are all -1", "all but one")),
    Case("dcn does not divide", "mesh: [a=6 @dcn(4)]", "SHD107", "a=6 @dcn(4)", ("4 does not divide 6", "1, 2, 3, 6")),
    Case("dcn of 0", "mesh: [a=6 @dcn(0)]", "SHD107", "a=6 @dcn(0)", ("at least 1",)),
    Case("no axes", "mesh: []", "SHD007", "mesh: []", ("without axes", "mesh: [dp=-1]")),
    # --------------------------------------------------------------------------------------------------------- patterns
    Case("root before the namespace", "/act.resid: []", "SHD007", "/act.resid", ("`act./resid`", "`param./act`")),
    Case("root within a block", "attn { /wo: [] }", "SHD007", "/wo", ("`attn` stands before it", "out of the block")),
    Case("root in the middle", "a./b: []", "SHD007", "a./b", ("`a` stands before it",)),
    Case("layers of a namespace", "act[3].resid: []", "SHD007", "act[3]", ("has no layers",)),
    Case("no layer in the range", "layers[4:4].w: []", "SHD205", "layers[4:4]", ("`[4:4]` holds no layer",)),
    Case("two subscripts", "a[1].b[2]: []", "SHD007", "b[2]", ("one layer subscript",)),
    Case("too many segments", ".".join("a" * 65) + ": []", "SHD007", ".".join("a" * 65), ("65 segments", "at most 64")),
    Case(
        "too many alternatives",
        ".".join(["{" + ",".join(["a"] * 86) + "}"] * 3) + ": []",
        "SHD007",
        ".".join(["{" + ",".join(["a"] * 86) + "}"] * 3),
        ("258 alternatives", "at most 256", "several rules"),
    ),
    # ---------------------------------------------------------------------------------------------------------- layouts
    Case("dim twice", "w: {embed: x, ffn: y, embed: z}", "SHD003", "embed: z", ("dim `embed` stands twice", "(a, b)")),
    Case("follow for a param", "w: follow", "SHD007", "follow", ("`follow`", "params have none")),
    Case("follow for an activation", "act.resid: follow", "SHD007", "follow", ("activations have none",)),
    Case("follow by a let", "let f = follow\nw: f", "SHD007", "f", ("params have none",)),
    Case("open dim of a param", "w: [*, mp]", "SHD007", "*", ("leaves a dim to the compiler", "act and grad only")),
    Case("open dim of the inputs", "batch: {batch: *}", "SHD007", "*", ("inputs have to be placed",)),
    Case("open dim by a let", "let o = [*]\ncache.k: o", "SHD007", "o", ("caches have to be placed",)),
    Case("memory kind", "w: [mp] @pined_host", "SHD002", "pined_host", ("memory kind", "`pinned_host`")),
    Case(
        "too many entries", f"w: [{', '.join(['a'] * 257)}]", "SHD007", f"[{', '.join(['a'] * 257)}]", ("257 entries",)
    ),
    Case("too many axes", f"w: [({', '.join(['a'] * 65)})]", "SHD007", f"({', '.join(['a'] * 65)})", ("65 axes",)),
    # ------------------------------------------------------------------------------------------------------------- when
    Case("unknown name", MESH + "when mp > kv_head { w: [] }", "SHD002", "kv_head", ("name `kv_head`", "`kv_heads`")),
    Case("unknown axis", MESH + "when mesh.fdsp > 1 { w: [] }", "SHD101", "mesh.fdsp", ("`mesh.fsdp`",)),
    Case("unknown dotted name", "when memory.peek > 1 { w: [] }", "SHD002", "memory.peek", ("name `memory.peek`",)),
    Case(
        "quantity in when", "when memory.peak > 1 { w: [] }", "SHD007", "memory.peak", ("compiled program", "`expect`")
    ),
    Case("count in when", "when count() > 1 { w: [] }", "SHD007", "count()", ("compiled program", "`expect`")),
    Case("not a condition", "when heads { w: [] }", "SHD007", "heads", ("is a number", "compare it")),
    Case("a word as condition", "when train { w: [] }", "SHD007", "train", ("is a word", "`mode == train`")),
    Case("number and word", "when heads == train { w: [] }", "SHD007", "heads == train", ("a number with a word",)),
    Case(
        "number and truth", "when heads + tied > 1 { w: [] }", "SHD007", "tied", ("`+` needs a number", "true or false")
    ),
    Case("and of a number", "when tied and heads { w: [] }", "SHD007", "heads", ("`and` needs true or false",)),
    Case("not a number", "when not heads { w: [] }", "SHD007", "heads", ("`not` needs true or false",)),
    Case("minus a word", "when -mode == 1 { w: [] }", "SHD007", "mode", ("`-` needs a number",)),
    Case("division by zero", "when heads % 0 == 1 { w: [] }", "SHD007", "heads % 0", ("`%` by zero",)),
    Case("unit", "when heads > 1 GIB { w: [] }", "SHD002", "GIB", ("unit `GIB`", "`GiB`")),
    Case("huge number", "when heads > 1e31 { w: [] }", "SHD007", "1e31", ("too large",)),
    # ----------------------------------------------------------------------------------------------------------- expect
    Case("collective", "expect count(all_gater) == 0", "SHD002", "all_gater", ("collective", "`all_gather`")),
    Case("function", "expect cont(all_gather) == 0", "SHD002", "cont", ("function `cont`", "`count`")),
    Case("argument", "expect count(ovr=mp) == 0", "SHD002", "ovr", ("argument `ovr`", "`over`")),
    Case("argument twice", "expect count(at=head, at=embed) == 0", "SHD003", "at=embed", ("stands twice",)),
    Case("phase", "expect count(in=forward) == 0", "SHD002", "forward", ("phase `forward`", "`fwd`")),
    Case("place", "expect count(at=heads) == 0", "SHD002", "heads", ("`head`",)),
    Case("place is no word", "expect count(at=a.b) == 0", "SHD007", "at=a.b", ("one word", "layer")),
    Case("over an unknown axis", MESH + "expect count(over=pm) == 0", "SHD101", "pm", ("axis `pm`", "dp, fsdp, mp")),
    Case("over unknown axes", MESH + "expect count(over=(mp, pd)) == 0", "SHD101", "pd", ("axis `pd`", "dp, fsdp, mp")),
    Case("over a pattern", "expect count(over=a.b) == 0", "SHD007", "a.b", ("`over=(dp, fsdp)`",)),
    Case("over a layout", "let a = [x]\nw: a\nexpect count(over=a) == 0", "SHD007", "a", ("is a layout",)),
    Case("of two", "expect count(of=(wq, wk)) == 0", "SHD007", "of=(wq, wk)", ("one pattern", "`of=attn.{wq, wk}`")),
    Case("expect no condition", "expect flops", "SHD007", "flops", ("is a number",)),
    # ------------------------------------------------------------------------------------------------------------ check
    Case("model", "check lama3_8b", "SHD002", "lama3_8b", ("model `lama3_8b`", "`llama3_8b`")),
    Case("axis of a check", MESH + "check llama3_8b on [pm=2]", "SHD101", "pm", ("axis `pm`", "dp, fsdp, mp")),
    Case("axis twice in a check", MESH + "check llama3_8b on [mp=2, mp=4]", "SHD003", "mp=4", ("stands twice",)),
    Case("size in a check", MESH + "check llama3_8b on [mp=0]", "SHD104", "mp=0", ("size 0",)),
    Case(
        "two inferred in a check",
        "mesh: [a=2, b=2]\ncheck llama3_8b on [a=-1, b=-1]",
        "SHD104",
        "b=-1",
        ("all -1",),
    ),
    Case(
        "dcn in a check",
        "mesh: [a=8 @dcn(4)]\ncheck llama3_8b on [a=6]",
        "SHD107",
        "a=6",
        ("@dcn(4)", "divide 6"),
    ),
    Case("target", 'check llama3_8b target "v5x:4x4"', "SHD107", "v5x:4x4", ("unknown target `v5x`", "`v5e`")),
    Case("target's form", 'check llama3_8b target "cpu 8"', "SHD107", "cpu 8", ("is not a target", '"cpu:8"')),
    Case("target's dims", 'check llama3_8b target "v5p:4x4"', "SHD107", "v5p:4x4", ("2 sizes", "has 3 dims")),
    Case("target of GPUs", 'check llama3_8b target "h100:8"', "SHD107", "h100:8", ("`h100:1x8` one host",)),
    Case("slices of CPUs", 'check llama3_8b target "2*cpu:8"', "SHD107", "2*cpu:8", ("only TPUs", "`cpu:8`")),
    Case("no devices", 'check llama3_8b target "cpu:0"', "SHD107", "cpu:0", ("no devices",)),
    Case(
        "too many devices", 'check llama3_8b target "cpu:9999999999"', "SHD107", "cpu:9999999999", ("than any machine",)
    ),
    Case("batch", "check llama3_8b batch 0", "SHD007", "batch", ("`batch` must be a positive number",)),
    Case("seq", "check llama3_8b seq 99999999999", "SHD007", "seq", ("`seq` must be a positive number",)),
    Case("mode", "check llama3_8b mode training", "SHD002", "training", ("mode `training`", "`train`")),
    Case("expect of a check", "check llama3_8b { expect memry.peak < 1 }", "SHD002", "memry.peak", ("`memory.peak`",)),
    # ---------------------------------------------------------------------------------------------------------- extends
    Case("unknown base", 'extends "llama/fdsp"', "SHD004", "llama/fdsp", ("spec `llama/fdsp`", "`llama/fsdp`")),
    Case("extends second", 'w: []\nextends "llama/fsdp"', "SHD004", 'extends "llama/fsdp"', ("first statement",)),
    Case(
        "extends twice",
        'extends "llama/fsdp"\nextends "llama/tp"',
        "SHD004",
        'extends "llama/tp"',
        ("second `extends`",),
    ),
    Case("base by a wrong suffix", 'extends "./fsdp.txt"', "SHD004", "./fsdp.txt", ("neither a spec's name",)),
    Case("rename twice", 'extends "llama/fsdp" with fsdp=a, fsdp=b', "SHD003", "fsdp=b", ("renamed twice",)),
    Case("rename of no axis", 'extends "llama/fsdp" with fdsp=a', "SHD101", "fdsp", ("axis of the base", "`fsdp`")),
    Case("two to one name", 'extends "llama/fsdp_tp" with fsdp=a, mp=a', "SHD003", "mp=a", ("two axes", "`a`")),
    Case("rename to a taken name", 'extends "llama/fsdp_tp" with fsdp=mp', "SHD003", "fsdp=mp", ("already", "`mp=…`")),
    Case("rename to a word", 'extends "llama/fsdp" with fsdp=tied', "SHD003", "fsdp=tied", ("word of the language",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_cause_gives_one_finding_that_points_at_it(case: Case) -> None:
    loaded = parse(case.text, models=["llama3_8b", "llama3_70b"])
    (finding,) = loaded.findings
    assert finding.code == case.code
    assert pointed_at(finding, loaded) == case.at
    said = f"{finding.message}\n{finding.help or ''}"
    for words in case.says:
        assert words in said


def pointed_at(finding: Finding, loaded: Loaded) -> str:
    """The text of the finding's span, which is within one line."""
    assert finding.where is not None
    span = finding.where.span
    assert span.line == span.end_line
    return loaded.sources[finding.where.source].splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


def test_errors_leave_no_spec_and_warnings_do() -> None:
    assert parse("w: follow").spec is None
    warned = parse("let a = x\nw: [x]")
    assert warned.spec is not None
    assert [finding.severity for finding in warned.findings] == ["warning"]
    assert warned.checked() is warned.spec


def test_everything_wrong_is_found_in_one_run_after_a_syntax_error_too() -> None:
    loaded = parse("mesh: [a=0]\nw: [(\nv: follow\nexpect flops\n", rules=["u: {d: x, d: y}"], mesh={})
    assert sorted(finding.code for finding in loaded.findings) == ["SHD001", "SHD003", "SHD007", "SHD007", "SHD104"]
    with pytest.raises(ShardError) as raised:
        loaded.checked()
    assert len(raised.value.findings) == 5
    assert "u: {d: x, d: y}" in str(raised.value)


def test_a_let_is_not_called_unused_where_a_statement_could_not_be_read() -> None:
    assert [finding.code for finding in parse("let a = x\nw: [a").findings] == ["SHD001"]


def test_a_wrong_mesh_does_not_make_its_axes_unknown() -> None:
    loaded = parse("mesh: [a=0]\nwhen a > 1 { w: [a] }\ncheck m on [a=2]")
    assert [finding.code for finding in loaded.findings] == ["SHD104"]


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("let zero = [x]\nv: zero\nw: zeor", "let zero = [x]\nv: zero\nw: zero"),
        (MESH + "when mp > kv_head { w: [] }", MESH + "when mp > kv_heads { w: [] }"),
        ('extends "llama/fdsp"', 'extends "llama/fsdp"'),
        ("let a = x  # an axis\nw: [x]", "w: [x]"),
    ],
)
def test_a_fix_mends_the_text(text: str, mended: str) -> None:
    loaded = parse(text)
    (finding,) = loaded.findings
    assert fixed([finding], loaded.sources).texts["<text>"] == mended
    assert parse(mended).findings == ()
