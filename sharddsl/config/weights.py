"""`weights=`: where they are, and the model that they state themselves, for a command line that names none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sharddsl.config import groups
from sharddsl.config.schema import missing_choice
from sharddsl.findings import UsageError

NO_PATH = ("auto", "random")
"""The values of `weights` that are no path."""


def path_of(weights: str) -> Path | None:
    """The file or folder of `weights=`; None for those that have none yet. Raises `UsageError` if it is not there."""
    if weights in NO_PATH:
        return None
    path = Path(weights).expanduser()  # which leaves `~nobody` as it is, to be told as missing
    if not os.path.lexists(path):
        raise UsageError(f"weights={weights}: there is no such file or folder")
    return path


def with_model(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """The composed tree; with `model=weights`, the default, its model is the one that `weights=PATH` states.

    Only headers are read. Raises `UsageError` where there is no path, and for weights that cannot be read.
    """
    model, weights = tree["model"], tree.get("weights")
    if not isinstance(model, Mapping) or model.get("name") is not None:
        return tree
    path = path_of(weights) if isinstance(weights, str) and weights else None
    if path is None:
        raise missing_choice("model", groups.choices("model"))
    changed = [f"model.{field}" for field, value in model.items() if value is not None]
    if changed:
        raise UsageError(
            f"{changed[0]}: the model is what weights={weights} says, which no override changes; "
            "for another one give model=NAME too"
        )
    from sharddsl.llama.weights import open_weights

    return {**tree, "model": open_weights(path).config().model_dump()}
