"""Sharding of JAX models as a text file.

    import sharddsl

    layout = sharddsl.load("llama/fsdp_tp").resolve("llama3_8b", mesh={"fsdp": 4, "mp": 2})
    print(layout)

Names are loaded when they are first used: `import sharddsl` alone costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sharddsl.api import Layout, Run, ShardError, Spec, UsageError, constrain, inventory, load, parse

__all__ = ["Layout", "Run", "ShardError", "Spec", "UsageError", "constrain", "inventory", "load", "parse"]

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would let every misspelt name pass as Any

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'sharddsl' has no attribute {name!r}")
        from sharddsl import api

        return getattr(api, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
