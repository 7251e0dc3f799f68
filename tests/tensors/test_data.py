"""Inventories as JSON-able data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sharddsl.findings import UsageError
from sharddsl.models import Run, inventory, preset
from sharddsl.tensors import Path, Tensor
from sharddsl.tensors.data import from_data, to_data


@pytest.mark.parametrize("scan", [True, False])
def test_round_trip_through_json(scan: bool) -> None:
    held = inventory(preset("llama_tiny"), Run(scan=scan, batch=8))
    assert from_data(json.loads(json.dumps(to_data(held)))) == held


def test_the_shortest_form() -> None:
    held = from_data({"tensors": [{"name": "layers[2].fc1.kernel", "shape": [4, None]}]})
    assert held.tensors == (
        Tensor("param", Path(("layers", "fc1", "kernel"), 2, 0), ("d0", "d1"), (4, None), "float32"),
    )


def test_namespaces_and_fused_heads() -> None:
    held = from_data(
        {
            "tensors": [
                {"name": "wk", "dims": ["embed", "kv"], "shape": [64, 32], "heads": {"kv": 2}},
                {"name": "grad.wk", "dims": ["embed", "kv"], "shape": [64, 32]},
                {"name": "opt.mu.wk", "dims": ["embed", "kv"], "shape": [64, 32], "param": "wk"},
                {"name": "param.act", "dims": ["embed"], "shape": [64]},
            ]
        }
    )
    assert held["wk"].heads == (("kv", 2),)
    assert held["grad.wk"].param == held["opt.mu.wk"].param == Path(("wk",))
    assert held["act"].namespace == "param"


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        ({"name": "w", "shape": [2], "dims": ["a", "b"]}, "2 dims for a shape of 1"),
        ({"name": "w", "shape": [2], "dtype": "float23"}, "unknown dtype 'float23'"),
        ({"name": "a..b", "shape": [2]}, "not a tensor's path"),
        ({"name": "a[0].b[1]", "shape": [2]}, "not a tensor's path"),
        ({"name": "opt.mu.w", "shape": [2], "param": ""}, "not a tensor's path"),
        ({"name": "w", "shape": [-2]}, "tensors.0.shape.0"),
        ({"name": "w", "shape": [2], "spec": []}, "tensors.0.spec"),
        ({"name": "w", "shape": [2], "heads": {"kv": 2}}, "heads of kv, which is not a dim"),
    ],
)
def test_what_is_refused(tensor: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_data({"tensors": [tensor]})
    assert says in str(caught.value)


def test_a_name_twice_is_refused() -> None:
    for again in ("w", "param.w"):
        with pytest.raises(UsageError, match="w is there twice"):
            from_data({"tensors": [{"name": "w", "shape": [2]}, {"name": again, "shape": [2]}]})


def test_a_param_that_is_called_like_a_namespace_comes_back_as_one() -> None:
    held = from_data({"tensors": [{"name": "param.act.w", "shape": [2]}, {"name": "cache.k", "shape": [2]}]})
    assert [tensor.namespace for tensor in from_data(to_data(held))] == ["param", "cache"]
    assert from_data(to_data(held)) == held
