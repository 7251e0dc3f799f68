"""Where the grammar, the shipped specs and the demo text lie: in an installed wheel, or at the root of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """`sharddsl/<name>` in a wheel (the build maps the top-level folder there), `<checkout>/<name>` otherwise."""
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def grammar() -> Path:
    """The language's Lark grammar."""
    return _folder("grammars") / "shard.lark"


def shipped_specs() -> Path:
    """The folder of the specs that come with the package (`llama/fsdp.shard`, …)."""
    return _folder("specs")


def demo_text() -> Path:
    """A text to train on: "Alice's Adventures in Wonderland" by Lewis Carroll, of 1865 and in the public domain, 12
    chapters in plain ASCII with a form feed between them."""
    return _PACKAGE / "train" / "data" / "alice.txt"
