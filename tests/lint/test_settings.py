"""`[tool.sharddsl.lint]`: which file counts, what is taken from it, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl.findings import NAMES, UsageError
from sharddsl.lint.settings import Settings, narrowed, settings_for


def project(folder: Path, table: str, name: str = "pyproject.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"[tool.sharddsl.lint]\n{table}", encoding="utf-8")
    return folder


def test_without_a_table_everything_is_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert settings_for(tmp_path) == Settings()
    assert Settings().codes(None) == set(NAMES)


def test_the_nearest_table_counts_and_no_other(tmp_path: Path) -> None:
    project(tmp_path, 'ignore = ["SHD304"]\nfail-on = "warning"')
    inner = project(tmp_path / "a", 'ignore = ["SHD203"]')
    (tmp_path / "a" / "b").mkdir()
    (tmp_path / "a" / "b" / "pyproject.toml").write_text("[tool.other]\n")  # no table: the next one counts
    for folder in (inner, inner / "b", inner / "b" / "c"):
        assert settings_for(folder) == Settings(ignore=frozenset({"SHD203"}))
    assert settings_for(tmp_path) == Settings(ignore=frozenset({"SHD304"}), fail_on="warning")


def test_extend(tmp_path: Path) -> None:
    table = 'select = ["ALL"]\nignore = ["SHD304"]\nlarge = "1 GiB"\nseverity = {SHD203 = "error"}'
    project(tmp_path, table, "base.toml")
    project(
        tmp_path / "a",
        'extend = "../base.toml"\nselect = ["SHD00", "large-and-replicated"]\nignore = ["SHD207"]\n'
        'severity = {rule-never-wins = "info", SHD106 = "error"}',
    )
    assert settings_for(tmp_path / "a") == Settings(
        select=frozenset({*(f"SHD00{n}" for n in range(1, 9)), "SHD304"}),
        ignore=frozenset({"SHD304", "SHD207"}),
        severity={"SHD203": "info", "SHD106": "error"},
        large=2**30,
    )


def test_files_of_their_own(tmp_path: Path) -> None:
    table = '[tool.sharddsl.lint.per-file-ignores]\n"old/*.shard" = ["SHD3"]\n"t.shard" = ["SHD001", "SHD106"]\n'
    settings = settings_for(project(tmp_path, table))
    assert "SHD304" not in settings.codes(tmp_path / "old" / "deep" / "a.shard")
    assert "SHD304" in settings.codes(tmp_path / "new" / "a.shard")
    assert "SHD304" in settings.codes(Path("/elsewhere/old/a.shard"))
    assert "SHD106" not in settings.codes(tmp_path / "any" / "t.shard")
    assert "SHD001" in settings.codes(tmp_path / "any" / "t.shard")  # what is not understood is always told


def test_the_model_of_specs_without_checks(tmp_path: Path) -> None:
    table = 'model = "llama3_8b"\nrun = "train"\nmesh = {fsdp = 8, mp = -1}\nbatch = 64\nseq = 2048\ndevices = 16\n'
    settings = settings_for(project(tmp_path, table))
    assert settings.devices == 16
    assert settings.overrides == (
        *("model=llama3_8b", "run=train", "run.batch=64", "run.seq=2048", "spec.mesh.fsdp=8", "spec.mesh.mp=-1"),
    )


def test_the_command_line() -> None:
    given = Settings(select=frozenset({"SHD203"}), ignore=frozenset({"SHD304"}), severity={"SHD203": "info"})
    settings = narrowed(given, ["SHD3,splits-a-head"], ["SHD307"], {"SHD302": "warning"})
    assert settings.select == {f"SHD3{n}" for n in ("01", "02", "03", "04", "05", "06", "07", "08", "09", "10")}
    assert settings.ignore == {"SHD304", "SHD307"}
    assert settings.severity == {"SHD203": "info", "SHD302": "warning"}
    assert narrowed(given, [], [], {}) == given


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("ignroe = []", "ignroe: unknown key; did you mean ignore?"),
        ("per_file_ignores = {}", "per_file_ignores: unknown key; did you mean per-file-ignores?"),
        ('ignore = "SHD304"', "ignore: input should be a valid tuple, not 'SHD304'"),
        ('ignore = ["SHD999"]', "no finding has the code or name `SHD999`"),
        ('severity = {SHD304 = "fatal"}', "severity.SHD304: input should be 'error', 'warning' or 'info', not 'fatal'"),
        ('large = "64 MiBs"', 'large = "64 MiBs": it is a number of bytes, or a number with a unit: "64 MiB"'),
        ("large = -1", "large"),
        ("mesh = {fsdp = 0.5}", "mesh.fsdp"),
        ('extend = "none.toml"', "extend: there is no file"),
        ('extend = "pyproject.toml"', "files extend each other in a circle"),
        ("ignore = [", "it is not TOML"),
    ],
)
def test_a_wrong_table(table: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        settings_for(project(tmp_path, table))
    assert says in str(raised.value)
    assert "pyproject.toml" in str(raised.value)
