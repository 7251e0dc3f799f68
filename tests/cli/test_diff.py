"""`sharddsl diff`: what moves, in bytes worked out by hand; the pairs of files, of git too; the formats; refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sharddsl.cli.main import main
from tests.schema import problems

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]
SHIPPED = (ROOT / "specs" / "llama" / "fsdp_tp.shard").read_text()
RULES = SHIPPED[: SHIPPED.index("check ")]
CHECK = "check llama_tiny on [dp=1, fsdp=4, mp=2] batch 8 seq 64\n"
FOLLOWERS = ("{}", "grad.{}", "opt.mu.{}", "opt.nu.{}")

# llama_tiny: vocab 512, embed 128, layers 4, heads 16, kv_heads 8, head_dim 8, ffn 512, float32 params, the head apart.
# Each device's bytes under the shipped rules with fsdp=4 and mp=2, by hand:
W_OUT = 4 * 512 * 128 * 4
ATTENTION = 4 * 128 * (16 + 8 + 8 + 16) * 8 * 4 // 8  # wq, wk, wv, wo, 8 ways
MLP = 3 * W_OUT // 8  # w_gate, w_in, w_out, 8 ways
NORMS = (4 + 4 + 1) * 128 * 4
TABLE = 512 * 128 * 4
PARAM = TABLE // 2 + ATTENTION + MLP + NORMS + TABLE // 8  # the table 2 ways, the head 8 ways
OPT = 2 * (TABLE // 8 + ATTENTION + MLP + NORMS + TABLE // 8) + 4  # moments of the table 8 ways; a counter of 4 bytes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is the working folder."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(file: Path, *, old: str = "", new: str = "", checks: str = CHECK) -> None:
    """The shipped rules for fsdp and tp, with one change."""
    assert old in RULES
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(RULES.replace(old, new, 1) + checks)


def diff(capsys: Capture, *words: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert main(["diff", *words, "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def only_check(found: Any) -> Any:
    ((check,),) = [file["checks"] for file in found["files"]]
    return check


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def committed(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")


@pytest.fixture
def repository(folder: Path) -> Path:
    """A project in git, with one committed spec."""
    git(folder, "init", "-q")
    write(folder / "specs" / "my.shard")
    committed(folder)
    return folder


# ---------------------------------------------------------------------------------------------- what moves, and how far


def test_one_axis_less_on_one_weight(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new.shard", old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]")
    check = only_check(diff(capsys, "old.shard", "new.shard"))
    assert check["changes"] == [
        {
            "before": "[mp, fsdp]",
            "after": "[None, fsdp]",
            "count": 4,
            "tensors": [follower.format("layers.mlp.w_out") for follower in FOLLOWERS],
        }
    ]
    more = W_OUT // 4 - W_OUT // 8
    held = check["bytes_per_device"]
    assert held["param"] == {"before": PARAM, "after": PARAM + more}
    assert held["grad"] == {"before": PARAM, "after": PARAM + more}
    assert held["opt"] == {"before": OPT, "after": OPT + 2 * more}
    assert held["act"]["before"] == held["act"]["after"]
    k_and_v = 2 * 4 * 8 * 64 * 8 * 8 * 2 // 8  # bfloat16, rows 4 ways and heads 2
    assert held["cache"] == {"before": k_and_v, "after": k_and_v}


def test_one_axis_more_on_one_activation(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new.shard", old="act.resid: [data, None, None]", new="act.resid: [data, None, mp]")
    check = only_check(diff(capsys, "old.shard", "new.shard"))
    assert check["changes"] == [
        {"before": "[fsdp, None, None]", "after": "[fsdp, None, mp]", "count": 1, "tensors": ["act.resid"]}
    ]
    resid = 8 * 64 * 128 * 2  # batch, seq, embed, bfloat16
    held = check["bytes_per_device"]
    assert held["act"]["before"] - held["act"]["after"] == resid // 4 - resid // 8
    assert held["param"] == {"before": PARAM, "after": PARAM}


def test_layers_that_change_alike_are_one_line(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard", checks="")
    write(folder / "new.shard", checks="", old="act:  ", new="layers[0:126].mlp.w_in: [None, fsdp]\nact:  ")
    words = ["old.shard", "new.shard", "model=llama3_1_405b", "spec.mesh.fsdp=8", "spec.mesh.mp=8", "run.scan=false"]
    (change,) = only_check(diff(capsys, *words))["changes"]
    assert change["count"] == 4 * 126
    assert change["tensors"] == [follower.format("layers[0:126].mlp.w_in") for follower in FOLLOWERS]


def test_an_axis_of_size_one_and_another_name_move_nothing(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new.shard", old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [(dp, mp), fsdp]")
    assert diff(capsys, "old.shard", "new.shard", "--fail-on-change")["changed"] is False
    (folder / "new.shard").write_text((RULES + CHECK).replace("fsdp", "shards"))
    check = only_check(diff(capsys, "old.shard", "new.shard", "--fail-on-change"))
    assert (check["renamed"], check["changes"], check["mesh"]) == ({"fsdp": "shards"}, [], None)


def test_another_mesh_is_a_change_of_the_same_check(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new.shard", checks=CHECK.replace("fsdp=4", "fsdp=8"))
    found = diff(capsys, "old.shard", "new.shard", "--fail-on-change", code=1)
    check = only_check(found)
    assert check["status"] == "both"
    assert check["mesh"] == {"before": "[fsdp=4, mp=2]", "after": "[fsdp=8, mp=2]"}
    assert check["changes"] == []
    only_fsdp = PARAM - NORMS - TABLE // 2  # what is split over fsdp
    assert check["bytes_per_device"]["param"] == {"before": PARAM, "after": PARAM - only_fsdp // 2}


def test_checks_go_together_by_their_text(folder: Path, capsys: Capture) -> None:
    other = CHECK.replace("mp=2", "mp=4")
    write(folder / "old.shard", checks=CHECK + "check llama_tiny on [fsdp=2] batch 4 seq 64\n")
    write(folder / "new.shard", checks=other + CHECK.replace(" on", "  on"))
    (file,) = diff(capsys, "old.shard", "new.shard", "--fail-on-change")["files"]
    assert [(check["check"], check["status"]) for check in file["checks"]] == [
        ("llama_tiny on [dp=1, fsdp=4, mp=4] batch 8 seq 64", "added"),
        ("llama_tiny on [dp=1, fsdp=4, mp=2] batch 8 seq 64", "both"),
        ("llama_tiny on [fsdp=2] batch 4 seq 64", "removed"),
    ]
    assert file["checks"][0]["bytes_per_device"]["param"]["before"] is None
    assert file["checks"][1]["bytes_per_device"]["param"] == {"before": PARAM, "after": PARAM}


def test_a_memory_kind_is_part_of_a_layout(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new.shard", old="act:  ", new="opt.norm.scale: replicated @pinned_host\nact:  ")
    (change,) = only_check(diff(capsys, "old.shard", "new.shard"))["changes"]
    assert (change["before"], change["after"]) == ("replicated", "replicated @pinned_host")
    assert change["tensors"] == ["opt.mu.norm.scale", "opt.nu.norm.scale"]


def test_errors_in_a_layout_are_told(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new.shard", checks=CHECK.replace("mp=2", "mp=3"))
    check = only_check(diff(capsys, "old.shard", "new.shard"))
    assert check["errors"]["before"] == []
    assert set(check["errors"]["after"]) == {"SHD302 does-not-divide", "SHD303 splits-a-head"}


# ---------------------------------------------------------------------------------------------- which files go together


def test_folders(folder: Path, capsys: Capture) -> None:
    write(folder / "old" / "same.shard")
    write(folder / "new" / "same.shard")
    write(folder / "old" / "llama" / "gone.shard")
    write(folder / "new" / "llama" / "new.shard")
    found = diff(capsys, "old", "new", "--fail-on-change")
    assert [(file["file"], file["status"], len(file["checks"])) for file in found["files"]] == [
        ("llama/gone.shard", "gone", 1),
        ("llama/new.shard", "new", 1),
        ("same.shard", "both", 1),
    ]


def test_a_revision(repository: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repository / "specs" / "my.shard"
    write(file, old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]")
    assert diff(capsys, "--against", "HEAD", "--fail-on-change", code=1)["files"][0]["file"] == "specs/my.shard"
    committed(repository)
    assert diff(capsys, "specs", "--against", "HEAD", "--fail-on-change")["changed"] is False
    monkeypatch.chdir(repository / "specs")
    (change,) = only_check(diff(capsys, "my.shard", "--against", "HEAD~1"))["changes"]
    assert (change["before"], change["after"], change["count"]) == ("[mp, fsdp]", "[None, fsdp]", 4)
    assert only_check(diff(capsys, "my", "--against", "HEAD~1"))["changes"] == [change]  # by its name


def test_within_a_hook_of_git(repository: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    (found,) = diff(capsys, "specs/my.shard", "--against", "HEAD")["files"]
    assert (found["status"], found["checks"][0]["status"]) == ("both", "both")


def test_a_tag_and_a_commit_in_a_subfolder_of_the_project(repository: Path, capsys: Capture) -> None:
    git(repository, "tag", "-a", "v1", "-m", "x")
    write(repository / "team" / "a b" / "my.shard")
    committed(repository)
    write(repository / "team" / "a b" / "my.shard", old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]")
    files = diff(capsys, "team", "--against", "v1")["files"]
    assert [(file["file"], file["status"]) for file in files] == [("team/a b/my.shard", "new")]
    assert only_check(diff(capsys, "team", "--against", "HEAD"))["changes"][0]["count"] == 4


def test_a_file_that_is_new_or_gone(repository: Path, capsys: Capture) -> None:
    (repository / "specs" / "my.shard").rename(repository / "specs" / "other.shard")
    files = diff(capsys, "--against", "HEAD")["files"]
    assert [(file["file"], file["status"]) for file in files] == [
        ("specs/my.shard", "gone"),
        ("specs/other.shard", "new"),
    ]
    assert diff(capsys, "specs/my.shard", "--against", "HEAD")["files"][0]["status"] == "gone"
    by_name = diff(capsys, "my", "other", "--against", "HEAD")["files"]
    assert [(file["file"], file["status"]) for file in by_name] == [("my", "gone"), ("other", "new")]
    (repository / "specs" / "other.shard").unlink()
    (repository / "specs").rmdir()
    assert diff(capsys, "specs", "--against", "HEAD")["files"] == files[:1]


@pytest.mark.parametrize("base", ["base", "../bases/base.shard"])
def test_bases_are_read_at_the_revision(base: str, repository: Path, capsys: Capture) -> None:
    file = repository / "specs" / base if base.endswith(".shard") else repository / "specs" / "base.shard"
    write(file, checks="")
    (repository / "specs" / "my.shard").write_text(f'extends "{base}"\n{CHECK}')
    committed(repository)
    write(file, old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]", checks="")
    (change,) = only_check(diff(capsys, "specs/my.shard", "--against", "HEAD"))["changes"]
    assert (change["before"], change["after"], change["count"]) == ("[mp, fsdp]", "[None, fsdp]", 4)


def test_a_project_that_git_does_not_know_as_one(repository: Path, capsys: Capture) -> None:
    git(repository, "rm", "-q", "--cached", "pyproject.toml")
    write(repository / "specs" / "base.shard", checks="")
    (repository / "specs" / "my.shard").write_text(f'extends "base"\n{CHECK}')
    git(repository, "add", "specs")
    git(repository, "commit", "-qm", "x")
    assert only_check(diff(capsys, "specs/my.shard", "--against", "HEAD"))["status"] == "both"


def test_a_link_of_a_revision_leads_nowhere_else(repository: Path, capsys: Capture, tmp_path_factory: Any) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.shard"
    secret.write_text("mesh: [a=1]\n")
    (repository / "specs" / "link.shard").symlink_to(secret)
    (repository / "specs" / "my.shard").write_text(f'extends "link.shard"\n{CHECK}')
    committed(repository)
    (repository / "specs" / "link.shard").unlink()
    write(repository / "specs" / "my.shard")
    capsys.readouterr()
    assert main(["diff", "specs/my.shard", "--against", "HEAD"]) == 1
    assert "`link.shard` lies outside the project (HEAD:)" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ what is printed


def test_the_text(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new.shard", old="attn.{wq, wk, wv}:  [fsdp, mp]", new="attn.{wq, wk, wv}:  [None, mp]")
    assert main(["diff", "old.shard", "new.shard"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "new.shard",
        "  llama_tiny on [dp=1, fsdp=4, mp=2] batch 8 seq 64: 12 tensors change layout",
        "    [fsdp, mp, None] → [None, mp, None]: 12 tensors",
        "      layers.attn.wq, layers.attn.wk, layers.attn.wv (param, grad, opt.mu,",
        "        opt.nu)",
        "    bytes per device     before      after",
        "      param           644.5 KiB  836.5 KiB  +192.0 KiB (+29.8%)",
        "      grad            644.5 KiB  836.5 KiB  +192.0 KiB (+29.8%)",
        "      opt               1.1 MiB    1.4 MiB  +384.0 KiB (+35.0%)",
        "      act             464.0 KiB  464.0 KiB",
        "      batch             1.5 KiB    1.5 KiB",
        "      cache            64.0 KiB   64.0 KiB",
        "",
        "layouts change in 1 of 1 file, 1 of 1 check",
    ]
    assert max(map(len, lines)) <= 80


def test_the_markdown(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    write(folder / "new|`.shard", old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]")
    assert main(["diff", "old.shard", "new|`.shard", "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "**Layouts, `old.shard` → `new|'.shard`**: layouts change in 1 of 1 file, 1 of 1 check\n\n### `new|'.shard`\n\n"
        "<code>llama_tiny on [dp=1, fsdp=4, mp=2] batch 8 seq 64</code>: 4 tensors change layout\n\n"
        "| before | after | tensors |  |\n| --- | --- | ---: | --- |\n"
        "| `[mp, fsdp]` | `[None, fsdp]` | 4 | `layers.mlp.w_out (param, grad, opt.mu, opt.nu)` |\n\n"
    )
    assert "| param | 644.5 KiB | 772.5 KiB | +128.0 KiB (+19.9%) |" in text
    assert "<details>" not in text


def test_much_markdown_is_folded_and_no_longer_than_a_comment_may_be(folder: Path, capsys: Capture) -> None:
    checks = "".join(CHECK.replace("batch 8", f"batch {8 * n}") for n in range(1, 130))
    write(folder / "old.shard", checks=checks)
    write(folder / "new.shard", checks=checks, old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]")
    assert main(["diff", "old.shard", "new.shard", "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    assert 30_000 < len(text) < 65_536
    assert text.count("<details>") == text.count("</details>") > 40
    assert "more would be too long for a comment" in text.splitlines()[-1]


def test_nothing_to_tell(folder: Path, capsys: Capture) -> None:
    write(folder / "my.shard")
    assert main(["diff", "my.shard", "my.shard", "--fail-on-change"]) == 0
    assert capsys.readouterr().out == "no layout changes in 1 file, 1 check\n"


def test_a_spec_without_checks_is_not_compared(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard", checks="")
    write(folder / "new.shard", checks="", old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]")
    assert main(["diff", "old.shard", "new.shard", "--fail-on-change"]) == 0
    assert "not compared: it has no `check` line; name a model" in capsys.readouterr().out


def test_the_settings_name_the_model_of_specs_without_checks(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard", checks="")
    write(folder / "new.shard", checks="", old="mlp.w_out:          [mp, fsdp]", new="mlp.w_out: [None, fsdp]")
    (folder / "pyproject.toml").write_text('[tool.sharddsl.lint]\nmodel = "llama_tiny"\nmesh = {fsdp = 4}\n')
    found = diff(capsys, "old.shard", "new.shard", "--fail-on-change", code=1)
    assert only_check(found)["check"].startswith("llama_tiny, train, on [dp=1, fsdp=4, mp=2]")


def test_the_json_is_as_its_schema_says(folder: Path, capsys: Capture) -> None:
    write(folder / "old" / "a.shard")
    write(folder / "new" / "a.shard", checks=CHECK.replace("fsdp=4", "fsdp=8") + CHECK.replace("batch 8", "batch 16"))
    write(folder / "new" / "b.shard", old="act:  ", new="opt.norm.scale: replicated @pinned_host\nact:  ")
    write(folder / "old" / "c.shard")
    write(folder / "new" / "c.shard", checks=CHECK.replace("mp=2", "mp=3"))
    write(folder / "new" / "d.shard", checks="")
    write(folder / "new" / "e.shard", checks="check nothing\n")
    found = diff(capsys, "old", "new", code=1)
    schema = json.loads((ROOT / "docs" / "schema" / "diff.schema.json").read_text())
    assert problems(found, schema) == []
    assert len(found["files"]) == 4
    assert [file["file"] for file in found["unreadable"]] == ["e.shard"]
    found["files"][0]["checks"][0]["changes"] = [{"before": 1}]
    assert problems(found, schema)


def test_an_output_file(folder: Path, capsys: Capture) -> None:
    write(folder / "my.shard")
    assert main(["diff", "my.shard", "my.shard", "--output-file", "told.txt"]) == 0
    assert capsys.readouterr().out == ""
    assert (folder / "told.txt").read_text() == "no layout changes in 1 file, 1 check\n"


# ------------------------------------------------------------------------------------------------------ what is refused


def test_a_text_with_errors(folder: Path, capsys: Capture) -> None:
    write(folder / "old.shard")
    (folder / "new.shard").write_text("mesh: [fsdp=4\n")
    assert main(["diff", "old.shard", "new.shard"]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("new.shard is not compared, as it has errors (new.shard):\nnew.shard:1:7: error SHD001")
    assert told.out == "no layout changes in 0 files, 0 checks; 1 file not compared, with errors\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name two specs or folders, OLD NEW; or a path and --against REV"),
        (["specs"], "name two specs or folders"),
        (["specs", "specs/my.shard"], "specs is a folder, and the other is not"),
        (["specs/none.shard", "specs/my.shard"], "cannot read the spec specs/none.shard: there is no such file"),
        (["specs/my.shard", "--against", "nowhere"], "has no such revision; in a shallow clone"),
        (["specs/my.shard", "--against", "HEAD:specs"], "has no such revision"),
        (["specs/my.shard", "--against=--help"], "has no such revision"),
        (["specs/none.shard", "--against", "HEAD"], "there is no specs/none.shard, and there was none"),
        (["empty", "--against", "HEAD"], "there is no *.shard file in empty, and there was none"),
        (["/", "--against", "HEAD"], "not a git repository"),
        (["specs", "specs", "spec=llama/dp", "model=llama_tiny"], "specs are named without `spec=`"),
        (["specs", "specs", "model={a,b}"], "it reads plain overrides alone"),
        (["specs", "specs", "--output-file", "no/such/file"], "it cannot be written"),
    ],
)
def test_wrong_words(words: list[str], says: str, repository: Path, capsys: Capture) -> None:
    (repository / "empty").mkdir()
    assert main(["diff", *words]) == 2
    assert says in capsys.readouterr().err.replace("\n  ", " ")


def test_without_git(repository: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert main(["diff", "specs/my.shard", "--against", "HEAD"]) == 2
    assert "there is no `git` here; compare two files" in capsys.readouterr().err.replace("\n  ", " ")
