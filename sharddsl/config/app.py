"""A command as a Hydra app: composition, `--multirun`, `--cfg`, `--info` and completion, by Hydra itself."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sharddsl.config import groups
from sharddsl.config.jobs import Job, Request, Task
from sharddsl.config.refusals import explained
from sharddsl.config.schema import Config, validate
from sharddsl.config.source import ShardGroups, ShardSource, file_mesh
from sharddsl.config.weights import with_model
from sharddsl.findings import UsageError
from sharddsl.models.config import LlamaConfig


def run(request: Request, task: Task) -> int:
    """Compose the request's jobs with Hydra and give each to `task`; the largest exit code.

    Raises `UsageError` or `ShardError` for what cannot be composed.
    """
    codes = [0]
    refused: list[Exception] = []

    def job(composed: DictConfig) -> None:
        try:
            codes.append(task(_job(composed)))
        except Exception as error:  # Hydra would write a line of its own about it
            refused.append(error)

    name = _store(request)
    with _command_line(request), _printed_whole(request), _log_as_before():
        try:
            hydra.main(version_base="1.3", config_path=None, config_name=name)(job)()
        except SystemExit as done:  # --help, --info and the like end this way
            codes.append(0 if not done.code else 2)
        except (HydraException, OmegaConfBaseException, ValueError, OSError) as error:
            raise explained(error) from error
    if refused:
        raise _all_of(refused)
    return max(codes)


def _all_of(refused: Sequence[Exception]) -> Exception:
    """The errors of jobs that could not be composed, as one."""
    messages = dict.fromkeys(map(str, refused))
    return refused[0] if len(messages) == 1 else UsageError("\n".join(messages))


def _store(request: Request) -> str:
    """Make the request's primary config known to Hydra, and return its name."""
    for plugin in (ShardSource, ShardGroups):  # a checkout has no `hydra_plugins` where Hydra would find them
        Plugins.instance().register(plugin)
    name = f"sharddsl_{request.command}"
    choices = dict.fromkeys(groups.GROUPS, "???") | groups.defaults(request.run, request.data)
    node: dict[str, Any] = {
        "defaults": [
            "_self_",
            *({group: choice} for group, choice in choices.items()),
            {"override hydra/hydra_logging": "none"},
            {"override hydra/job_logging": "none"},
        ],
        **groups.SCALARS,
        # A sweep over models or specs is first composed without any, and its other overrides must find their keys.
        "model": dict.fromkeys(LlamaConfig.model_fields),
        "spec": {"ref": None, "mesh": OmegaConf.create({}, flags={"struct": False})},
        # A single run leaves nothing behind; a multirun keeps Hydra's record under `multirun/`.
        "hydra": {"output_subdir": None, "run": {"dir": "."}, "job": {"name": request.command}},
    }
    ConfigStore.instance().store(name=name, node=node, provider="sharddsl")
    return name


@contextmanager
def _log_as_before() -> Iterator[None]:
    """`--info` has Hydra write everything to the root logger, and in that state it composes a sweep without its
    overrides: a process that goes on must not stay in it."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@contextmanager
def _printed_whole(request: Request) -> Iterator[None]:
    """What Hydra prints of itself, written when it is all there: its logging would report a closed pipe, over and over,
    where the caller of `run` knows what a closed pipe means."""
    if not any(flag.startswith(("--cfg", "--info", "--shell-completion")) for flag in request.flags):
        yield
        return
    with redirect_stdout(StringIO()) as printed:
        yield
    sys.stdout.write(printed.getvalue())


@contextmanager
def _command_line(request: Request) -> Iterator[None]:
    """Hydra reads `sys.argv`, and lets exceptions through only if its environment variable says so."""
    argv, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = [argv[0], *request.flags, *request.overrides]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = argv
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full_error


def _job(composed: DictConfig) -> Job:
    try:
        tree = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise explained(error) from error
    config = validate(with_model(_with_tuples(tree)))
    settings = HydraConfig.get()
    swept = settings.mode is RunMode.MULTIRUN
    return Job(_only_overridden_axes(config), tuple(settings.overrides.task) if swept else None)


def _only_overridden_axes(config: Config) -> Config:
    """Hydra's config shows every axis of the file; what counts here are those with another size than the file's."""
    own = file_mesh(config.spec.ref)
    mesh = {axis: size for axis, size in config.spec.mesh.items() if own.get(axis) != size}
    return config.model_copy(update={"spec": config.spec.model_copy(update={"mesh": mesh})})


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(item) for key, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
