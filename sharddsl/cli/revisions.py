"""The specs of a git revision, laid out in a folder of their own, so that they are read as those of the working tree
are: `extends` finds the bases of that revision, and nothing of today."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sharddsl.findings import UsageError
from sharddsl.search import SUFFIX

_PROJECT = "pyproject.toml"
_OF_A_HOOK = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"})
"""What git tells the hooks that it runs: with these it would take any folder that it is asked about for the root of the
repository."""
_LINK, _FILES = "120000", frozenset({"100644", "100755"})


@dataclass(frozen=True, slots=True)
class Revision:
    """What a repository held at a revision: its specs, the files that mark projects, and links. `root` is the
    repository's folder in the working tree, links followed, and `copy` the folder with what it held."""

    name: str
    root: Path
    copy: Path

    def at(self, path: Path) -> Path:
        """Where a path of the working tree lies in the copy. Raises `UsageError` for one outside the repository."""
        real = Path(os.path.realpath(path.parent)) / path.name if path.name else path
        if not real.is_relative_to(self.root):
            raise UsageError(f"diff --against: {path} does not lie in the git repository {self.root}")
        return self.copy / real.relative_to(self.root)

    def project_of(self, file: Path) -> Path | None:
        """The folder of the copy that is the project of a file in it; None where there was none."""
        for folder in file.parents:
            if (folder / _PROJECT).is_file():
                return folder
            if folder == self.copy:
                break
        return None


@contextmanager
def revision(name: str, near: Path) -> Iterator[Revision]:
    """The revision of the repository that `near` lies in, for as long as it is needed. Raises `UsageError` where there
    is no git, no repository or no such revision."""
    import tempfile

    root = Path(os.path.realpath(_said(near, "rev-parse", "--show-toplevel").removesuffix("\n")))
    tree = _tree(root, name)
    with tempfile.TemporaryDirectory(prefix="sharddsl-") as folder:
        copy = Path(os.path.realpath(folder))
        _lay_out(root, tree, copy)
        yield Revision(name, root, copy)


def _tree(root: Path, name: str) -> str:
    done = _run(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"])
    if done.returncode:
        raise UsageError(
            f"diff --against {name}: {root} has no such revision; in a shallow clone, as CI makes one, fetch it first: "
            f"git fetch --depth=1 origin {name}"
        )
    return done.stdout.decode().strip() + "^{tree}"


def _lay_out(root: Path, tree: str, copy: Path) -> None:
    """Write the tree's specs, marks of projects and links into an empty folder. Links come last, so that no file is
    written through one; where they lead outside the project, loading refuses them."""
    entries = [entry for entry in _entries(root, tree) if _is_wanted(*entry)]
    contents = _contents(root, [blob for _, blob, _ in entries])
    for wants_links in (False, True):
        for (mode, _, path), content in zip(entries, contents, strict=True):
            target = copy / path
            if (mode == _LINK) == wants_links and not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                if wants_links:
                    target.symlink_to(os.fsdecode(content))
                else:
                    target.write_bytes(content)


def _entries(root: Path, tree: str) -> Iterator[tuple[str, str, str]]:
    """Mode, blob and path of each file of the tree."""
    for line in _said(root, "ls-tree", "-r", "-z", "--full-tree", tree).split("\0"):
        if line:
            about, _, path = line.partition("\t")
            mode, _, blob = about.split(" ")
            yield mode, blob, path


def _is_wanted(mode: str, _: str, path: str) -> bool:
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):  # git makes no such tree, but one can be made by hand
        return False
    return mode == _LINK or (mode in _FILES and (path.endswith(SUFFIX) or parts[-1] == _PROJECT))


def _contents(root: Path, blobs: Sequence[str]) -> list[bytes]:
    """What each blob holds."""
    done = _run(root, ["cat-file", "--batch"], "".join(f"{blob}\n" for blob in blobs).encode())
    found, at = [], 0
    for blob in blobs:
        end = done.stdout.find(b"\n", at)
        words = done.stdout[at : max(at, end)].split()
        if len(words) != 3:
            raise UsageError(f"diff --against: git cannot read {blob}: {_why(done.stderr) or 'it is not there'}")
        at = end + 1 + int(words[2])
        found.append(done.stdout[end + 1 : at])
        at += 1
    return found


def _said(folder: Path, *words: str) -> str:
    """What git prints in this folder. Raises `UsageError` with what it complains of."""
    done = _run(folder, words)
    if done.returncode:
        raise UsageError(f"diff --against: {folder}: {_why(done.stderr)}")
    return os.fsdecode(done.stdout)


def _run(folder: Path, words: Sequence[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *words], input=given, capture_output=True, check=False, env=environment
        )
    except FileNotFoundError:
        raise UsageError("diff --against: there is no `git` here; compare two files: sharddsl diff OLD NEW") from None


def _why(complaint: bytes) -> str:
    """The line of what git prints that says what is wrong."""
    lines = complaint.decode(errors="replace").strip().splitlines() or [""]
    return next((line for line in lines if line.startswith("fatal: ")), lines[-1]).removeprefix("fatal: ")
