"""What another version of a spec changes: which tensors lie elsewhere, and the bytes that a device holds."""

from sharddsl.lint.differences.compare import compared
from sharddsl.lint.differences.model import (
    Change,
    CheckDifference,
    Differences,
    FileDifference,
    Side,
    Unreadable,
)

__all__ = ["Change", "CheckDifference", "Differences", "FileDifference", "Side", "Unreadable", "compared"]
