"""The config groups and their choices. Both readers of a command line (`fast`, and Hydra through `source`) use these.

A choice is a plain tree of dicts and scalars. `spec` has no default, and a `model` that is not named is the one that
the weights state: guessing either would place the wrong thing without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sharddsl import resources
from sharddsl.config.schema import Data, unknown_choice
from sharddsl.models import PRESETS
from sharddsl.models.config import LlamaConfig
from sharddsl.search import is_name
from sharddsl.spec import list_specs
from sharddsl.train.config import Training
from sharddsl.train.data.files import is_path

Tree = dict[str, Any]

RUNS: Mapping[str, Training] = MappingProxyType(
    {"train": Training(), "generate": Training(mode="prefill", precision="f32")}
)

DATA: Mapping[str, Data] = MappingProxyType(
    {
        "none": Data(),
        "demo": Data(
            files=(str(resources.demo_text()),),
            prompts=(
                "In two sentences: why is the sky blue?",
                "Write a haiku about a mesh of small computers.",
                "Name three uses of a matrix.",
            ),
        ),
    }
)

GROUPS = ("model", "spec", "run", "data")
REQUIRED = ("spec",)
FROM_WEIGHTS = "weights"
"""The choice of `model` that leaves it to `weights=PATH`: a tree without values."""
SCALARS: Mapping[str, str] = MappingProxyType({"weights": "auto"})
"""The keys beside the groups, with their defaults."""


def defaults(run: str, data: str = "none") -> dict[str, str]:
    """The choice of every group that has a default, for a command that has these by default."""
    return {"model": FROM_WEIGHTS, "run": run, "data": data}


def choices(group: str) -> tuple[str, ...]:
    """The names that may stand after `group=`, sorted. After `spec=` and `data=` a file's path may stand as well."""
    if group == "spec":
        return tuple(sorted(list_specs()))
    if group == "model":
        return (*sorted(PRESETS), FROM_WEIGHTS)
    return tuple(sorted({"run": RUNS, "data": DATA}[group]))


def has(group: str, choice: str) -> bool:
    """Whether `group=choice` can be loaded; a path counts, whether or not there is a file: its reader says."""
    if choice in choices(group):
        return True
    return (group == "spec" and choice != "" and not is_name(choice)) or (group == "data" and is_path(choice))


def tree(group: str, choice: str) -> Tree:
    """The config of `group=choice`. Raises `UsageError` for an unknown choice.

    A spec's `mesh` is empty here: its axes are in the file, which is read once, where it is used.
    """
    if not has(group, choice):
        raise unknown_choice(group, choice, choices(group))
    if group == "spec":
        return {"ref": choice, "mesh": {}}
    if (group, choice) == ("model", FROM_WEIGHTS):
        return dict.fromkeys(LlamaConfig.model_fields)
    if group == "data" and choice not in DATA:
        return dict(Data(files=(choice,)).model_dump())
    value = {"model": PRESETS, "run": RUNS, "data": DATA}[group][choice]
    return dict(value.model_dump())
