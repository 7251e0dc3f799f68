"""`weights=PATH` without `model=`: the model is the one that the weights state, by either reader of a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl.config import app, fast
from sharddsl.config.jobs import Job, Request
from sharddsl.config.schema import Config
from sharddsl.config.weights import path_of
from sharddsl.findings import UsageError
from tests.llama.weights.files import checkpoint, write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("weights"), checkpoint())


def by_hydra(*overrides: str) -> Config:
    jobs: list[Job] = []

    def keep(job: Job) -> int:
        jobs.append(job)
        return 0

    assert app.run(Request("test", "generate", overrides), keep) == 0
    (job,) = jobs
    return job.config


@pytest.mark.parametrize("chosen", [(), ("model=weights",)])
def test_the_model_is_what_the_weights_say(folder: Path, chosen: tuple[str, ...]) -> None:
    overrides = ("spec=llama/fsdp", f"weights={folder}", *chosen)
    config = fast.read(overrides, "generate")
    assert config is not None
    assert config == by_hydra(*overrides)
    model = config.model
    assert (model.vocab, model.embed, model.layers, model.heads, model.kv_heads, model.head_dim, model.ffn) == (
        48, 64, 2, 4, 2, 24, 96,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("weights={folder}", "model.layers=1"), "model.layers: the model is what weights={folder} says"),
        (("weights=random",), "no model given; write model=NAME, or weights=PATH"),
        (("weights=auto", "model=weights"), "no model given; write model=NAME, or weights=PATH"),
        (("weights={folder}/none",), "weights={folder}/none: there is no such file or folder"),
        (("weights={folder}/config.json",), "weights file {folder}/config.json is neither GGUF nor safetensors"),
    ],
)
def test_refused_in_the_same_words_as_under_hydra(folder: Path, overrides: tuple[str, ...], message: str) -> None:
    words = ["spec=llama/fsdp", *(override.format(folder=folder) for override in overrides)]
    with pytest.raises(UsageError) as fast_error:
        fast.read(words, "generate")
    with pytest.raises(UsageError) as hydra_error:
        by_hydra(*words)
    assert str(fast_error.value).startswith(message.format(folder=folder))
    assert str(hydra_error.value) == str(fast_error.value)


def test_a_path_is_below_the_home_folder_where_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.gguf").touch()
    assert path_of("~/x.gguf") == tmp_path / "x.gguf"
    assert path_of("auto") is None
    with pytest.raises(UsageError, match=r"weights=~/y\.gguf: there is no such file or folder"):
        path_of("~/y.gguf")
