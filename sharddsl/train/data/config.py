"""Where training data comes from, as configuration. No numpy here: every command reads it."""

from __future__ import annotations

from typing import Literal

from sharddsl.spec.model import Model

Format = Literal["text", "jsonl", "tokens"]


class Sources(Model):
    """Files to train on, in the order in which they are read; the `data` group of a configuration.

    `format` is what the files hold: `text` in UTF-8, `jsonl` (one document a line, its text under `key`), or `tokens`
    (ids, in a one-dimensional `.npy` or as raw little-endian integers of `dtype`). With `auto` each file's suffix says:
    `.txt` and `.md`, `.jsonl`, `.npy` and `.bin`.
    """

    files: tuple[str, ...] = ()
    format: Literal[Format, "auto"] = "auto"
    key: str = "text"
    dtype: Literal["uint16", "uint32", "int32"] = "uint16"
