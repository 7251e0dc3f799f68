"""A Spec as JSON: it comes back the same, and the published schema is the models' own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from sharddsl.spec import Spec, list_specs, load, parse
from sharddsl.spec.model import Axes, MeshAxis

PUBLISHED = Path(__file__).parents[2] / "docs" / "schema" / "spec.json"

EVERYTHING = """\
let data = (dp, fsdp)
mesh: [dp=1 @dcn, fsdp=-1, mp=8 @dcn(2)] allow_idle
layers[0:4].attn.{wq, wk}."k".0: [data, mp?, None]
act: {.., batch: (dp, fsdp?)?, heads: *} @pinned_host
grad: follow
opt { /mu.w: replicated
  when not tied and (heads % mp == -1 or mode == train) { v: [fsdp, ...] } }
check m on [fsdp=4] target "cpu:2x4" batch 8 seq 16 mode decode run r { expect memory.peak < 0.5 GiB }
expect count(all_gather, over=(dp, mp), of=act.mlp, in=bwd, at=head) / 2 <= 1e3
"""


def test_the_published_schema_is_the_models() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == Spec.model_json_schema()


@pytest.mark.parametrize("name", list_specs())
def test_shipped_specs_come_back_from_json(name: str) -> None:
    spec = load(name).checked()
    assert Spec.model_validate_json(spec.model_dump_json()) == spec


def test_everything_comes_back_from_json() -> None:
    spec = parse(EVERYTHING).checked()
    assert len(spec.rules) == 5
    assert Spec.model_validate_json(spec.model_dump_json()) == spec


def test_the_deepest_expression_comes_back_from_json() -> None:
    spec = parse("expect " + " + ".join(["1"] * 64) + " == 64").checked()
    assert Spec.model_validate_json(spec.model_dump_json()) == spec


def test_values_are_frozen_and_strict() -> None:
    axis = MeshAxis(name="dp", size=2)
    with pytest.raises(ValidationError, match="frozen"):
        axis.size = 4  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Axes.model_validate({"axes": [], "optionel": True})
    with pytest.raises(ValidationError, match="greater than or equal to -1"):
        MeshAxis(name="dp", size=-2)


def test_importing_it_loads_none_of_the_heavy_libraries() -> None:
    heavy = ["jax", "flax", "hydra", "omegaconf", "rich", "numpy"]
    program = f"import sys, sharddsl.spec; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
