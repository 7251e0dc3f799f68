"""Names and paths: which file a reference means, what a file gets from its base, and what may not be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sharddsl import resources
from sharddsl.findings import UsageError
from sharddsl.spec import Loaded, list_specs, load, parse
from sharddsl.spec.model import Axes, Named, Positional, Rule

Project = Callable[[dict[str, str]], Path]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Makes a project of the given files, with a `pyproject.toml`."""

    def make(files: dict[str, str]) -> Path:
        root = tmp_path / "project"
        for name, text in {"pyproject.toml": "", **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return make


def axes_of(rule: Rule) -> list[tuple[str, ...]]:
    """The names of the axes of each entry."""
    assert isinstance(rule.layout, Positional | Named)
    found = [item if not hasattr(item, "entry") else item.entry for item in rule.layout.entries]
    return [tuple(ref.name for ref in entry.axes) for entry in found if isinstance(entry, Axes)]


def whose(loaded: Loaded) -> list[tuple[int, str, str]]:
    """For each rule its origin, pattern and source."""
    return [(rule.origin, rule.pattern.text, rule.where.source) for rule in loaded.checked().rules]


# ---------------------------------------------------------------------------------------------------------- references


def test_a_name_means_the_projects_spec_first_and_then_the_shipped_one(project: Project) -> None:
    root = project({"specs/llama/mine.shard": "mine: []", "specs/llama/fsdp.shard": "my_fsdp: []"})
    assert whose(load("llama/mine", cwd=root)) == [(0, "mine", "specs/llama/mine.shard")]
    assert whose(load("llama/fsdp", cwd=root)) == [(0, "my_fsdp", "specs/llama/fsdp.shard")]
    assert load("llama/tp", cwd=root).checked().rules[0].where.source == "<shipped>/llama/tp.shard"
    assert load("llama/tp", cwd=root).checked().name == "llama/tp"


def test_the_project_is_the_nearest_folder_upward_with_a_pyproject(project: Project, tmp_path: Path) -> None:
    root = project({"specs/a.shard": "a: []", "deep/down/b.shard": 'extends "a"\nb: []'})
    assert whose(load("a", cwd=root / "deep" / "down")) == [(0, "a", str(root / "specs/a.shard"))]
    assert whose(load(root / "deep/down/b.shard", cwd=tmp_path)) == [
        (1, "a", "project/specs/a.shard"),
        (0, "b", "project/deep/down/b.shard"),
    ]
    assert whose(load("a", project=root, cwd=tmp_path)) == [(0, "a", "project/specs/a.shard")]


def test_without_a_pyproject_the_project_is_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "base.shard").write_text("base: []")
    (tmp_path / "top.shard").write_text('extends "base"\ntop: []')
    assert whose(load(tmp_path / "top.shard", cwd=Path("/"))) == [
        (1, "base", str(tmp_path / "specs/base.shard").removeprefix("/")),
        (0, "top", str(tmp_path / "top.shard").removeprefix("/")),
    ]


@pytest.mark.parametrize("ref", ["./x.shard", "x.shard", "sub/../x.shard"])
def test_a_path_is_relative_to_the_working_folder(project: Project, ref: str) -> None:
    root = project({"x.shard": "x: []"})
    assert whose(load(ref, cwd=root)) == [(0, "x", "x.shard")]
    assert whose(load(Path(ref), cwd=root)) == [(0, "x", "x.shard")]
    assert whose(load(root / ref, cwd=root)) == [(0, "x", "x.shard")]


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("llama/fdsp", ("unknown spec `llama/fdsp`", "did you mean `llama/fsdp`", "known: ", "llama/zero1")),
        ("x", ("unknown spec `x`", "a file is named by its path: ./x.shard")),
        ("./z.shard", ("cannot read the spec z.shard", "there is no such file")),
        ("sub/xs.shard", ("there is no such file", "did you mean sub/x.shard?")),
        ("./sub", ("cannot read the spec sub", "it is a folder")),
        ("", ("unknown spec ``", "llama/fsdp_tp")),
        ("llama/fsdp.shard", ("there is no such file", "is written without `.shard`: llama/fsdp")),
        ("loop.shard", ("a link that leads nowhere",)),
        ("a\0b.shard", ("cannot read the spec", "there is no such file")),
        ("a" * 5000 + ".shard", ("cannot read the spec",)),
        ("a" * 5000, ("unknown spec",)),
        ("../../../../../../etc/passwd.shard", ("there is no such file",)),
    ],
)
def test_a_reference_to_nothing_says_what_there_is(project: Project, ref: str, says: tuple[str, ...]) -> None:
    root = project({"x.shard": "x: []", "sub/x.shard": "x: []"})
    (root / "loop.shard").symlink_to("loop.shard")
    with pytest.raises(UsageError) as raised:
        load(ref, cwd=root)
    for words in says:
        assert words in str(raised.value)


