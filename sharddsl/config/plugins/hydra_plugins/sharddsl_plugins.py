"""What Hydra's plugin scan finds in an environment where sharddsl is installed."""

from sharddsl.config.source import ShardGroups, ShardSource

__all__ = ["ShardGroups", "ShardSource"]
