"""What each entry point may load. A heavy import costs every call of an editor or a CI job; it is easy to add one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"jax", "jaxlib", "flax", "numpy", "hydra", "omegaconf", "rich", "antlr4", "yaml", "tokenizers", "gguf"}
SHOW = ["show", "model=llama3_1_405b", "spec=llama/fsdp_tp", "spec.mesh.fsdp=512", "spec.mesh.mp=8"]


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that are loaded in a fresh interpreter once it has run `statement`."""
    report = "import sys; print('\\n'.join(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{report}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def run_main(argv: list[str]) -> str:
    return f"from sharddsl.cli.main import main\nassert main({argv!r}) == 0"


def test_the_package_alone_is_light() -> None:
    assert loaded_by("import sharddsl") & (HEAVY | {"pydantic", "lark"}) == set()


@pytest.mark.parametrize("form", ["text", "json", "golden"])
def test_show_loads_nothing_heavy(form: str) -> None:
    assert loaded_by(run_main([*SHOW, "--format", form])) & HEAVY == set()


@pytest.mark.parametrize("form", ["full", "concise", "json"])
def test_lint_loads_nothing_heavy(form: str) -> None:
    assert loaded_by(run_main(["lint", "specs", "--format", form])) & HEAVY == set()


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_diff_loads_nothing_heavy(form: str) -> None:
    assert loaded_by(run_main(["diff", "llama/dp", "llama/zero1", "--format", form])) & HEAVY == set()


def test_golden_files_load_nothing_heavy() -> None:
    assert loaded_by(run_main(["lint", "specs", "--golden", "tests/specs/golden"])) & HEAVY == set()


def test_an_override_for_hydra_loads_hydra_and_no_jax() -> None:
    loaded = loaded_by(run_main([*SHOW, "++run.batch=512"]))
    assert "hydra" in loaded
    assert loaded & {"jax", "flax"} == set()


def test_the_probe_sees_a_heavy_import() -> None:
    assert "numpy" in loaded_by("import numpy")
    assert "jax" in loaded_by("import sharddsl.partition")
