"""What a composed configuration must be, whoever composed it; and the message when it is not.

The models are strict: a number in quotes is text, and no value is converted in silence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field, ValidationError

from sharddsl.findings import UsageError
from sharddsl.models.config import LlamaConfig, RopeScaling
from sharddsl.spec.model import Model
from sharddsl.train.config import Training
from sharddsl.train.data.config import Sources


class SpecChoice(Model):
    """`ref` names a spec on the search path or is a `.shard` file's path. `mesh` gives axes another size than the
    file's; axes that it does not name keep theirs."""

    ref: str
    mesh: dict[str, int] = Field(default_factory=dict)


class Data(Sources):
    """What `train` reads, and what `generate` takes for prompts when its options give it none."""

    prompts: tuple[str, ...] = ()


class Config(Model):
    """One job: which model, placed by which spec, run how, on what, with which weights.

    `weights` is `auto` (what the project knows for this model), `random`, or a path of a file or folder.
    """

    model: LlamaConfig
    spec: SpecChoice
    run: Training
    data: Data = Data()
    weights: str = "auto"


def validate(tree: Mapping[str, Any]) -> Config:
    """The configuration in `tree`. Raises `UsageError` with the dotted path of every value that does not fit."""
    try:
        return Config.model_validate(tree, strict=True)
    except ValidationError as error:
        raise UsageError("\n".join(_describe(item) for item in error.errors(include_url=False))) from None


def unknown_key(path: str, known: Iterable[str]) -> UsageError:
    """The error for an override of a key that does not exist; `known` holds the keys beside it, dotted."""
    if path.removeprefix("model.rope_scaling.") in RopeScaling.model_fields and path.startswith("model."):
        return UsageError(f"{path}: this model has no rope_scaling; give it whole: 'model.rope_scaling={{factor: 8}}'")
    keys = sorted(known)
    depth = keys[0].count(".") + 1 if keys else 1
    return UsageError(f"{path}: unknown key; {nearest('.'.join(path.split('.')[:depth]), keys)}")


def unknown_choice(group: str, choice: str, known: Iterable[str]) -> UsageError:
    """The error for a choice that a group does not have."""
    from difflib import get_close_matches

    choices = sorted(known)
    file = f"./{choice.removesuffix('.shard')}.shard"
    close = [file] if group == "spec" and os.path.isfile(file) else get_close_matches(choice, choices, n=2)
    meant = f"; did you mean {' or '.join(f'{group}={name}' for name in close)}?" if close else ""
    or_file = {"spec": ", or a file: spec=./my.shard", "data": ", or a file: data=./my.txt"}.get(group, "")
    return UsageError(
        f"{group}={choice}: there is no such {group}{meant}\n  {group} is one of: {', '.join(choices)}{or_file}"
    )


def missing_choice(group: str, known: Iterable[str]) -> UsageError:
    """The error for a group that has no default and was not chosen."""
    other = {"spec": "a file: spec=./my.shard", "model": "weights=PATH, for the model that the weights state"}[group]
    return UsageError(f"no {group} given; write {group}=NAME, or {other}\n  NAME is one of: {', '.join(sorted(known))}")


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean X?`, or the first few known words where none is close."""
    from difflib import get_close_matches

    words = sorted(known)
    close = get_close_matches(word, words, n=2, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = ", …" if len(words) > 12 else ""
    return f"known: {', '.join(words[:12])}{more}" if words else "nothing can be set here"


def keys_beside(path: str) -> tuple[str, ...]:
    """The keys that a configuration has where the dotted `path` leads, or as far as its parts are known."""
    model: Any = Config
    known: list[str] = []
    for name in path.split(".")[:-1]:
        below = model.model_fields[name].annotation if name in model.model_fields else None
        if not hasattr(below, "model_fields"):
            break
        model = below
        known.append(name)
    return tuple(".".join((*known, name)) for name in model.model_fields)


def _describe(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "extra_forbidden":
            return str(unknown_key(path, keys_beside(path)))
        case "missing":
            return f"{path}: nothing given"
        case "value_error":
            return f"{path}: {error['ctx']['error']}"
        case "tuple_type":
            return f"{path}: a list is wanted, '{path}=[…]', not {_as_written(error['input'])}"
    message = error["msg"]
    return f"{path}: {message[0].lower()}{message[1:]}, not {_as_written(error['input'])}"


def _as_written(value: Any) -> str:
    """A value as a command line has it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return repr(list(value) if isinstance(value, tuple) else value)
