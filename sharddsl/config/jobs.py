"""From a command line's overrides to the jobs that it asks for: one, as a rule; several under `--multirun`."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass

from sharddsl.config import fast
from sharddsl.config.schema import Config


@dataclass(frozen=True, slots=True)
class Request:
    """What a command was asked for: `command` is its name, `run` and `data` are the choices that it has by default,
    `overrides` are Hydra overrides as written, and `flags` are Hydra's own options (`--multirun`, `--cfg job`)."""

    command: str
    run: str
    overrides: tuple[str, ...]
    flags: tuple[str, ...] = ()
    data: str = "none"


@dataclass(frozen=True, slots=True)
class Job:
    """One configuration to act on. `overrides` are the job's own within a multirun, and None in a single run."""

    config: Config
    overrides: tuple[str, ...] | None = None


Task = Callable[[Job], int]
"""Acts on a job and returns an exit code; it lets no exception out that it can report."""


def run(request: Request, task: Task) -> int:
    """Give every job of the request to `task`; the largest exit code. Hydra is imported only where it is needed.

    Raises `UsageError` or `ShardError` for overrides that make no configuration.
    """
    if not request.flags:
        config = fast.read(request.overrides, request.run, request.data)
        if config is not None:
            return task(Job(config))
    from sharddsl.config import app

    gc.enable()  # Hydra's configs hold cycles, and a sweep makes many of them
    return app.run(request, task)
