"""`sharddsl show`: the table, the JSON, overrides, and what it refuses."""

from __future__ import annotations

import gc
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from sharddsl.cli.main import main

TINY = ("show", "model=llama_tiny", "spec=llama/fsdp_tp", "spec.mesh.fsdp=4", "spec.mesh.mp=2")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is the working folder."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys: Capture, *argv: str, code: int = 0) -> Any:
    assert main([*argv, "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def tensor(layout: Any, name: str) -> Any:
    (found,) = [item for item in layout["tensors"] if item["name"] == name]
    return found


def test_the_405b_table(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    argv = ("show", "model=llama3_1_405b", "spec=llama/fsdp_tp", "spec.mesh.fsdp=512", "spec.mesh.mp=8")
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "llama3_1_405b" in lines[0]
    assert "[dp=1, fsdp=512, mp=8]: 4096 devices" in lines[0]
    row = next(line for line in lines if line.split()[:1] == ["lm_head.w"])
    # 16384 over fsdp=512 is 32, 128256 over mp=8 is 16032; 32 * 16032 * 4 bytes is 1.96 MiB
    for part in ("embed 16384", "vocab 128256", "[fsdp, mp]", "32×16032", "2.0 MiB", "llama/fsdp_tp.shard:"):
        assert part in row


def test_json(capsys: Capture) -> None:
    layout = shown(capsys, *TINY)
    weight = tensor(layout, "layers.mlp.w_in")
    assert layout["mesh"]["axes"] == {"dp": 1, "fsdp": 4, "mp": 2}
    assert (weight["shape"], weight["axes"], weight["local_shape"]) == (
        [4, 128, 512],
        [[], ["fsdp"], ["mp"]],
        [4, 32, 256],
    )
    assert weight["bytes_per_device"] == 4 * 32 * 256 * 4


def test_run_decides_dtypes_and_batch(capsys: Capture) -> None:
    layout = shown(capsys, *TINY, "run.precision=bf16_master", "run.batch=8", "run.seq=64")
    assert tensor(layout, "layers.mlp.w_in")["dtype"] == "bfloat16"
    assert tensor(layout, "batch.tokens")["local_shape"] == [2, 64]


def test_devices_settle_an_axis_of_minus_one(capsys: Capture) -> None:
    layout = shown(capsys, "show", "model=llama_tiny", "spec=llama/fsdp", "--devices", "8")
    assert layout["mesh"]["axes"] == {"fsdp": 8}


def test_a_rule_wins_and_is_named(capsys: Capture) -> None:
    layout = shown(capsys, *TINY, "--rule", "mlp.w_in: [mp, fsdp]")
    weight = tensor(layout, "layers.mlp.w_in")
    assert (weight["axes"], weight["rule"]) == ([[], ["mp"], ["fsdp"]], "--rule 1:1")


def test_rules_are_never_read_by_hydra(capsys: Capture) -> None:
    """Hydra would take `{`, `,` and `*` for its own; an override that it must read is among these."""
    argv = (
        *TINY,
        "++run.batch=8",
        "--rule",
        "act: {batch: (dp, fsdp), vocab: mp}",
        "--rule",
        "*norm.scale: replicated",
    )
    assert tensor(shown(capsys, *argv), "act.logits")["axes"] == [["dp", "fsdp"], [], ["mp"]]


def test_a_finding_in_a_rule_points_into_the_option(capsys: Capture) -> None:
    assert main([*TINY, "--rule", "mlp.w_in: [fsdpp]"]) == 1
    err = capsys.readouterr().err
    assert "--rule 1:1:12: error SHD101 unknown-axis" in err
    assert "help: did you mean fsdp?" in err


def test_a_layout_that_does_not_fit_is_shown_and_fails(capsys: Capture) -> None:
    argv = ("show", "model=smollm2_135m", "spec=llama/fsdp_tp", "spec.mesh.fsdp=2", "spec.mesh.mp=2")
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert "[dp=1, fsdp=2, mp=2]: 4 devices" in out
    assert "SHD303 splits-a-head: mp=2 does not divide the 9 heads" in err
    assert "and the 3 kv_heads" in err


def test_a_users_file(project: Path, capsys: Capture) -> None:
    (project / "mine.shard").write_text("mesh: [x=2]\n*: {embed: x}\nact: {batch: x}\nbatch: [x]\ncache: {batch: x}\n")
    layout = shown(capsys, "show", "model=llama_tiny", "spec=./mine.shard")
    assert tensor(layout, "norm.scale")["rule"] == "mine.shard:2"


def test_a_file_with_a_comma_in_its_name_is_quoted(project: Path, capsys: Capture) -> None:
    text = "mesh: [x=2]\n*: {embed: x}\nact: {batch: x}\nbatch: [x]\ncache: {batch: x}\n"
    (project / "x,y.shard").write_text(text)
    assert shown(capsys, "show", "model=llama_tiny", "spec='./x,y.shard'")["mesh"]["axes"] == {"x": 2}
    assert main(["show", "model=llama_tiny", "spec=./x,y.shard"]) == 2
    assert "quote the value" in capsys.readouterr().err


def test_projects_specs_are_choices(project: Path, capsys: Capture) -> None:
    (project / "specs").mkdir()
    (project / "specs" / "ours.shard").write_text('extends "llama/dp"\n')
    assert shown(capsys, "show", "model=llama_tiny", "spec=ours", "spec.mesh.dp=2")["mesh"]["axes"] == {"dp": 2}
    assert main(["show", "model=llama_tiny", "spec=our"]) == 2
    assert "did you mean spec=ours?" in capsys.readouterr().err


MESH = "mesh: [x=2]\n"


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", 2, "has no mesh"),
        (b"\x7fELF\x00\x01\x02\xff\xfe" * 99, 1, "SHD001"),
        (b"\xff\xfe\x00m\x00e\x00s\x00h", 1, "SHD001"),
        (MESH.encode() + b"x" * 10_000_000, 1, "SHD001"),
        (MESH.encode() + b"a: " + b"[" * 5000, 1, "SHD001"),
        (MESH.encode() + b"when (" + b"(" * 3000 + b"mp > 1", 1, "SHD001"),
        (MESH.encode() + b"a {" * 3000 + b"}" * 3000, 1, "error SHD"),
        (b'extends "mine.shard"\n', 1, "SHD004"),
        (b'extends "../../etc/passwd"\n', 1, "SHD004"),
        (MESH.encode() + b"mlp.w_in: [y]\n", 1, "SHD101"),
        (MESH.encode() + b"mlp.w_on: [x]\n*: [x]\n", 1, "SHD201"),
    ],
    ids=[
        "empty", "binary", "utf-16", "10 MB line", "deep brackets", "deep parentheses", "deep blocks", "cycle",
        "outside", "unknown axis", "unknown tensor",
    ],
)  # fmt: skip
def test_bad_files_give_findings(project: Path, capsys: Capture, content: bytes, code: int, message: str) -> None:
    (project / "mine.shard").write_bytes(content)
    assert main(["show", "model=llama_tiny", "spec=./mine.shard"]) == code
    err = capsys.readouterr().err
    assert message in err
    assert "internal error" not in err
    assert len(err) < 20_000


def test_a_byte_order_mark_is_accepted(project: Path, capsys: Capture) -> None:
    text = "mesh: [x=2]\n*: {embed: x}\nact: {batch: x}\nbatch: [x]\ncache: {batch: x}\n"
    (project / "mine.shard").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert shown(capsys, "show", "model=llama_tiny", "spec=./mine.shard")["mesh"]["axes"] == {"x": 2}


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("model=llama_tiny", "spec=./none.shard"), 2, "cannot read the spec none.shard: there is no such file"),
        (("model=llama_tiny", "spec=./folder.shard"), 2, "cannot read the spec folder.shard: it is a folder"),
        (("model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fspd=4"), 1, "SHD101 unknown-axis"),
        (("model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=0"), 1, "error SHD"),
        (("model=llama_tiny", "spec=llama/fsdp"), 1, "SHD104 cannot-infer-axis"),
        (("model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=4", "--devices", "6"), 1, "SHD103"),
        (("model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=99999999999999999999"), 1, "error SHD"),
        (
            ("model=llama_tiny", "spec=llama/fsdp", "run.batch=(,"),
            2,
            "`run.batch=(,` is not an override that Hydra can read",
        ),
        (("model=llama_tiny", "spec=llama/fsdp", "run.batch"), 2, "run.batch"),
        (("model=llama_tiny", "spec=llama/fsdp", "run.batch=1,2"), 2, "--multirun"),
        (("model=llama_tiny", "spec=llama/fsdp", "~run"), 2, "run: nothing given"),
        (("model=llama_tiny", "spec=llama/fsdp", "+extra=1"), 2, "extra: unknown key"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refused(project: Path, capsys: Capture, argv: tuple[str, ...], code: int, message: str) -> None:
    (project / "folder.shard").mkdir()
    assert main(["show", *argv]) == code
    err = capsys.readouterr().err
    assert message in err
    assert "internal error" not in err
    assert "Traceback" not in err


def test_multirun_labels_its_results(project: Path, capsys: Capture) -> None:
    argv = ("model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=2,4")
    assert main(["show", "--multirun", *argv]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("==")]
    assert headings == [
        "== model=llama_tiny spec=llama/fsdp spec.mesh.fsdp=2",
        "== model=llama_tiny spec=llama/fsdp spec.mesh.fsdp=4",
    ]


def test_the_collector_runs_while_hydra_does(project: Path, capsys: Capture) -> None:
    """The program starts without it."""
    gc.disable()
    try:
        assert main([*TINY]) == 0
        assert not gc.isenabled()
        assert main([*TINY, "++run.batch=8"]) == 0
        assert gc.isenabled()
    finally:
        gc.enable()


def test_what_is_swept_may_be_overridden_too(project: Path, capsys: Capture) -> None:
    """Hydra composes a sweep without the groups that are swept, and refuses overrides of keys that it does not see."""
    swept = ("model=llama_tiny,llama3_8b", "spec=llama/fsdp,llama/fsdp_tp")
    assert main(["show", "-m", *swept, "spec.mesh.fsdp=2", "model.layers=3", "--format=json"]) == 0
    jobs = [json.loads(line)["layout"] for line in capsys.readouterr().out.splitlines()]
    assert [job["mesh"]["axes"] for job in jobs] == [{"fsdp": 2}, {"dp": 1, "fsdp": 2, "mp": 2}] * 2
    assert [tensor(job, "layers.attn.wq")["shape"][:2] for job in jobs] == [[3, 128]] * 2 + [[3, 4096]] * 2


def test_an_axis_that_one_of_the_swept_specs_lacks(project: Path, capsys: Capture) -> None:
    assert main(["show", "-m", "model=llama_tiny", "spec=llama/tp,llama/fsdp", "spec.mesh.fsdp=2"]) == 1
    out, err = capsys.readouterr()
    assert "on [fsdp=2]: 2 devices" in out
    assert err.startswith("model=llama_tiny spec=llama/tp spec.mesh.fsdp=2:\n")
    assert "unknown axis `fsdp`" in err


def test_multirun_in_json_is_a_line_per_job(project: Path, capsys: Capture) -> None:
    assert (
        main(["show", "--multirun", "model=llama_tiny", "spec=llama/dp,llama/fsdp", "--devices=8", "--format=json"])
        == 0
    )
    jobs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [job["layout"]["mesh"]["axes"] for job in jobs] == [{"dp": 8}, {"fsdp": 8}]
    assert jobs[0]["overrides"] == ["model=llama_tiny", "spec=llama/dp"]


def test_findings_of_a_swept_job_are_told_under_its_name(project: Path, capsys: Capture) -> None:
    assert main(["show", "-m", "model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=3"]) == 1
    assert capsys.readouterr().err.startswith("model=llama_tiny spec=llama/fsdp spec.mesh.fsdp=3:\n<shipped>/")


def test_a_part_of_the_config_that_is_not_there_is_a_usage_error(project: Path, capsys: Capture) -> None:
    assert main([*TINY, "--cfg=job", "--package=nope"]) == 2
    assert "'nope' not found" in capsys.readouterr().err


def test_one_failing_job_does_not_end_a_multirun(project: Path, capsys: Capture) -> None:
    assert main(["show", "-m", "model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=-1,4"]) == 1
    out, err = capsys.readouterr()
    assert "[fsdp=4]: 4 devices" in out
    assert err.startswith("model=llama_tiny spec=llama/fsdp spec.mesh.fsdp=-1:\n")
    assert "SHD104" in err


def test_cfg_prints_the_composed_config(project: Path, capsys: Capture) -> None:
    assert main(["show", "--cfg", "job", "model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=4"]) == 0
    out = capsys.readouterr().out
    assert "spec:\n  ref: llama/fsdp\n  mesh:\n    fsdp: 4\n" in out
    assert main(["show", "--cfg", "job", "--package", "run", "model=llama_tiny", "spec=llama/fsdp"]) == 0
    assert "mode: train" in capsys.readouterr().out


def test_info_says_how_it_was_composed(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    # Hydra sets the root logger up to print, on a stream that is gone after this test.
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    assert main(["show", "--info", "searchpath", "model=llama_tiny", "spec=llama/fsdp"]) == 0
    assert "sharddsl://groups" in capsys.readouterr().out


def test_info_leaves_the_next_command_as_it_was(project: Path, capsys: Capture) -> None:
    """Hydra 1.3 makes the root logger verbose, and while it is, composes a sweep without its overrides."""
    assert main(["show", "--info", "all", "model=llama_tiny", "spec=llama/fsdp"]) == 0
    capsys.readouterr()
    assert main(["show", "-m", "model=llama_tiny", "spec=llama/fsdp,llama/fsdp_tp", "spec.mesh.fsdp=2"]) == 0
    assert "no spec given" not in capsys.readouterr().err


def test_nothing_is_left_behind(project: Path, capsys: Capture) -> None:
    assert main(["show", "model=llama_tiny", "spec=llama/fsdp", "spec.mesh.fsdp=4", "++run.batch=8"]) == 0
    assert list(project.iterdir()) == [project / "pyproject.toml"]


PLACED = "mesh: [x=2]\n*: {embed: x}\nact: {batch: x}\nbatch: [x]\ncache: {batch: x}\n"
ASKED = """\
expect memory.params < 1 KiB
check llama_tiny on [x=4] run train
check llama_tiny { expect memory.params < 1 GiB }
"""


def test_checks_and_expectations_are_said_not_to_be_evaluated(project: Path, capsys: Capture) -> None:
    said = "2 checks and 2 expectations: validated, not evaluated by show"
    (project / "mine.shard").write_text(PLACED + ASKED)
    assert main(["show", "model=llama_tiny", "spec=./mine.shard"]) == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[-1], err) == (said, "")
    assert main(["show", "model=llama_tiny", "spec=./mine.shard", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["mesh"]["axes"], err) == ({"x": 2}, f"{said}\n")


def test_one_check_alone_is_counted_as_one(project: Path, capsys: Capture) -> None:
    (project / "mine.shard").write_text(PLACED + "check llama_tiny\n")
    assert main(["show", "model=llama_tiny", "spec=./mine.shard"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 check: validated, not evaluated by show"


def test_a_check_names_a_run_that_exists(project: Path, capsys: Capture) -> None:
    (project / "mine.shard").write_text(PLACED + "check llama_tiny run bf16\n")
    assert main(["show", "model=llama_tiny", "spec=./mine.shard"]) == 1
    err = capsys.readouterr().err
    assert "mine.shard:6:22: error SHD002" in err
    assert "unknown run `bf16`" in err
    assert "generate, train" in err


def test_a_table_that_goes_into_a_file_fits_a_page(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["show", "model=llama3_8b", "spec=llama/fsdp", "spec.mesh.fsdp=64"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert "  (embed 4096, ffn 14336), 32 layers\n" in out


def test_devices_are_a_remedy_for_an_axis_of_minus_one(capsys: Capture) -> None:
    assert main(["show", "model=llama_tiny", "spec=llama/fsdp"]) == 1
    err = capsys.readouterr().err
    assert "fsdp=-1 cannot be inferred" in err
    assert "help: give it a size: spec.mesh.fsdp=8\n" in err
    assert err.endswith("or say how many devices there are: --devices 8\n")


def test_devices_that_do_not_suit_are_no_remedy(project: Path, capsys: Capture) -> None:
    (project / "mine.shard").write_text("mesh: [x=-1, y=-1]\n*: {embed: (x, y)}\n")
    assert main(["show", "model=llama_tiny", "spec=./mine.shard"]) == 1
    assert "--devices" not in capsys.readouterr().err