def test_what_is_there_is_not_offered_in_its_own_place(project: Project) -> None:
    root = project({"big.shard": ""})
    os.truncate(root / "big.shard", 2**30)
    with pytest.raises(UsageError, match=r"it has 1,073,741,824 bytes, and a spec at most [0-9,]+$"):
        load("./big.shard", cwd=root)


def test_only_names_that_can_be_loaded_are_listed(project: Project) -> None:
    root = project({f"specs/{name}.shard": "x: []" for name in ("good", "", "two\nlines", "\x1b[31mred")})
    (root / "specs" / "loop.shard").symlink_to("loop.shard")
    (root / "specs" / "folder.shard").mkdir()
    os.mkfifo(root / "specs" / "pipe.shard")
    assert [name for name in list_specs(cwd=root) if not name.startswith("llama/")] == ["good"]


def test_a_working_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the working folder does not exist any more"):
        load("llama/fsdp")


def test_a_file_that_is_no_spec_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "weights.shard").touch()
    with (tmp_path / "weights.shard").open("wb") as file:
        file.truncate(2**27)
    with pytest.raises(UsageError, match="134,217,728 bytes, and a spec at most 67,108,864"):
        load("./weights.shard", cwd=tmp_path)
    with pytest.raises(UsageError, match="not a regular file"):
        load(Path("/dev/zero"))
    (tmp_path / "junk.shard").write_bytes(bytes(range(256)))
    assert [finding.code for finding in load("./junk.shard", cwd=tmp_path).findings] == ["SHD001"]


def test_list_specs_names_what_can_be_loaded(project: Project) -> None:
    root = project(
        {"specs/mine.shard": "", "specs/.hidden/no.shard": "", "specs/llama/fsdp.shard": "", "other.shard": ""}
    )
    names = list_specs(cwd=root)
    assert {"mine", "llama/fsdp", "llama/tp", "llama/zero1"} <= set(names)
    assert not {"other", ".hidden/no", "no"} & set(names)
    assert list(names) == sorted(set(names))


# ------------------------------------------------------------------------------------------------------------- extends


def test_a_files_rules_follow_its_bases_and_the_command_lines_follow_both(project: Project) -> None:
    root = project(
        {
            "top.shard": 'extends "mid.shard"\nt: []',
            "mid.shard": 'extends "down/low.shard"\nm: []',
            "down/low.shard": "l: []",
        }
    )
    loaded = load("top.shard", cwd=root, rules=["r: []"])
    assert whose(loaded) == [
        (2, "l", "down/low.shard"),
        (1, "m", "mid.shard"),
        (0, "t", "top.shard"),
        (-1, "r", "--rule 1"),
    ]
    assert dict(loaded.sources) == {
        "top.shard": 'extends "mid.shard"\nt: []',
        "mid.shard": 'extends "down/low.shard"\nm: []',
        "down/low.shard": "l: []",
        "--rule 1": "r: []",
    }
    assert loaded.paths["down/low.shard"] == root / "down/low.shard"
    assert "--rule 1" not in loaded.paths


def test_mesh_is_inherited_or_replaced_and_checks_are_not_inherited(project: Project) -> None:
    root = project(
        {
            "base.shard": "mesh: [dp=2, mp=4]\nw: [mp]\ncheck m\nexpect flops > 1",
            "same.shard": 'extends "base.shard"',
            "other.shard": 'extends "base.shard"\nmesh: [mp=8]',
        }
    )
    same, other = load("same.shard", cwd=root).checked(), load("other.shard", cwd=root).checked()
    assert same.mesh is not None
    assert other.mesh is not None
    assert (same.mesh.names, other.mesh.names) == (("dp", "mp"), ("mp",))
    assert (same.checks, same.expect) == ((), ())


def test_lets_are_their_files_own(project: Project) -> None:
    root = project(
        {
            "base.shard": "let data = dp\nbase: [data]",
            "top.shard": 'extends "base.shard"\nlet data = (dp, fsdp)\ntop: [data]',
            "without.shard": 'extends "base.shard"\nwithout: [data]',
        }
    )
    assert [axes_of(rule) for rule in load("top.shard", cwd=root).checked().rules] == [[("dp",)], [("dp", "fsdp")]]
    assert [axes_of(rule) for rule in load("without.shard", cwd=root).checked().rules] == [[("dp",)], [("data",)]]


