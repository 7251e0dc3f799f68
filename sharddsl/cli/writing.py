"""Files written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, content: bytes) -> None:
    """Put `content` into the file that this path means, links followed: beside it first, then in its place, so that
    whoever reads it sees all of the old or all of the new. Its mode stays. Raises `OSError`, and then nothing changed.
    """
    import tempfile

    target = Path(os.path.realpath(file))
    if target.exists() and not target.is_file():  # a pipe, /dev/stdout: there is nothing to replace
        target.write_bytes(content)
        return
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only", str(file))
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as beside:
            beside.write(content)
            beside.flush()
            os.fsync(descriptor)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
