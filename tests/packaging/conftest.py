"""Environments to install the project into: empty but for the dependencies of the one that runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment and an empty folder to run things in, outside the checkout."""

    folder: Path
    workdir: Path

    def run(self, *command: str) -> str:
        """Run a program of this environment, which succeeds; its standard output."""
        done = self._run(command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fail(self, *command: str) -> str:
        """Run a program of this environment, which exits with 1; its standard error."""
        done = self._run(command)
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        program, *arguments = command
        return subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            cwd=self.workdir,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def install(self, *what: str) -> None:
        """pip, without dependencies or build environments: nothing is downloaded."""
        self.run("python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", *what)


@pytest.fixture(scope="session")
def make_environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[str]], Environment]:
    """Makes a new environment with these requirements (paths) installed."""

    def make(requirements: Sequence[str]) -> Environment:
        folder = tmp_path_factory.mktemp("environment")
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        (folder / "work").mkdir()
        environment = Environment(folder / "venv", folder / "work")
        # A folder named in a .pth is searched, but the .pth files in it are not read: an editable install of this
        # checkout, beside the dependencies, is not seen.
        (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        assert "No module named 'sharddsl'" in environment.fail("python", "-c", "import sharddsl")
        environment.install(*requirements)
        return environment

    return make


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)], check=True)
    return folder


@pytest.fixture(scope="session")
def from_wheel(built: Path, make_environment: Callable[[Sequence[str]], Environment]) -> Environment:
    """An environment with the wheel installed."""
    (wheel,) = built.glob("*.whl")
    return make_environment([str(wheel)])
