"""The grammar, the shipped specs and the Hydra plugins are found however the project is installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Environment

pytestmark = pytest.mark.slow

SHOW = ("show", "model=llama_tiny", "spec=llama/fsdp_tp", "spec.mesh.fsdp=4", "spec.mesh.mp=2", "--format", "json")


def placed_by(environment: Environment) -> list[list[str]]:
    """The axes that `show` gives a weight, from outside the checkout."""
    layout = json.loads(environment.run("sharddsl", *SHOW))
    (tensor,) = [tensor for tensor in layout["tensors"] if tensor["name"] == "layers.mlp.w_in"]
    axes: list[list[str]] = tensor["axes"]
    return axes


def test_from_a_wheel(from_wheel: Environment) -> None:
    assert placed_by(from_wheel) == [[], ["fsdp"], ["mp"]]


def test_as_a_module(from_wheel: Environment) -> None:
    assert from_wheel.run("python", "-m", "sharddsl", "--version").startswith("sharddsl ")


def test_from_an_sdist(built: Path, make_environment: Callable[[Sequence[str]], Environment]) -> None:
    (sdist,) = built.glob("*.tar.gz")
    assert placed_by(make_environment([str(sdist)])) == [[], ["fsdp"], ["mp"]]


def test_from_the_checkout(make_environment: Callable[[Sequence[str]], Environment]) -> None:
    assert placed_by(make_environment([str(ROOT)])) == [[], ["fsdp"], ["mp"]]


def test_editable(make_environment: Callable[[Sequence[str]], Environment]) -> None:
    environment = make_environment(["--editable", str(ROOT)])
    assert placed_by(environment) == [[], ["fsdp"], ["mp"]]
    assert "sharddsl_plugins" in environment.run("python", "-c", "import hydra_plugins.sharddsl_plugins as p; print(p)")


APP = """
import hydra
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

store = ConfigStore.instance()
store.store(group="model", name="llama_tiny", node={"mine": True})
store.store(name="app", node={"defaults": ["_self_", {"model": "llama_tiny"}, {"spec@placing": "llama/fsdp_tp"}]})


@hydra.main(version_base="1.3", config_path=None, config_name="app")
def main(config):
    print(OmegaConf.to_yaml(config))


main()
"""


def test_another_hydra_app_uses_the_groups(from_wheel: Environment) -> None:
    """The app's own config of the same name stays its own."""
    (from_wheel.workdir / "app.py").write_text(APP)
    printed = from_wheel.run("python", "app.py", "placing.mesh.fsdp=4", "hydra.run.dir=.", "hydra.output_subdir=null")
    assert " ".join(printed.split()) == "model: mine: true placing: ref: llama/fsdp_tp mesh: dp: 1 fsdp: 4 mp: 2"


def test_another_hydra_app_is_told_the_choices(from_wheel: Environment) -> None:
    (from_wheel.workdir / "app.py").write_text(APP)
    refused = from_wheel.fail("python", "app.py", "spec@placing=llama/fspd", "--cfg", "job")
    assert "Could not find 'spec/llama/fspd'" in refused
    assert {"llama/fsdp", "llama/fsdp_tp", "llama/tp"} <= set(refused.split())
