"""The Python API: from a text to shardings and constraints in somebody's own jitted function."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, assert_type

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sharddsl
from sharddsl import api, models
from sharddsl.findings import ShardError, UsageError

MLP = """
mesh: [data=4, model=2]
w_in:  [None, model]
w_out: [model, None]
b:     replicated
"""
DIMS = {"w_in": ("embed", "ffn"), "w_out": ("ffn", "embed"), "b": ("embed",)}


def params() -> dict[str, Any]:
    return {"w_in": jnp.ones((16, 32)), "w_out": jnp.ones((32, 16)), "b": jnp.zeros(16)}


def test_the_package_exports_what_it_says() -> None:
    for name in sharddsl.__all__:
        assert getattr(sharddsl, name).__module__.startswith("sharddsl.")
        assert name in dir(sharddsl)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sharddsl.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_type_checker_knows_the_names_that_are_loaded_late() -> None:
    """Checked by mypy, for which `load` is no Any, and the unknown name above an error."""
    spec = assert_type(sharddsl.load("llama/fsdp"), api.Spec)
    layout = assert_type(spec.resolve("llama_tiny", mesh={"fsdp": 2}), api.Layout)
    assert str(layout.table.mesh) == "[fsdp=2]"


def test_a_preset_by_name() -> None:
    layout = sharddsl.load("llama/fsdp_tp").resolve("llama3_8b", mesh={"fsdp": 4, "mp": 2})
    assert repr(layout) == "<sharddsl.Layout of llama3_8b on [dp=1, fsdp=4, mp=2]>"
    assert layout.table["layers.mlp.w_in"].axes == ((), ("fsdp",), ("mp",))
    assert "layers.mlp.w_in" in str(layout)


def test_a_config_and_how_it_is_run() -> None:
    config = models.PRESETS["llama_tiny"].model_copy(update={"layers": 2})
    run = sharddsl.Run(mode="decode", batch=8, seq=128, precision="f32")
    layout = sharddsl.load("llama/fsdp").resolve(config, devices=8, run=run)
    assert layout.table.mesh.sizes == {"fsdp": 8}
    assert layout.table["act.resid"].local_shape == (1, 1, 128)
    assert layout.table["cache.k"].local_shape == (2, 1, 128, 8, 8)


def test_a_file_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.shard").write_text(MLP)
    spec = sharddsl.load(tmp_path / "mine.shard")
    assert "4 rules" not in repr(spec)
    assert "3 rules, mesh [data, model]" in repr(spec)


def test_somebody_elses_pytree() -> None:
    """Shardings for a plain dict of arrays, and the function that uses them, checked against hand-written ones."""
    tree = params()
    layout = sharddsl.parse(MLP).resolve(sharddsl.inventory(tree, DIMS))
    mesh = layout.mesh()
    assert mesh.axis_names == ("data", "model")
    expected = {"w_in": P(None, "model"), "w_out": P("model", None), "b": P()}
    shardings = layout.shardings(tree)
    for name, spec in expected.items():
        assert shardings[name].is_equivalent_to(NamedSharding(mesh, spec), tree[name].ndim)
        assert layout.sharding(name) == shardings[name]

    def apply(tree: dict[str, Any], x: jax.Array) -> jax.Array:
        out: jax.Array = jnp.tanh(x @ tree["w_in"]) @ tree["w_out"] + tree["b"]
        return out

    x = jnp.ones((8, 16)) * 0.1
    sharded = jax.jit(apply, in_shardings=(shardings, None))(jax.device_put(tree, shardings), x)
    assert jnp.allclose(sharded, apply(tree, x))


def test_activations_of_a_function_of_ones_own() -> None:
    named = sharddsl.inventory(params(), DIMS, activations={"hidden": ("batch", "ffn")})
    layout = sharddsl.parse(MLP, rules=["act.hidden: [data, model]"]).resolve(named)
    hidden = jax.jit(lambda x: layout.constrain(x * 2, "act.hidden"))(jnp.ones((8, 32)))
    assert hidden.sharding.is_equivalent_to(NamedSharding(layout.mesh(), P("data", "model")), 2)
    with pytest.raises(UsageError, match=r"act\.hidden has ffn 32, and the value that is constrained to it has 16"):
        jax.jit(lambda x: layout.constrain(x, "act.hidden"))(jnp.ones((8, 16)))
    with pytest.raises(ShardError, match=r"SHD201 .*: `act\.bogus` matches no tensor of act"):
        sharddsl.parse(MLP, rules=["act.bogus: [data]"]).resolve(named)


class Moments(NamedTuple):
    """An optimizer's state as optax has it."""

    count: Any
    mu: Any
    nu: Any


def test_a_whole_state_by_one_inventory() -> None:
    """A pattern names the end of a path: the rules for params place their moments, and one for `mu` the first ones."""
    tree = params()
    state: dict[str, Any] = {"params": tree, "opt_state": (Moments(jnp.zeros((), jnp.int32), tree, tree),)}
    layout = sharddsl.parse(MLP, rules=["mu.w_in: [data, model]"]).resolve(sharddsl.inventory(state, DIMS))
    shardings = layout.shardings(state)
    (opt,) = shardings["opt_state"]
    assert shardings["params"]["w_in"].spec == opt.nu["w_in"].spec == P(None, "model")
    assert opt.mu["w_in"].spec == P("data", "model")
    assert opt.mu["w_out"].spec == P("model", None)
    assert opt.count.spec == P()


