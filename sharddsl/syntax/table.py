"""The parser itself, from a saved table where there is one: to build it from the grammar takes a quarter of a second.

The table lies in a folder that belongs to this user alone. It is read only if folder and file are this user's own and
nobody else may write them, through an unpickler that makes nothing but plain data and this package's two hooks.
Whatever is wrong with it (missing, foreign, corrupt, of another version), the parser is built from the grammar instead.
"""

from __future__ import annotations

import io
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import lark

from sharddsl import resources
from sharddsl.syntax.build import Builder
from sharddsl.syntax.newlines import Newlines

_ALLOWED = {(kind.__module__, kind.__qualname__): kind for kind in (Builder, Newlines, lark.Token)}


@lru_cache(maxsize=1)
def parser() -> lark.Lark:
    """The parser of the grammar in `resources.grammar()`. Safe to share: it keeps no state between texts."""
    grammar = resources.grammar().read_text(encoding="utf-8")
    path = _path(grammar)
    saved = _read(path) if path else None
    if saved is not None:
        try:
            return lark.Lark.load(saved)
        except Exception:  # a table that Lark cannot use fails in as many ways as it has parts
            saved = None
    built = build(grammar)
    if path:
        _write(path, built)
    return built


def build(grammar: str, *, strict: bool = False) -> lark.Lark:
    """The parser, built anew. `strict` refuses conflicts, and terminals that overlap (where `interegular` is there)."""
    return lark.Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start="file",
        keep_all_tokens=True,
        maybe_placeholders=False,
        postlex=Newlines(),
        transformer=Builder(),
        strict=strict,
    )


def folder() -> Path | None:
    """Where tables are kept: `syntax` in `$SHARDDSL_CACHE_DIR`, or in the user's cache folder of this system.

    To import platformdirs, which knows the same folders, takes as long as to read the table.
    """
    if chosen := os.environ.get("SHARDDSL_CACHE_DIR"):
        return Path(os.path.abspath(os.path.expanduser(chosen)), "syntax")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "sharddsl", "syntax") if os.path.isabs(base) else None


def _path(grammar: str) -> Path | None:
    where = folder()
    python = f"{sys.implementation.cache_tag}-{sys.hexversion:x}"
    key = sha256("\0".join([lark.__version__, python, grammar]).encode()).hexdigest()
    return where / f"table-{key[:32]}.pickle" if where else None


class _PlainData(pickle.Unpickler):
    """Makes containers, text (Lark's tokens too), numbers and the two hooks; refuses every other class or function."""

    def find_class(self, module: str, name: str) -> object:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a parser table") from None


def _read(path: Path) -> object | None:
    """The saved table, or None where it is missing or not to be trusted. Never follows a link."""
    try:
        if not _private(os.lstat(path.parent), stat.S_ISDIR):
            return None
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            if not _private(os.fstat(descriptor), stat.S_ISREG):
                return None
            saved: object = _PlainData(io.BytesIO(file.read())).load()
            return saved
        except Exception:  # what a corrupt pickle raises is not bounded
            return None


def _private(status: os.stat_result, of_kind: Callable[[int], bool]) -> bool:
    """Whether it is of this kind, this user's own, and out of everybody else's reach."""
    if not of_kind(status.st_mode):
        return False
    if sys.platform == "win32":
        return True  # the user's own folder is private there, and modes mean nothing
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077


def _write(path: Path, built: lark.Lark) -> None:
    """Saves the table, whole or not at all. Does nothing where the folder cannot be used."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(os.lstat(path.parent), stat.S_ISDIR):
            return
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".table-")  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                built.save(file)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        return
