"""Hydra's view of the config groups: `.shard` files, presets and run configs as choices of a command line.

Hydra finds both plugins through `hydra_plugins/sharddsl_plugins.py` in an installed environment, so that any Hydra app
may have `spec: llama/fsdp_tp` in its defaults list; `sharddsl`'s own commands register them by hand (`app`).
"""

from __future__ import annotations

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.object_type import ObjectType
from hydra.errors import ConfigCompositionException
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from sharddsl.findings import ShardError, UsageError

PATH = "sharddsl://groups"


class ShardSource(ConfigSource):
    """The groups `model`, `spec`, `run` and `data`. A config that the app itself stores under the same name wins."""

    @staticmethod
    def scheme() -> str:
        return "sharddsl"

    def available(self) -> bool:
        return True

    def load_config(self, config_path: str) -> ConfigResult:
        """Raises Hydra's `ConfigCompositionException`, caused by the `UsageError` or `ShardError` behind it."""
        from sharddsl.config import groups

        group, choice = _split(config_path)
        try:
            tree = groups.tree(group, choice)
            if group == "spec":
                tree["mesh"] = file_mesh(choice)
        except (UsageError, ShardError) as error:
            raise ConfigCompositionException(str(error)) from error
        config = OmegaConf.create(tree)
        if group == "spec":
            OmegaConf.set_struct(config.mesh, False)
        return ConfigResult(
            provider=self.provider,
            path=f"{self.scheme()}://{config_path}",
            config=config,
            header={"package": None},
        )

    def is_group(self, config_path: str) -> bool:
        from sharddsl.config import groups

        return config_path in ("", *groups.GROUPS)

    def is_config(self, config_path: str) -> bool:
        from sharddsl.config import groups

        group, choice = _split(config_path)
        return group in groups.GROUPS and groups.has(group, choice) and not _stored_by_app(config_path)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        from sharddsl.config import groups

        if config_path == "":
            return [] if results_filter is ObjectType.CONFIG else sorted(groups.GROUPS)
        if config_path not in groups.GROUPS or results_filter is ObjectType.GROUP:
            return []
        return list(groups.choices(config_path))


class ShardGroups(SearchPathPlugin):
    """Puts the groups on every Hydra app's search path, after the app's own folder."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        if all(element.path != PATH for element in search_path.get_path()):
            search_path.append(provider="sharddsl", path=PATH)


def _split(config_path: str) -> tuple[str, str]:
    """`spec/llama/fsdp` is the choice `llama/fsdp` of `spec`; `spec//abs/x.shard` that of a file by its path."""
    group, _, choice = config_path.partition("/")
    return group, choice


def _stored_by_app(config_path: str) -> bool:
    return ConfigStore.instance().get_type(f"{config_path}.yaml") is ObjectType.CONFIG


def file_mesh(ref: str) -> dict[str, int]:
    """The axes that the spec's file gives, so that Hydra knows which may be overridden."""
    from sharddsl.spec import load

    mesh = load(ref).checked().mesh
    return {axis.name: axis.size for axis in mesh.axes} if mesh is not None else {}