def test_rules_come_after_the_texts_own() -> None:
    layout = sharddsl.parse(MLP, rules=["w_in: [data, None]"]).resolve(sharddsl.inventory(params(), DIMS))
    assert layout.table["w_in"].axes == (("data",), ())


def test_constrain_by_the_layout_and_by_the_one_that_is_bound() -> None:
    layout = sharddsl.load("llama/fsdp_tp").resolve("llama_tiny", mesh={"fsdp": 4, "mp": 2})
    hidden = jnp.ones((8, 4, 512))
    expected = NamedSharding(layout.mesh(), P(("dp", "fsdp"), None, "mp"))
    direct = jax.jit(lambda x: layout.constrain(x * 2, "act.mlp.hidden"))(hidden)
    with layout.bound() as bound:
        assert bound is layout
        ambient = jax.jit(lambda x: sharddsl.constrain(x * 2, "act.mlp.hidden"))(hidden)
    for value in (direct, ambient):
        assert value.sharding.is_equivalent_to(expected, 3)
    with pytest.raises(UsageError, match="no layout bound"):
        jax.jit(lambda x: sharddsl.constrain(x * 3, "act.mlp.hidden"))(hidden)


def test_errors_carry_every_finding() -> None:
    with pytest.raises(ShardError) as text:
        sharddsl.parse("mesh: [x=2]\nw: [x\nv: [x]]\n", source="mine")
    assert {finding.code for finding in text.value.findings} == {"SHD001"}
    assert len(text.value.findings) == 2
    with pytest.raises(ShardError) as fit:
        sharddsl.load("llama/fsdp_tp").resolve("smollm2_135m", mesh={"fsdp": 2, "mp": 2})
    assert "SHD303" in {finding.code for finding in fit.value.findings}
    with pytest.raises(ShardError, match="unknown axis `fspd`"):
        sharddsl.load("llama/fsdp").resolve("llama_tiny", mesh={"fspd": 2})
    with pytest.raises(ShardError, match="cannot be inferred"):
        sharddsl.load("llama/fsdp").resolve("llama_tiny")


def test_processes_that_cannot_tell_their_rows() -> None:
    spec = sharddsl.parse("mesh: [dp=4, mp=3]\n*: replicated\nact: {batch: dp}\n")
    spec.resolve("llama_tiny", run=models.Run(batch=8), hosts=4)
    with pytest.raises(ShardError) as caught:
        spec.resolve("llama_tiny", run=models.Run(batch=8), hosts=6)
    assert [finding.code for finding in caught.value.findings] == ["SHD308"]


def test_called_wrongly() -> None:
    with pytest.raises(UsageError, match="has no mesh"):
        sharddsl.parse("*: replicated\n").resolve("llama_tiny")
    with pytest.raises(UsageError, match="unknown model 'llama_tini'"):
        sharddsl.load("llama/fsdp").resolve("llama_tini", mesh={"fsdp": 2})
    with pytest.raises(UsageError, match="`run` says how a LLaMA is run"):
        sharddsl.parse(MLP).resolve(sharddsl.inventory(params(), DIMS), run=sharddsl.Run())


@pytest.mark.parametrize("size", ["2", 2.0, True, None])
def test_sizes_are_whole_numbers(size: Any) -> None:
    spec = sharddsl.load("llama/fsdp")
    with pytest.raises(UsageError, match="mesh: the size of fsdp is a whole number, not "):
        spec.resolve("llama_tiny", mesh={"fsdp": size})
    if size is not None:
        with pytest.raises(UsageError, match="devices is a whole number from 1 on, not "):
            spec.resolve("llama_tiny", devices=size)


def test_numpy_integers_are_sizes() -> None:
    layout = sharddsl.load("llama/fsdp").resolve("llama_tiny", mesh={"fsdp": np.int64(4)}, hosts=np.int32(2))  # type: ignore[dict-item, arg-type]
    assert repr(layout) == "<sharddsl.Layout of llama_tiny on [fsdp=4]>"


def test_what_is_no_text_no_model_or_no_array() -> None:
    spec = sharddsl.load("llama/fsdp")
    with pytest.raises(UsageError, match="`rules` are several texts"):
        sharddsl.load("llama/fsdp", rules="*: replicated")
    with pytest.raises(UsageError, match="hosts is a whole number from 1 on, not 0"):
        spec.resolve("llama_tiny", mesh={"fsdp": 2}, hosts=0)
    with pytest.raises(UsageError, match=r"a model's name, not dict: .* is `sharddsl\.inventory\(tree\)`"):
        spec.resolve({"vocab": 3}, mesh={"fsdp": 2})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a is no array but 3"):
        sharddsl.inventory({"a": 3})
    with pytest.raises(UsageError, match=r"dims: 'a' gives 'xy': write the names as a tuple, \('xy',\) for one"):
        sharddsl.inventory({"a": jnp.zeros((2, 3))}, {"a": "xy"})
