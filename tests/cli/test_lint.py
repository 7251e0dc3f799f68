"""`sharddsl lint`: what it reads, prints and answers with."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from sharddsl.cli.main import main

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]
CLEAN = "mesh: [fsdp=4]\n*:     {embed: fsdp}\nact:   {batch: fsdp}\ncache: {batch: fsdp}\n"
WARNED = CLEAN.replace("[fsdp=4]", "[fsdp=4, mp=2]") + "check llama_tiny batch 8 seq 64\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_shipped_specs_are_clean(capsys: Capture) -> None:
    assert main(["lint", str(ROOT / "specs"), "--format=concise", "--fail-on=info"]) == 0
    assert capsys.readouterr().out == "10 files, 22 cases: clean; layouts only, not compiled\n"


def test_a_folder_is_searched_and_hidden_ones_are_not(folder: Path, capsys: Capture) -> None:
    (folder / "sub").mkdir()
    (folder / ".hidden").mkdir()
    for name in ("b.shard", "sub/a.shard", ".hidden/c.shard", "notes.txt"):
        (folder / name).write_text(CLEAN)
    assert main(["lint"]) == 0
    assert re.findall(r"^\S+: clean$", capsys.readouterr().out, re.MULTILINE) == [
        "b.shard: clean",
        "sub/a.shard: clean",
    ]


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 0), (["--fail-on=warning"], 1), (["--fail-on=info"], 1), (["--fail-on=info", "--exit-zero"], 0)],
)
def test_what_it_fails_on(options: list[str], code: int, folder: Path, capsys: Capture) -> None:
    (folder / "my.shard").write_text(WARNED)
    assert main(["lint", "my.shard", *options]) == code
    assert "my.shard:1:16: warning SHD106 axis-never-used: mp=2 splits no tensor" in capsys.readouterr().out


def test_a_model_and_a_mesh_in_place_of_the_checks(capsys: Capture) -> None:
    assert main(["lint", "llama/tp", "model=llama3_8b", "spec.mesh.mp=16", "run.batch=1", "run.seq=128"]) == 0
    assert "checked: llama3_8b, train, on [mp=16]" in capsys.readouterr().out
    assert main(["lint", "llama/tp", "model=llama3_8b", "spec.mesh.mp=5", "--format=concise"]) == 1
    assert "SHD303" in capsys.readouterr().out


def test_the_text_of_stdin(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"mesh: [\n")))
    assert main(["lint", "-", "--stdin-filename", "edited.shard", "--format=concise"]) == 1
    assert capsys.readouterr().out.startswith("edited.shard:1:7: error SHD001 ")


def test_tensors_that_are_no_llama(folder: Path, capsys: Capture) -> None:
    """Report 19: one kv head over two devices."""
    tensors = [{"name": "attn.key.kernel", "dims": ["heads", "embed", "head_dim"], "shape": [1, 2048, 256]}]
    (folder / "gemma.json").write_text(json.dumps({"kind": "gemma", "tensors": tensors, "sizes": {"heads": 1}}))
    (folder / "my.shard").write_text("mesh: [data=1, model=1]\nattn.*.kernel: [model, data, None]\n")
    words = ["lint", "my.shard", "--inventory", "gemma.json", "spec.mesh.model=2", "--format=json"]
    assert main(words) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["cases"] == ["gemma, train, on [data=1, model=2]: 2 devices"]
    assert [(f["code"], f["tensor"], f["where"]["line"]) for f in file["findings"]] == [
        ("SHD303", "attn.key.kernel", 2)
    ]


def test_data(folder: Path, capsys: Capture) -> None:
    (folder / "my.shard").write_text(WARNED)
    assert main(["lint", "my.shard", "--format=json", "--output-file=found.json"]) == 0
    assert capsys.readouterr().out == ""
    found = json.loads((folder / "found.json").read_text())
    assert found["version"] == 1
    (file,) = found["files"]
    assert file["file"] == "my.shard"
    assert file["cases"] == ["llama_tiny, train, on [fsdp=4, mp=2]: 8 devices batch 8 seq 64"]
    (finding,) = file["findings"]
    assert finding["where"] == {"file": "my.shard", "line": 1, "column": 16, "end_line": 1, "end_column": 20}
    assert (finding["code"], finding["name"], finding["severity"]) == ("SHD106", "axis-never-used", "warning")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nowhere.shard"], "cannot read the spec nowhere.shard: there is no such file"),
        (["llama/nothing"], "unknown spec `llama/nothing`"),
        (["."], "there is no *.shard file in ."),
        (["llama/tp", "model=a,b"], "it reads plain overrides alone"),
        (["llama/tp", "run.batch=8"], "no model given"),
        (["model=llama_tiny", "spec=llama/tp", "llama/tp"], "specs are named without `spec=`: sharddsl lint llama/tp"),
        (["llama/tp", "--inventory", "no.json"], "cannot read the inventory no.json: No such file"),
        (["llama/tp", "--format", "xml"], "argument --format: invalid choice: 'xml'"),
        (["llama/tp", "--output-file", "no/where"], "it cannot be written (No such file or directory)"),
    ],
)
def test_called_wrongly(argv: list[str], message: str, folder: Path, capsys: Capture) -> None:
    assert main(["lint", *argv]) == 2
    assert message in capsys.readouterr().err.replace("\n  ", " ")


def test_an_inventory_that_is_none(folder: Path, capsys: Capture) -> None:
    (folder / "bad.json").write_text("{")
    assert main(["lint", "llama/tp", "--inventory", "bad.json"]) == 2
    assert "the inventory bad.json is not JSON" in capsys.readouterr().err
    (folder / "good.json").write_text('{"tensors": []}')
    assert main(["lint", "llama/tp", "--inventory", "good.json", "run.batch=8"]) == 2
    assert "only spec.mesh.AXIS=N goes with tensors given as data" in capsys.readouterr().err