def test_with_renames_axes_in_rules_mesh_and_conditions(project: Project) -> None:
    root = project(
        {
            "base.shard": "let both = (dp, mp)\nmesh: [dp=2, mp=4]\n"
            "w: [mp, both]\nact: {heads: mp?}\nwhen mp > heads and mesh.dp > 1 { w: [dp] }",
            "mid.shard": 'extends "base.shard" with mp=tensor\nmid: [tensor]',
            "top.shard": 'extends "mid.shard" with tensor=model, dp=heads\ntop: [model]',
        }
    )
    spec = load("top.shard", cwd=root).checked()
    assert spec.mesh is not None
    assert spec.mesh.names == ("heads", "model")
    assert [axes_of(rule) for rule in spec.rules] == [
        [("model",), ("heads", "model")],
        [("model",)],
        [("heads",)],
        [("model",)],
        [("model",)],
    ]
    assert [condition.text for condition in spec.rules[2].conditions] == ["model > heads and mesh.heads > 1"]


@pytest.mark.parametrize(
    ("axis", "called"),
    [("mp", "model"), ("tensor", "model"), ("dp", "data")],
)
def test_a_size_for_an_axis_under_the_name_that_a_base_has_for_it(project: Project, axis: str, called: str) -> None:
    root = project(
        {
            "base.shard": "mesh: [dp=2, mp=4]\nw: [mp, dp]",
            "mid.shard": 'extends "base.shard" with mp=tensor\nmid: [tensor]',
            "top.shard": 'extends "mid.shard" with tensor=model, dp=data\ntop: [model]',
        }
    )
    (finding,) = load("top.shard", cwd=root, mesh={axis: 8}).findings
    assert (finding.code, finding.message) == ("SHD101", f"unknown axis `{axis}`")
    assert finding.help == f"`{axis}` of the base is called `{called}` here: spec.mesh.{called}=8"


def test_axes_may_be_swapped(project: Project) -> None:
    root = project({"base.shard": "mesh: [a=2, b=4]\nw: [a, b]", "top.shard": 'extends "base.shard" with a=b, b=a'})
    spec = load("top.shard", cwd=root).checked()
    assert spec.mesh is not None
    assert [(axis.name, axis.size) for axis in spec.mesh.axes] == [("b", 2), ("a", 4)]
    assert axes_of(spec.rules[0]) == [("b",), ("a",)]


def test_a_fragments_axes_are_those_that_it_mentions(project: Project) -> None:
    root = project(
        {
            "base.shard": "let d = (dp, mp)\nw: [d]\nwhen fsdp > 1 { w: [fsdp] }",
            "good.shard": 'extends "base.shard" with dp=a, mp=b, fsdp=c\nmesh: [a=1, b=1, c=1]',
            "bad.shard": 'extends "base.shard" with pp=a',
            "farther.shard": 'extends "good.shard" with c=d',
        }
    )
    good = load("good.shard", cwd=root).checked()
    assert axes_of(good.rules[0]) == [("a", "b")]
    assert [condition.text for condition in good.rules[1].conditions] == ["c > 1"]
    assert load("farther.shard", cwd=root).checked().rules[1].conditions[0].text == "d > 1"
    (finding,) = load("bad.shard", cwd=root).findings
    assert (finding.code, finding.message) == ("SHD101", "unknown axis of the base `pp`")


def test_a_bases_condition_is_held_against_the_mesh_that_there_is_in_the_end(project: Project) -> None:
    root = project(
        {
            "base.shard": "mesh: [mp=4]\nwhen mp > 1 { w: [] }",
            "top.shard": 'extends "base.shard"\nmesh: [model=4]',
            "with.shard": 'extends "base.shard" with mp=model\nmesh: [model=4]',
        }
    )
    (finding,) = load("top.shard", cwd=root).findings
    assert (finding.code, str(finding.where)) == ("SHD002", "base.shard:2:6")
    assert finding.help is not None
    assert finding.help.splitlines()[1] == "if it is an axis, the mesh calls it otherwise: extends … with mp=…"
    assert load("with.shard", cwd=root).checked().rules[0].conditions[0].text == "model > 1"


def test_of_a_base_only_the_errors_are_told(project: Project) -> None:
    root = project({"base.shard": "let a = x\nw: [y]", "top.shard": 'extends "base.shard"', "worse.shard": "let a = a"})
    assert load("top.shard", cwd=root).findings == ()
    assert [finding.code for finding in load("base.shard", cwd=root).findings] == ["SHD005"]


def test_a_name_never_means_the_file_itself(project: Project) -> None:
    root = project({"specs/llama/fsdp.shard": 'extends "llama/fsdp"\nmine: []'})
    sources = [rule.where.source for rule in load("llama/fsdp", cwd=root).checked().rules]
    assert set(sources) == {"<shipped>/llama/fsdp.shard", "specs/llama/fsdp.shard"}
    assert sources[-1] == "specs/llama/fsdp.shard"


