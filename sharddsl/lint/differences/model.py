"""The values that a comparison of specs is made of and comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sharddsl.layout.model import Layout
from sharddsl.spec.model import Namespace


@dataclass(frozen=True, slots=True)
class Side:
    """One case of one version of a spec. `label` is the check's text, `stem` the same without the sizes of the mesh;
    `errors` are the codes and names of what is wrong with the layout."""

    label: str
    stem: str
    layout: Layout
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """The tensors that lie like `before` in one version and like `after` in the other; None where they are not there.
    `names` has layers that are alike under one name, `count` counts every tensor."""

    before: str | None
    after: str | None
    names: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Bytes:
    """What one device holds of a namespace, in bytes: None where it is not known, or where there is no such version."""

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class CheckDifference:
    """One check. `mesh` has the effective mesh before and after, where it is not the same; `renamed` has the axes that
    go by another name, which is no change."""

    label: str
    status: Literal["both", "added", "removed"]
    changes: tuple[Change, ...] = ()
    bytes: Mapping[Namespace, Bytes] = field(default_factory=dict)
    mesh: tuple[str, str] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    errors_before: tuple[str, ...] = ()
    errors_after: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a tensor lies elsewhere. What has been added or removed has not moved."""
        return bool(self.changes) or self.mesh is not None

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to tell of it."""
        return self.status == "both" and not (self.changed or self.renamed or self.errors_before or self.errors_after)


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One spec with its checks, those of the newer version first. `unchecked` says what was not compared, and why."""

    name: str
    status: Literal["both", "new", "gone"]
    checks: tuple[CheckDifference, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return any(check.changed for check in self.checks)

    @property
    def quiet(self) -> bool:
        return self.status == "both" and not self.unchecked and all(check.quiet for check in self.checks)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A spec that has errors in one version, so that it has no layouts; `told` are the findings, as text."""

    name: str
    version: str
    told: str


@dataclass(frozen=True, slots=True)
class Differences:
    """All that was compared. `before` and `after` say which versions: a path, or a revision."""

    before: str
    after: str
    files: tuple[FileDifference, ...]
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def changed(self) -> bool:
        return any(file.changed for file in self.files)

    @property
    def checks(self) -> tuple[CheckDifference, ...]:
        return tuple(check for file in self.files for check in file.checks)
