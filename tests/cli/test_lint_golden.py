"""`sharddsl lint --golden`: files that are written, compared, out of date, and without a spec."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharddsl.cli.main import main

Capture = pytest.CaptureFixture[str]
SPEC = "mesh: [fsdp=4, mp=1]\n*:     {embed: fsdp}\nact:   {batch: fsdp}\ncache: {batch: fsdp}\n"
CHECK = "check llama_tiny batch 8 seq 64\n"
LINT = ("lint", "--golden", "golden", "--format=concise", "--ignore=SHD106")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, which is the working folder, with one spec."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "my.shard").write_text(SPEC + CHECK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(project: Path) -> Path:
    """The project, with the golden file of its spec."""
    assert main([*LINT, "--write-golden"]) == 0
    return project


def test_a_file_is_written_once(project: Path, capsys: Capture) -> None:
    assert main([*LINT, "--write-golden"]) == 0
    assert capsys.readouterr().err == "wrote golden/specs/my.golden: 1 case\n"
    file = project / "golden" / "specs" / "my.golden"
    assert os.listdir(file.parent) == ["my.golden"]
    lines = file.read_text().splitlines()
    assert lines[0] == "# The effective layouts of specs/my.shard; axes of size 1 are left out."
    assert lines[3] == "case: llama_tiny, train, on [fsdp=4], batch 8, seq 64"
    assert [line.split("  ")[0] for line in lines[4:7]] == ["embed.w", "layers.attn_norm.scale", "layers.attn.wq"]
    assert lines[6].endswith("(embed, heads, head_dim)          [fsdp, None, None]")
    before = file.stat().st_mtime_ns
    assert main([*LINT, "--write-golden"]) == 0
    assert capsys.readouterr().err == "1 golden file in golden said the same already\n"
    assert file.stat().st_mtime_ns == before
    assert main([*LINT]) == 0


def test_each_check_is_there_in_its_own_mode(project: Path) -> None:
    (project / "specs" / "my.shard").write_text(SPEC + CHECK + CHECK.replace("\n", " mode decode\n") + CHECK)
    assert main([*LINT, "--write-golden"]) == 0
    text = (project / "golden" / "specs" / "my.golden").read_text()
    assert [line for line in text.splitlines() if line.startswith("case:")] == [
        "case: llama_tiny, train, on [fsdp=4], batch 8, seq 64",
        "case: llama_tiny, decode, on [fsdp=4], batch 8, seq 64",
    ]
    assert main([*LINT]) == 0


def test_an_axis_of_size_one_and_the_place_of_the_program_change_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "specs" / "my.shard").write_text(SPEC.replace("embed: fsdp", "embed: (mp, fsdp)") + CHECK)
    monkeypatch.chdir(folder / "specs")
    assert main(["lint", "my.shard", "--golden", "../golden"]) == 0


def test_a_change_is_told_and_then_written(folder: Path, capsys: Capture) -> None:
    changed = SPEC.replace("embed: fsdp}", "embed: fsdp}\nmlp.w_in: {ffn: fsdp}") + CHECK
    (folder / "specs" / "my.shard").write_text(changed)
    capsys.readouterr()
    assert main([*LINT]) == 1
    assert capsys.readouterr().out.splitlines()[0] == (
        "specs/my.shard:6:1: error SHD209 golden-differs: 4 kinds of tensors are not as golden/specs/my.golden has "
        "llama_tiny, train, on [fsdp=4], batch 8, seq 64: layers.mlp.w_in (param, grad, opt.mu, opt.nu)"
    )
    assert main(["lint", "--golden", "golden"]) == 1
    assert "golden/specs/my.golden:13:1: was [fsdp, None], is [None, fsdp]: layers.mlp.w_in" in capsys.readouterr().out
    assert main([*LINT, "--ignore", "golden-differs"]) == 0
    assert main([*LINT, "--write-golden"]) == 0
    assert "rewrote golden/specs/my.golden: 1 case\n" in capsys.readouterr().err
    assert main([*LINT]) == 0


def test_a_case_that_is_no_more_is_told_when_it_is_left_out(folder: Path, capsys: Capture) -> None:
    (folder / "specs" / "my.shard").write_text(SPEC + CHECK.replace("batch 8", "batch 16"))
    capsys.readouterr()
    assert main([*LINT, "--write-golden"]) == 0
    assert capsys.readouterr().err == (
        "rewrote golden/specs/my.golden: 1 case\n  no more in it: llama_tiny, train, on [fsdp=4], batch 8, seq 64\n"
    )


def test_a_golden_file_whose_spec_is_gone(folder: Path, capsys: Capture) -> None:
    (folder / "specs" / "other.shard").write_text(SPEC + CHECK)
    (folder / "specs" / "my.shard").unlink()
    capsys.readouterr()
    assert main([*LINT, "--write-golden"]) == 1
    told = capsys.readouterr()
    assert "golden/specs/my.golden: error SHD209 golden-differs: it is the golden file of specs/my.shard" in told.out
    assert (folder / "golden" / "specs" / "my.golden").exists()
    (folder / "golden" / "specs" / "my.golden").unlink()
    assert main([*LINT]) == 0


def test_the_golden_file_of_a_spec_that_is_there_and_not_linted_is_no_orphan(folder: Path) -> None:
    (folder / "specs" / "other.shard").write_text(SPEC + CHECK)
    assert main([*LINT, "--write-golden"]) == 0
    assert main([*LINT, "specs/other.shard"]) == 0


def test_nothing_is_written_of_a_spec_with_errors(folder: Path, capsys: Capture) -> None:
    file = folder / "golden" / "specs" / "my.golden"
    before = file.read_bytes()
    (folder / "specs" / "my.shard").write_text(SPEC.replace("fsdp=4", "fsdp=3") + CHECK)
    capsys.readouterr()
    assert main([*LINT, "--write-golden"]) == 1
    assert capsys.readouterr().err == "specs/my.shard: it has errors, and no golden file is written\n"
    assert file.read_bytes() == before


def test_several_processes_say_the_same(folder: Path, capsys: Capture) -> None:
    for name in ("a", "b", "c"):
        (folder / "specs" / f"{name}.shard").write_text(SPEC + CHECK)
    capsys.readouterr()
    assert main([*LINT, "--jobs", "1"]) == 1
    alone = capsys.readouterr()
    assert alone.out.count("there is no golden file") == 3
    assert main([*LINT, "--jobs", "2"]) == 1
    assert capsys.readouterr() == alone
    assert main([*LINT, "--jobs", "2", "--write-golden"]) == 0
    assert main([*LINT]) == 0


def test_a_file_that_is_no_golden_file(folder: Path, capsys: Capture) -> None:
    (folder / "golden" / "specs" / "my.golden").write_bytes(b"\xff\xfe")
    capsys.readouterr()
    assert main([*LINT]) == 1
    assert "the golden file golden/specs/my.golden cannot be read: not UTF-8 text" in capsys.readouterr().out
    assert main([*LINT, "--write-golden"]) == 2
    assert "is no golden file (not UTF-8 text); it stays" in capsys.readouterr().err


def test_two_specs_have_two_golden_files(folder: Path, capsys: Capture) -> None:
    other = folder / "other"
    (other / "specs").mkdir(parents=True)
    (other / "pyproject.toml").touch()
    (other / "specs" / "my.shard").write_text(SPEC + CHECK)
    assert main([*LINT]) == 2
    assert "would both be in specs/my.golden" in capsys.readouterr().err


def test_layers_that_differ_are_said_apart(folder: Path, capsys: Capture) -> None:
    rules = SPEC.replace("mp=1", "mp=2").replace("embed: fsdp}", "embed: fsdp}\nlayers[0:2].mlp.w_in: {ffn: mp}")
    (folder / "specs" / "my.shard").write_text(rules)
    words = ["show", "model=llama_tiny", "spec=./specs/my.shard", "run.scan=false", "--format=golden"]
    assert main([*words, "--rule", "opt.mu: {embed: fsdp} @pinned_host"]) == 0
    said = {line.split()[0]: line.split("  ")[-1].strip() for line in capsys.readouterr().out.splitlines()}
    assert said["case:"] == "case: llama_tiny, train, on [fsdp=4, mp=2]"
    assert said["layers[0:2].mlp.w_in"] == "[None, mp]"
    assert said["layers[2:4].mlp.w_in"] == "[fsdp, None]"
    assert said["layers.mlp.w_out"] == "[None, fsdp]"
    assert said["opt.mu.layers.mlp.w_out"] == "[None, fsdp] @pinned_host"


def test_show_says_what_the_golden_file_has(folder: Path, capsys: Capture) -> None:
    capsys.readouterr()
    words = ["show", "model=llama_tiny", "spec=./specs/my.shard", "run.batch=8", "run.seq=64", "--format=golden"]
    assert main(words) == 0
    told = capsys.readouterr()
    assert (folder / "golden" / "specs" / "my.golden").read_text().endswith("\n\n" + told.out)
    assert told.err == "1 check: validated, not evaluated by show\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--write-golden"], "say which folder: --golden DIR"),
        (["--golden=golden", "--write-golden", "--fix"], "first --fix, then golden files"),
        (["--golden=golden", "model=llama3_8b"], "of a spec's `check` lines, not of model=llama3_8b"),
    ],
)
def test_wrong_words(words: list[str], says: str, folder: Path, capsys: Capture) -> None:
    assert main(["lint", *words]) == 2
    assert says in capsys.readouterr().err.replace("\n  ", " ")
