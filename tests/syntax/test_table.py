"""The grammar has no conflict, and a saved table is used only if it is this user's own and sound."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lark
import pytest

from sharddsl import resources, syntax
from sharddsl.syntax import table
from sharddsl.syntax.tree import File

TEXT = "attn.wq: [fsdp, mp]"
PROGRAM = f"from sharddsl import syntax; print(syntax.to_text(syntax.parse({TEXT!r}).file), end='')"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder that nothing has used yet."""
    monkeypatch.setenv("SHARDDSL_CACHE_DIR", str(tmp_path))
    table.parser.cache_clear()
    yield tmp_path / "syntax"
    table.parser.cache_clear()


def parsed_anew() -> File:
    table.parser.cache_clear()
    return syntax.parse(TEXT).file


def saved(cache: Path) -> Path:
    (path,) = cache.iterdir()
    return path


def assert_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The saved table serves: whoever builds one now fails."""
    monkeypatch.setattr(table, "build", None)
    assert parsed_anew() == EXPECTED


def count_builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with each table that is built."""
    built: list[str] = []
    build = table.build

    def counted(grammar: str) -> lark.Lark:
        built.append(grammar)
        return build(grammar)

    monkeypatch.setattr(table, "build", counted)
    return built


EXPECTED = syntax.parse(TEXT).file


def test_the_grammar_has_neither_conflicts_nor_overlapping_terminals() -> None:
    assert table.build(resources.grammar().read_text(encoding="utf-8"), strict=True).terminals


def test_the_table_is_private_and_is_read_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed_anew() == EXPECTED
    path = saved(cache)
    assert path.stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700
    assert_sound(monkeypatch)


def test_another_grammar_has_another_table(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_anew()
    grammar = tmp_path / "other.lark"
    grammar.write_text(resources.grammar().read_text(encoding="utf-8") + "\n// changed\n", encoding="utf-8")
    monkeypatch.setattr(resources, "grammar", lambda: grammar)
    assert parsed_anew() == EXPECTED
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"junk", pickle.dumps(None), pickle.dumps({"data": 1, "memo": 2})])
def test_a_damaged_table_is_built_anew(cache: Path, damage: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_anew()
    saved(cache).write_bytes(damage)
    assert parsed_anew() == EXPECTED
    assert_sound(monkeypatch)


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
def test_a_truncated_table_is_built_anew(cache: Path, part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_anew()
    path = saved(cache)
    sound = path.read_bytes()
    path.write_bytes(sound[: int(len(sound) * part)])
    assert parsed_anew() == EXPECTED
    assert_sound(monkeypatch)


class Hostile:
    """What an attacker would have unpickled."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.witness),)


def test_a_table_cannot_run_code(cache: Path, tmp_path: Path) -> None:
    parsed_anew()
    witness = tmp_path / "witness"
    saved(cache).write_bytes(pickle.dumps(Hostile(witness)))
    assert parsed_anew() == EXPECTED
    assert not witness.exists()


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o720])
def test_a_folder_that_others_may_use_is_not_used(cache: Path, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    assert parsed_anew() == EXPECTED
    assert list(cache.iterdir()) == []


def test_a_table_that_others_may_write_is_not_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_anew()
    path = saved(cache)
    path.chmod(0o666)
    built = count_builds(monkeypatch)
    assert parsed_anew() == EXPECTED
    assert len(built) == 1
    assert path.stat().st_mode & 0o777 == 0o600


def test_links_are_not_followed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_anew()
    path = saved(cache)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    built = count_builds(monkeypatch)
    assert parsed_anew() == EXPECTED
    assert len(built) == 1
    cache.rename(tmp_path / "moved")
    cache.symlink_to(tmp_path / "moved")
    assert parsed_anew() == EXPECTED
    assert len(built) == 2


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null", "/dev/null/folder"])
def test_without_a_usable_folder_there_is_no_table(folder: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDDSL_CACHE_DIR", folder)
    assert parsed_anew() == EXPECTED
    assert not cache.exists()


def child(environment: dict[str, str]) -> subprocess.Popen[str]:
    environment = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)


def test_a_process_without_a_home_parses() -> None:
    process = child({"HOME": "/proc/nowhere"})
    assert process.communicate(timeout=60)[0] == TEXT + "\n"
    assert process.returncode == 0


def test_processes_that_start_together_do_not_disturb_each_other(cache: Path) -> None:
    processes = [child({"SHARDDSL_CACHE_DIR": str(cache.parent)}) for _ in range(4)]
    assert [process.communicate(timeout=120)[0] for process in processes] == [TEXT + "\n"] * 4
    assert [process.returncode for process in processes] == [0] * 4
    assert saved(cache).stat().st_mode & 0o777 == 0o600