def test_a_shipped_spec_extends_shipped_ones_whatever_the_project_has(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shipped = tmp_path / "package"
    shipped.mkdir()
    (shipped / "low.shard").write_text("shipped: []")
    (shipped / "high.shard").write_text('extends "low"')
    monkeypatch.setattr(resources, "shipped_specs", lambda: shipped)
    root = project({"specs/low.shard": "projects: []", "specs/mine.shard": 'extends "high"'})
    assert whose(load("mine", cwd=root)) == [(2, "shipped", "<shipped>/low.shard")]


REFUSED = [
    ("itself", 'extends "top.shard"', {}, "a file cannot extend itself"),
    (
        "circle",
        'extends "a.shard"',
        {"a.shard": 'extends "b.shard"', "b.shard": 'extends "a.shard"'},
        "files extend each other in a circle: a.shard → b.shard → a.shard",
    ),
    ("missing", 'extends "a.shard"', {}, "there is no file `a.shard`"),
    ("outside", 'extends "../secret.shard"', {}, "`../secret.shard` lies outside the project"),
    ("absolute", 'extends "/etc/passwd.shard"', {}, "`/etc/passwd.shard` lies outside the project"),
    ("link", 'extends "link.shard"', {}, "`link.shard` lies outside the project"),
    ("linked name", 'extends "linked"', {}, "`linked` lies outside the project"),
    ("folder", 'extends "specs.shard"', {"specs.shard/x": ""}, "cannot read `specs.shard`: it is a folder"),
    ("dots in a name", 'extends "../secret"', {}, "`../secret` is neither a spec's name"),
    ("nothing", 'extends ""', {}, "`` is neither a spec's name"),
]


@pytest.mark.parametrize(("text", "files", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_base_that_cannot_be_had(project: Project, text: str, files: dict[str, str], says: str) -> None:
    root = project({"top.shard": text, "specs/x.shard": "", **files})
    (root.parent / "secret.shard").write_text("secret: []")
    (root / "link.shard").symlink_to(root.parent / "secret.shard")
    (root / "specs" / "linked.shard").symlink_to(root.parent / "secret.shard")
    loaded = load("top.shard", cwd=root)
    assert [finding.code for finding in loaded.findings] == ["SHD004"]
    assert says in loaded.findings[0].message
    assert not any("secret: []" in text for text in loaded.sources.values())


def test_a_project_spec_that_links_elsewhere_is_not_read(project: Project) -> None:
    root = project({"specs/x.shard": ""})
    (root.parent / "secret.shard").write_text("secret: []")
    (root / "specs" / "linked.shard").symlink_to(root.parent / "secret.shard")
    with pytest.raises(UsageError, match="a link out of the project"):
        load("linked", cwd=root)


def test_a_long_chain_is_cut(project: Project) -> None:
    files = {f"s{i}.shard": f'extends "s{i + 1}.shard"' for i in range(40)}
    root = project({**files, "s40.shard": "w: []"})
    assert [finding.message for finding in load("s0.shard", cwd=root).findings] == [
        "more than 32 files extend one another"
    ]
    assert whose(load("s8.shard", cwd=root)) == [(32, "w", "s40.shard")]


def test_what_is_wrong_in_a_base_is_told_with_its_place(project: Project) -> None:
    root = project({"base.shard": "w: follow\nv: [", "top.shard": 'extends "base.shard"\nu: follow'})
    loaded = load("top.shard", cwd=root)
    assert sorted((f.code, f.where.short if f.where else "") for f in loaded.findings) == [
        ("SHD001", "base.shard:2"),
        ("SHD007", "base.shard:1"),
        ("SHD007", "top.shard:2"),
    ]


def test_a_text_extends_what_lies_around_the_working_folder(project: Project) -> None:
    root = project({"specs/a.shard": "a: []", "b.shard": "b: []"})
    assert whose(parse('extends "a"\nt: []', cwd=root)) == [(1, "a", "specs/a.shard"), (0, "t", "<text>")]
    assert whose(parse('extends "b.shard"\nt: []', "mine", cwd=root)) == [(1, "b", "b.shard"), (0, "t", "mine")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_places_are_right_whatever_ends_the_lines(project: Project, end: str) -> None:
    root = project({})
    (root / "x.shard").write_bytes(f"mesh: [a=1]{end}when b > 1 {{ w: [] }}{end}".encode("utf-8-sig"))
    loaded = load("x.shard", cwd=root)
    (finding,) = loaded.findings
    assert str(finding.where) == "x.shard:2:6"
    assert loaded.sources["x.shard"].splitlines()[1] == "when b > 1 { w: [] }"
