"""Reads the common overrides without Hydra, which takes longer to import than a layout to resolve.

`read` understands `group=choice` and `dotted.key=scalar` with Hydra's meaning of them, and answers None for anything
else (`+x`, `~x`, sweeps, interpolations, escapes, lists): those go to Hydra. It never reads a line in another way than
Hydra does; the tests compare the two over a table of command lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sharddsl.config import groups
from sharddsl.config.groups import Tree
from sharddsl.config.schema import Config, missing_choice, unknown_key, validate
from sharddsl.config.weights import with_model

_OVERRIDE = re.compile(r"(?P<key>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)=(?P<value>.*)", re.DOTALL | re.ASCII)

# Hydra 1.3's override grammar (OverrideLexer.g4), the part without escapes: `_INT`, `_FLOAT` and `_PLAIN` accept less
# than its INT, FLOAT and unquoted strings do, and nothing that it would read otherwise.
_INT = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)", re.ASCII)
_PLAIN = re.compile(r"(?:[A-Za-z_/]|\.\.?/)[A-Za-z0-9_./-]*", re.ASCII)
_QUOTED = re.compile(r"'[^'\\$]*'|\"[^\"\\$]*\"")
_LONGEST = 4096
"""Characters: a longer value is no path, and Python refuses to read an integer of so many digits."""
_WORDS = {"null": None, "true": True, "false": False}
_NUMBERS_BY_NAME = frozenset({"nan", "inf"})


def read(overrides: Sequence[str], run: str, data: str = "none") -> Config | None:
    """The configuration that `overrides` make, for a command that has this run and these data by default; None if Hydra
    must read them.

    Raises `UsageError` for an unknown choice or key, and for a value that does not fit.
    """
    chosen = groups.defaults(run, data)
    assigned: list[tuple[str, Any]] = []
    for override in overrides:
        match = _OVERRIDE.fullmatch(override)
        if match is None:
            return None
        key, text = match["key"], match["value"]
        if not _is_scalar(text):
            return None
        value = _scalar(text)
        if key in groups.GROUPS:
            if not isinstance(value, str):
                return None
            chosen[key] = value
        elif key == "hydra" or key.startswith("hydra."):
            return None
        else:
            assigned.append((key, value))
    for group in groups.REQUIRED:
        if group not in chosen:
            raise missing_choice(group, groups.choices(group))
    tree: Tree = {group: groups.tree(group, chosen[group]) for group in groups.GROUPS} | dict(groups.SCALARS)
    for key, value in assigned:
        if not _assign(tree, key, value):
            return None
    return validate(with_model(tree))


def _is_scalar(text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    return any(pattern.fullmatch(text) for pattern in (_INT, _FLOAT, _QUOTED)) or (
        _PLAIN.fullmatch(text) is not None and text.lower() not in _NUMBERS_BY_NAME
    )


def _scalar(text: str) -> str | int | float | bool | None:
    """The value of a text that `_is_scalar`."""
    if text[0] in "'\"":
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _assign(tree: Tree, key: str, value: Any) -> bool:
    """Set `key` in place. False where Hydra must say what it means (a whole group given as a value)."""
    *parents, last = key.split(".")
    node = tree
    for depth, name in enumerate(parents):
        if name not in node:
            raise unknown_key(key, _siblings(node, parents[:depth]))
        if not isinstance(node[name], dict):
            return False
        node = node[name]
    if parents == ["spec", "mesh"]:
        node[last] = value
        return True
    if last not in node:
        raise unknown_key(key, _siblings(node, parents))
    if isinstance(node[last], dict):
        return False
    node[last] = value
    return True


def _siblings(node: Tree, parents: Sequence[str]) -> list[str]:
    return [".".join((*parents, name)) for name in node]
