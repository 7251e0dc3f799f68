"""What is imported is declared, what is declared is imported, and the bounds are those of the constraints."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_IMPORTED = {
    *("build", "hatchling", "editables", "import-linter", "mypy", "ruff", "pytest-xdist"),
    *("interegular", "matplotlib"),
}
"""Test requirements that are programs, or that only other packages import: Lark in its strict mode, `bench --plot`."""
MAKE_GOLDEN_FILES = {"torch", "transformers", "regex", "sentencepiece"}
"""What only the script needs that made the committed golden data."""


OWN = {"sharddsl", "tests", "benchmarks", "hydra_plugins"}
"""Packages of this repository."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: Iterable[str]) -> set[str]:
    return {canonical(re.split(r"[\s<>=!~;\[]", requirement)[0]) for requirement in requirements}


def imported(folder: str) -> Iterator[tuple[str, Path]]:
    """The third-party modules that a folder's files import, anywhere in them, each with a file that does."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            for module in {name.partition(".")[0] for name in modules}:
                if module not in sys.stdlib_module_names and module not in OWN:
                    yield module, path


def distributions(folder: str) -> dict[str, Path]:
    """The distributions that hold the modules which a folder's files import."""
    known = packages_distributions()
    return {canonical(name): path for module, path in imported(folder) for name in known.get(module, [module])}


def test_everything_imported_is_declared() -> None:
    used = distributions("sharddsl")
    extras = [item for extra, items in PROJECT["optional-dependencies"].items() if extra != "test" for item in items]
    assert used.keys() - names([*PROJECT["dependencies"], *extras]) == set(), used


def test_everything_declared_is_imported() -> None:
    # ml-dtypes registers bfloat16 with numpy when jax is imported; it is named where its types are.
    assert names(PROJECT["dependencies"]) - distributions("sharddsl").keys() == set()


def test_everything_that_tests_import_is_declared() -> None:
    declared = names([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]])
    used = distributions("tests") | distributions("benchmarks")
    used = {name: path for name, path in used.items() if name not in MAKE_GOLDEN_FILES}
    assert used.keys() - declared == set(), used


def test_every_test_requirement_is_used() -> None:
    unused = names(PROJECT["optional-dependencies"]["test"]) - distributions("tests").keys() - NOT_IMPORTED
    assert unused == set()


@pytest.mark.parametrize("python", ["py311", "py313"])
def test_constraints_pin_every_requirement_within_its_bounds(python: str) -> None:
    lines = (ROOT / "constraints" / f"{python}.txt").read_text().split()
    pins = dict(line.split("==") for line in lines)
    pinned = {canonical(name): version for name, version in pins.items()}
    extras = [item for items in PROJECT["optional-dependencies"].values() for item in items]
    for requirement in [*PROJECT["dependencies"], *extras]:
        name, bound = requirement.split(">=")
        assert as_numbers(pinned[canonical(name)]) >= as_numbers(bound), requirement


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
