"""Shardings and constraints of a layout, on eight virtual devices."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

import sharddsl
from sharddsl.findings import ShardError, UsageError
from sharddsl.layout.model import OPEN, Layout, MeshSizes, Placement
from sharddsl.partition import Partition, born_sharded, constrain, inventory_of
from sharddsl.tensors.model import Inventory, Tensor
from sharddsl.tensors.model import Path as TensorPath
from tests.layouts import ByDim, lay_out

P = PartitionSpec

PARAMS = (
    Tensor("param", TensorPath.parse("embed.w"), ("vocab", "embed"), (16, 8), "float32"),
    Tensor("param", TensorPath.parse("layers.mlp.w_in"), ("layers", "embed", "ffn"), (3, 8, 16), "float32"),
    Tensor("param", TensorPath.parse("norm.scale"), ("embed",), (8,), "float32"),
)
ACTS = (
    Tensor("act", TensorPath.parse("resid"), ("batch", "seq", "embed"), (None, None, 8), "float32"),
    Tensor("act", TensorPath.parse("mlp.hidden"), ("batch", "seq", "ffn"), (None, None, 16), "float32"),
    Tensor("act", TensorPath.parse("final"), ("batch", "seq", "embed"), (None, None, 8), "float32"),
    Tensor("cache", TensorPath.parse("k"), ("layers", "batch", "seq"), (3, None, None), "float32"),
    Tensor("opt", TensorPath.parse("count"), (), (), "int32"),
)
TREE: dict[str, Any] = {
    "embed": {"w": jax.ShapeDtypeStruct((16, 8), jnp.float32)},
    "layers": {"mlp": {"w_in": jax.ShapeDtypeStruct((3, 8, 16), jnp.float32)}},
    "norm": {"scale": jax.ShapeDtypeStruct((8,), jnp.float32)},
}


def partition(mesh: dict[str, int] | None = None) -> Partition:
    by_name: dict[str, ByDim] = {
        "embed.w": {"vocab": ("mp",)},
        "mlp.w_in": {"embed": ("dp", "fsdp"), "ffn": ("mp",)},
        "param": {},
        "act.resid": {"batch": ("dp", "fsdp")},
        "act.mlp.hidden": {"batch": ("dp",), "seq": OPEN, "ffn": ("mp",)},
        "cache.k": {"batch": ("fsdp",)},
    }
    sizes = mesh or {"dp": 2, "fsdp": 2, "mp": 2}
    return Partition.of(lay_out(Inventory("toy", PARAMS + ACTS), sizes, by_name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("embed.w", P("mp", None)),
        ("layers.mlp.w_in", P(None, ("dp", "fsdp"), "mp")),
        ("norm.scale", P(None)),
        ("act.resid", P(("dp", "fsdp"), None, None)),
        ("act.mlp.hidden", P("dp", P.UNCONSTRAINED, "mp")),
        ("act.final", P(P.UNCONSTRAINED, P.UNCONSTRAINED, P.UNCONSTRAINED)),
        ("opt.count", P()),
    ],
)
def test_spec(name: str, expected: PartitionSpec) -> None:
    assert partition().spec(name) == expected


def test_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"there is no tensor act\.mlp\.hiden \(nearest: act\.mlp\.hidden"):
        partition().spec("act.mlp.hiden")


def test_shardings_of_a_nested_dict() -> None:
    on = partition()
    assert on.shardings(TREE) == {
        "embed": {"w": NamedSharding(on.mesh, P("mp", None))},
        "layers": {"mlp": {"w_in": NamedSharding(on.mesh, P(None, ("dp", "fsdp"), "mp"))}},
        "norm": {"scale": NamedSharding(on.mesh, P(None))},
    }


class Weights(NamedTuple):
    w: Any


class Linear(nnx.Module):
    def __init__(self) -> None:
        self.w = nnx.Param(jnp.zeros((4, 2)))


class Stack(nnx.Module):
    def __init__(self) -> None:
        self.layers = nnx.List([Linear(), Linear()])


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        ({"a": {"b": 0}}, ["a.b"]),
        ({"layers": [{"w": 0}, {"w": 0}]}, ["layers[0].w", "layers[1].w"]),
        ({"layers": {3: {"w": 0}}}, ["layers[3].w"]),
        ({"mu": {"layers": ({"w": 0},)}}, ["mu.layers[0].w"]),
        ({"blocks": [0, 0]}, ["blocks.0", "blocks.1"]),
        ((Weights(0), {"layers": {"w": 0}}), ["0.w", "1.layers.w"]),
        (nnx.state(Stack(), nnx.Param), ["layers[0].w", "layers[1].w"]),
    ],
    ids=str,
)
def test_keys_become_paths(tree: Any, names: list[str]) -> None:
    tree = jax.tree.map(lambda _: jax.ShapeDtypeStruct((4, 2), jnp.float32), tree)
    assert [str(tensor.path) for tensor in inventory_of(tree)] == names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": {"scael": TREE["norm"]["scale"]}}, r"the tree has norm\.scael, which toy has not \(nearest: norm"),
        ({"norm": {}}, r"the tree lacks norm\.scale"),
        (
            {"norm": {"scale": jax.ShapeDtypeStruct((9,), jnp.float32)}},
            r"norm\.scale is \(9,\), and toy has \(embed 8\)",
        ),
    ],
)
def test_a_tree_that_was_not_laid_out(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        partition().shardings({**TREE, **change})


def test_along_some_dims_of_a_tensor() -> None:
    on = partition()
    assert on.along("act.resid", "batch") == NamedSharding(on.mesh, P(("dp", "fsdp")))
    with pytest.raises(UsageError, match=r"act\.resid has no dim ffn: its dims are batch, seq, embed"):
        on.along("act.resid", "ffn")


def test_multiple_of() -> None:
    on = partition({"dp": 1, "fsdp": 4, "mp": 2})
    assert on.multiple_of("batch", "act", "cache") == 4
    assert on.multiple_of("seq", "act", "cache") == 1


# ---------------------------------------------------------------------------------------------------------- constraints


def lowered(function: Any, *shapes: tuple[int, ...]) -> str:
    return jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)).as_text()


def test_constrain_is_in_the_program() -> None:
    on = partition()
    text = lowered(lambda x: on.constrain(x, "act.mlp.hidden") * 2, (4, 6, 16))
    assert re.search(r'sdy\.sharding_constraint %arg0 <@mesh, \[\{"dp"\}, \{\?\}, \{"mp"\}\]>', text)


def test_constrain_scopes_what_it_pins() -> None:
    on = partition()
    jaxpr = jax.make_jaxpr(lambda x: on.constrain(x, "act.resid"))(jnp.zeros((4, 6, 8)))
    assert [str(eqn.source_info.name_stack) for eqn in jaxpr.eqns] == ["act.resid"]


def test_no_rule_means_no_constraint() -> None:
    on = partition()
    assert "sharding_constraint" not in lowered(lambda x: on.constrain(x, "act.final"), (4, 6, 8))


def test_one_layer_of_a_stacked_tensor() -> None:
    on = partition()
    assert '[{"fsdp"}, {}]' in lowered(lambda x: on.constrain(x, "cache.k"), (4, 6))


def test_constrain_refuses_a_wrong_name_or_rank() -> None:
    on = partition()
    with pytest.raises(UsageError, match=r"no tensor act\.hidden"):
        on.constrain(jnp.zeros((4, 6, 16)), "act.hidden")
    with pytest.raises(UsageError, match=r"act\.resid is \(batch, seq, embed\): a value with 2 dims cannot"):
        on.constrain(jnp.zeros((4, 8)), "act.resid")


def test_constrain_refuses_a_size_that_the_model_does_not_have() -> None:
    on = partition()
    with pytest.raises(
        UsageError, match=r"act\.mlp\.hidden has ffn 16, and the value .* has 15: its shape is \(4, 6, 15\)"
    ):
        lowered(lambda x: on.constrain(x, "act.mlp.hidden"), (4, 6, 15))
    with pytest.raises(UsageError, match=r"act\.final has embed 8, and the value .* has 9"):  # without a rule too
        lowered(lambda x: on.constrain(x, "act.final"), (4, 6, 9))


def test_constrain_refuses_rows_that_cannot_be_shared_out() -> None:
    on = partition()
    with pytest.raises(UsageError, match=r"act\.resid: 7 rows .* over dp\*fsdp=4\. Give it a multiple: 4 or 8 rows"):
        lowered(lambda x: on.constrain(x, "act.resid"), (7, 6, 8))
    with pytest.raises(UsageError, match=r"act\.resid: 1 rows .* Give it a multiple: 4 rows"):
        lowered(lambda x: on.constrain(x, "act.resid"), (1, 6, 8))


def test_constrain_warns_of_a_dim_that_is_padded() -> None:
    sequence: dict[str, ByDim] = {"param": {}, "act.resid": {"seq": ("dp", "mp")}}
    on = Partition.of(lay_out(Inventory("toy", PARAMS + ACTS), {"dp": 2, "mp": 4}, sequence))
    text = r"act\.resid: seq 9 is not a multiple of dp\*mp=8: XLA pads it to 16, 2 on each device"
    with pytest.warns(UserWarning, match=text) as caught:
        lowered(lambda x: on.constrain(x, "act.resid"), (4, 9, 8))
    assert [warning.filename for warning in caught] == [__file__]
    # A single token, as the last one of a prompt, is split by nobody, and warnings are errors here.
    assert '{"dp", "mp"}' in lowered(lambda x: on.constrain(x, "act.resid"), (4, 1, 8))


def test_a_layout_for_one_batch_serves_for_another() -> None:
    tensor = Tensor("act", TensorPath.parse("resid"), ("batch", "seq", "embed"), (8, 64, 8), "float32")
    on = Partition.of(lay_out(Inventory("toy", (tensor,)), {"dp": 8}, {"act": {"batch": ("dp",)}}))
    assert '[{"dp"}, {}, {}]' in lowered(lambda x: on.constrain(x, "act.resid"), (16, 6, 8))


def test_constrain_without_a_bound_partition_is_an_error() -> None:
    with pytest.raises(UsageError, match="with no layout bound: it would do nothing"):
        jax.jit(lambda x: constrain(x, "act.resid"))(jnp.zeros((4, 6, 8)))


def test_the_bound_partition_is_used_and_released() -> None:
    on = partition()
    with on.bound():
        out = jax.jit(lambda x: constrain(x, "act.resid"))(jnp.zeros((4, 6, 8)))
    assert out.sharding.is_equivalent_to(NamedSharding(on.mesh, P(("dp", "fsdp"))), 3)
    with pytest.raises(UsageError, match="no layout bound"):
        constrain(jnp.zeros((4, 6, 8)), "act.resid")


# ------------------------------------------------------------------------------------------------------- memory, births


def with_memory(kind: str) -> Layout:
    tensor = PARAMS[0]
    placement = Placement(tensor, ((), ()), "rule", memory=kind)
    return Layout(MeshSizes({"dp": 8}), Inventory("toy", (tensor,)), (placement,))


def test_memory_kind() -> None:
    assert Partition.of(with_memory("pinned_host")).sharding("embed.w").memory_kind == "pinned_host"


def test_memory_kind_that_the_devices_lack() -> None:
    with pytest.raises(ShardError) as raised:
        Partition.of(with_memory("pinned_hots"))
    (finding,) = raised.value.findings
    assert (finding.code, finding.tensor) == ("SHD309", "embed.w")
    assert finding.message == "embed.w is to lie in pinned_hots, which a cpu device does not have"
    assert finding.help == "the memory kinds of this device: device, pinned_host, unpinned_host"


def test_an_activation_rests_nowhere() -> None:
    tensor = next(tensor for tensor in ACTS if tensor.name == "act.resid")
    placement = Placement(tensor, ((), (), ()), "rule", memory="pinned_host")
    with pytest.raises(ShardError, match=r"SHD309 .*: act\.resid cannot lie in pinned_host: an activation does not"):
        Partition.of(Layout(MeshSizes({"dp": 8}), Inventory("toy", (tensor,)), (placement,)))


def test_born_sharded() -> None:
    on = partition()

    def init() -> Any:
        return jax.tree.map(lambda x: jnp.full(x.shape, 2.0), TREE)

    born = born_sharded(init, on.shardings(TREE))
    assert {shard.data.shape for shard in born["layers"]["mlp"]["w_in"].addressable_shards} == {(3, 2, 8)}
    assert float(born["embed"]["w"].sum()) == 16 * 8 * 2


def test_born_alike_however_it_is_compiled() -> None:
    """The program that runs once is compiled in a hurry, and draws what the usual one draws."""

    def init(key: jax.Array) -> Any:
        return jax.tree.map(lambda x: jax.random.normal(key, x.shape) * 0.02, TREE)

    key = jax.random.key(3)
    born, plain = born_sharded(init, partition().shardings(TREE), key), jax.jit(init)(key)
    assert all(jax.tree.leaves(jax.tree.map(lambda x, y: bool(jnp.allclose(x, y, rtol=1e-6, atol=0)), born, plain)))


# ------------------------------------------------------------------------------------------------------------ inventory


def test_named_activations() -> None:
    dims = {"embed.w": ("vocab", "embed"), "mlp.w_in": ("layers", "embed", "seq"), "scale": ("vocab",)}
    named = {"attn.scores": ("batch", "embed", "seq", "rank"), "logits": ["batch", "vocab"]}
    acts = inventory_of(TREE, dims, named).of("act")
    # vocab is 16 in one param and 8 in another; the lengths of the batch and of its rows are each call's own.
    assert [(tensor.name, tensor.dims, tensor.shape, tensor.dtype) for tensor in acts] == [
        ("act.attn.scores", ("batch", "embed", "seq", "rank"), (None, 8, None, None), "float32"),
        ("act.logits", ("batch", "vocab"), (None, None), "float32"),
    ]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"hidden": "batch"}, r"activations: 'hidden' gives 'batch': write the names as a tuple, \('batch',\) for one"),
        ({"act.hidden": ("batch",)}, r"activations: write 'hidden' for 'act\.hidden': `act\.` is understood"),
        ({"a..b": ("batch",)}, r"activations: 'a\.\.b' is no name: segments with dots between them are"),
    ],
)
def test_what_is_no_activation(named: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        inventory_of(TREE, activations=named)


def test_a_namespace_that_the_inventory_has_not() -> None:
    on = Partition.of(lay_out(inventory_of(TREE), {"dp": 8}, {"param": {}}))
    with pytest.raises(UsageError, match=r"pytree has no tensors of opt: make the inventory of the whole state"):
        on.shardings({"mu": TREE}, "opt")


def test_inventory_with_dims() -> None:
    inventory = inventory_of(TREE, {"w": ("vocab", "embed"), "mlp.w_*": ("layers", "embed", "ffn")}, kind="mine")
    assert inventory.kind == "mine"
    assert [(tensor.name, tensor.dims, tensor.shape, tensor.dtype) for tensor in inventory] == [
        ("embed.w", ("vocab", "embed"), (16, 8), "float32"),
        ("layers.mlp.w_in", ("layers", "embed", "ffn"), (3, 8, 16), "float32"),
        ("norm.scale", ("dim0",), (8,), "float32"),
    ]


def test_inventory_dims_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match=r"'kernel' matches no leaf of the tree; its first: embed\.w"):
        inventory_of(TREE, {"kernel": ("a", "b")})
    with pytest.raises(UsageError, match=r"'scale' names 2 dims \(a, b\), and norm.scale is \(8,\)"):
        inventory_of(TREE, {"scale": ("a", "b")})


def test_nothing_else_builds_a_partition_spec() -> None:
    package = Path(sharddsl.__file__).parent
    modules = [path for path in sorted(package.rglob("*.py")) if path.parent.name != "partition"]
    assert [str(path.relative_to(package)) for path in modules if names_a_partition_spec(path)] == []
    assert names_a_partition_spec(package / "partition" / "partition.py")


def names_a_partition_spec(path: Path) -> bool:
    """Whether the code (not its comments) speaks of `PartitionSpec`, or of `P` from jax."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in ("PartitionSpec", "P"):
            return True
        if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & {"PartitionSpec", "P"}:
            return True
    return False
