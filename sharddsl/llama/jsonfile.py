"""JSON files that come with a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sharddsl.findings import UsageError

_LONGEST_JSON = 256 * 2**20
"""Larger JSON files than this are not read, in bytes; the largest tokenizers in use have 35 MB."""


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; UsageError if it is missing, too large, or something else."""
    try:
        if path.stat().st_size > _LONGEST_JSON:
            raise UsageError(f"{path} is larger than {_LONGEST_JSON >> 20} MiB, so it is not read")
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} is not a JSON object")
    return data
