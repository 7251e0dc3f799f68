"""The fast reader means what Hydra means: the two are compared over a table of command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl.config import app, fast
from sharddsl.config.jobs import Job, Request
from sharddsl.config.schema import Config, Data
from sharddsl.findings import UsageError

BASE = ("model=llama_tiny", "spec=llama/fsdp_tp")


def by_hydra(*overrides: str, run: str = "train") -> Config:
    jobs: list[Job] = []

    def keep(job: Job) -> int:
        jobs.append(job)
        return 0

    assert app.run(Request("test", run, overrides), keep) == 0
    (job,) = jobs
    return job.config


READ_WITHOUT_HYDRA = [
    (),
    ("spec.mesh.fsdp=4",),
    ("spec.mesh.fsdp=+4",),
    ("spec.mesh.fsdp=1_6",),
    ("spec.mesh.fsdp=4", "spec.mesh.mp=4"),
    ("spec.mesh.fsdp=4", "spec.mesh.fsdp=8"),
    ("model=llama3_8b",),
    ("model=llama3_8b", "model=llama2_7b"),
    ("model.layers=2", "model=llama2_7b"),
    ("model.layers=2", "model.layers=3"),
    ("model.norm_eps=1e-6",),
    ("model.norm_eps=0.001",),
    ("model.norm_eps=1.5e-3",),
    ("model.rope_theta=10000",),
    ("model.tied=true",),
    ("model.tied=True",),
    ("model.rope_scaling=null",),
    ("run=generate",),
    ("run.batch=8",),
    ("run.batch=null",),
    ("run.batch=NULL",),
    ("run.seq=128", "run.batch=2", "run.scan=false"),
    ("run.precision=bf16_master",),
    ("run.precision='f32'",),
    ('run.precision="f32"',),
    ("data=demo",),
    ("data=./my.txt",),
    ("data=/a/folder/my.jsonl",),
    ("data=my.bin", "data.dtype=uint32"),
    ("data=../my.dat", "data.format=tokens"),
    ("data=./my.jsonl", "data.key=content"),
    ("data='./my text.txt'",),
    ("weights=random",),
    ("weights=/a/folder/with-dashes_and.dots",),
    ("weights='a folder, with (odd) = characters'",),
    ("weights=''",),
    ('weights="it\'s"',),
    ("weights=./here",),
    ("weights='null'",),
    ("weights='7'",),
]


@pytest.mark.parametrize("overrides", READ_WITHOUT_HYDRA, ids=" ".join)
def test_same_config_as_hydra(overrides: tuple[str, ...]) -> None:
    read = fast.read((*BASE, *overrides), "train")
    assert read is not None
    assert read == by_hydra(*BASE, *overrides)


@pytest.mark.parametrize("run", ["train", "generate"])
def test_same_default_run_as_hydra(run: str) -> None:
    assert fast.read(BASE, run) == by_hydra(*BASE, run=run)


def test_values_are_what_was_written() -> None:
    """The comparison above would not notice a mistake that both readers make."""
    config = fast.read(
        (*BASE, "spec.mesh.fsdp=-1", "model.layers=2", "run.batch=8", "weights='7'", "data=demo"), "generate"
    )
    assert config is not None
    assert (config.model.name, config.model.layers, config.model.embed) == ("llama_tiny", 2, 128)
    assert (config.spec.ref, config.spec.mesh) == ("llama/fsdp_tp", {"fsdp": -1})
    assert (config.run.mode, config.run.precision, config.run.batch) == ("prefill", "f32", 8)
    assert config.weights == "7"
    assert len(config.data.prompts) == 3
    assert [Path(file).name for file in config.data.files] == ["alice.txt"]


def test_a_file_may_stand_for_the_data() -> None:
    config = fast.read((*BASE, "data=./my.jsonl", "data.key=content"), "train")
    assert config is not None
    assert config.data == Data(files=("./my.jsonl",), key="content")
    assert by_hydra(*BASE, "data.files=[a.txt,b.md]").data == Data(files=("a.txt", "b.md"))


LEFT_TO_HYDRA = [
    ("+run.batch=8",),
    ("++run.batch=8",),
    ("~data",),
    ("run.batch=1,2",),
    ("spec=llama/fsdp,llama/tp",),
    ("run.batch=choice(1,2)",),
    ("run.seq=${run.batch}",),
    ("weights=[a,b]",),
    ("data.files=[a.txt,b.txt]",),
    ("weights={a: b}",),
    ("weights=a\\,b",),
    ("weights='it\\'s'",),
    ("weights=a b",),
    ("weights=",),
    ("weights=nan",),
    ("weights=inf",),
    ("weights=007",),
    ("weights=.5",),
    ("weights=glob(*)",),
    ("hydra.verbose=true",),
    ("model=null",),
    ("model=3",),
    ("model.rope_scaling.factor=2",),
    ("run=train", "data@other=demo"),
    ("run.batch",),
]


@pytest.mark.parametrize("overrides", LEFT_TO_HYDRA, ids=" ".join)
def test_left_to_hydra(overrides: tuple[str, ...]) -> None:
    assert fast.read((*BASE, *overrides), "train") is None


REFUSED = [
    (("run.bach=8",), "run.bach: unknown key; did you mean run.batch"),
    (("mdoel.layers=8",), "mdoel.layers: unknown key; did you mean model?"),
    (("spec.messh.fsdp=8",), "spec.messh.fsdp: unknown key; did you mean spec.mesh"),
    (("wieghts=random",), "wieghts: unknown key; did you mean weights?"),
    (("model=llama3_8",), "model=llama3_8: there is no such model; did you mean model=llama3_8b"),
    (("spec=llama/fsdpp",), "spec=llama/fsdpp: there is no such spec; did you mean spec=llama/fsdp"),
    (("run=trian",), "run=trian: there is no such run; did you mean run=train?"),
    (
        ("data=dmeo",),
        "data=dmeo: there is no such data; did you mean data=demo?\n  data is one of: demo, none, or a file",
    ),
    (("data=my",), "data=my: there is no such data\n  data is one of: demo, none, or a file: data=./my.txt"),
    (("data.format=csv",), "data.format: input should be 'text', 'jsonl', 'tokens' or 'auto', not 'csv'"),
    (("data.dtype=int64",), "data.dtype: input should be 'uint16', 'uint32' or 'int32', not 'int64'"),
    (("data.file=x",), "data.file: unknown key; did you mean data.files"),
    (("data.files=./a.txt",), "data.files: a list is wanted, 'data.files=[…]', not './a.txt'"),
    (("run.batch=many",), "run.batch: input should be a valid integer, not 'many'"),
    (("run.batch='8'",), "run.batch: input should be a valid integer, not '8'"),
    (("run.batch=0",), "run.batch: input should be greater than or equal to 1, not 0"),
    (("run.scan=1",), "run.scan: input should be a valid boolean, not 1"),
    (("spec.mesh.fsdp=two",), "spec.mesh.fsdp: input should be a valid integer, not 'two'"),
    (("spec.mesh.fsdp=2.0",), "spec.mesh.fsdp: input should be a valid integer, not 2.0"),
    (("run.batch=9999999999999",), "run.batch: input should be less than or equal to 2147483647"),
    (("run.scan=null",), "run.scan: input should be a valid boolean, not null"),
    (("run.batch=true",), "run.batch: input should be a valid integer, not true"),
    (("model.norm_eps=-1",), "model.norm_eps: input should be greater than or equal to 0, not -1"),
    (("model.norm_eps=1e999",), "model.norm_eps: input should be a finite number, not inf"),
    (("model.rope_theta=0",), "model.rope_theta: input should be greater than 0, not 0"),
    (("model-layers=4",), "model-layers: unknown key; known: data, model, run, spec, weights"),
    (("model.layers-x=4",), "model.layers-x: unknown key; did you mean model.layers"),
    (("spec=''",), "spec=: there is no such spec\n  spec is one of: llama/"),
    (("model.heads=6",), "model: heads=6 must be a multiple of kv_heads=8"),
]


@pytest.mark.parametrize(("overrides", "message"), REFUSED, ids=[" ".join(overrides) for overrides, _ in REFUSED])
def test_refused_in_the_same_words_as_under_hydra(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as fast_error:
        fast.read((*BASE, *overrides), "train")
    with pytest.raises(UsageError) as hydra_error:
        by_hydra(*BASE, *overrides)
    assert str(fast_error.value).startswith(message)
    assert str(hydra_error.value) == str(fast_error.value)


REFUSED_BY_HYDRA = [
    ("run.batch=${x}", "run.batch: Interpolation key 'x' not found"),
    ("run.batch=${oc.decode:4}", "run.batch: TypeError raised while resolving interpolation"),
    ("hydra/launcher=foo", "Could not find 'hydra/launcher/foo'"),
    ("hydra.foo=1", "Could not override 'hydra.foo'"),
    ("spec=" + "x" * 5000, "Hydra cannot use"),
    ("model=null", "model, spec, run, data take the name of a choice"),
    ("spec=7", "model, spec, run, data take the name of a choice"),
    ("model=[nope]", "model=nope: there is no such model"),
    ("model/x=1", "model/x: unknown key"),
    ("model.rope_scaling.factor=8", "this model has no rope_scaling; give it whole: 'model.rope_scaling={factor: 8}'"),
    ("model.rope_scaling.fac=8", "model.rope_scaling.fac: unknown key"),
    ("weights=é", "(a character of the value); text with characters that Hydra gives a meaning is quoted twice: "),
    ("weights=é", "\"weights='é'\""),
    ("weights=a=b", "(mismatched input '=' expecting <EOF>)"),
    ("weights", "`weights` is not an override: those are written key=value"),
    ("weights =x", "a key is a name, or names with dots"),
]


@pytest.mark.parametrize(("override", "message"), REFUSED_BY_HYDRA, ids=[line[:40] for line, _ in REFUSED_BY_HYDRA])
def test_what_hydra_refuses_is_a_usage_error(override: str, message: str) -> None:
    assert fast.read((*BASE, override), "train") is None
    with pytest.raises(UsageError) as error:
        by_hydra(*BASE, override)
    assert message in str(error.value)
    assert "search path" not in str(error.value)


def test_every_job_that_cannot_be_composed_is_told(tmp_path: Path) -> None:
    done: list[Job] = []

    def keep(job: Job) -> int:
        done.append(job)
        return 0

    overrides = (*BASE, "run.batch=1,x,2,y", f"hydra.sweep.dir={tmp_path}")
    with pytest.raises(UsageError) as error:
        app.run(Request("test", "train", overrides, ("--multirun",)), keep)
    assert str(error.value).splitlines() == [
        "run.batch: input should be a valid integer, not 'x'",
        "run.batch: input should be a valid integer, not 'y'",
    ]
    assert [job.config.run.batch for job in done] == [1, 2]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [(("spec=llama/fsdp",), "no model given; write model=NAME"), (("model=llama_tiny",), "no spec given; write spec=")],
)
def test_a_model_and_a_spec_must_be_given(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fast.read(overrides, "train")
    with pytest.raises(UsageError, match=message):
        by_hydra(*overrides)


def test_rope_scaling_is_given_whole_to_a_model_without() -> None:
    scaling = by_hydra(*BASE, "model.rope_scaling={factor: 8}").model.rope_scaling
    assert scaling is not None
    assert (scaling.factor, scaling.original_seq) == (8, 8192)


def test_a_file_in_the_working_folder_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ex.shard").touch()
    with pytest.raises(UsageError) as error:
        fast.read(("model=llama_tiny", "spec=ex"), "train")
    first, names = str(error.value).splitlines()
    assert first == "spec=ex: there is no such spec; did you mean spec=./ex.shard?"
    assert names.startswith("  spec is one of: llama/dp, llama/easylm, ")
