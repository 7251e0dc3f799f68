"""What Hydra and OmegaConf refuse, in this project's words."""

from __future__ import annotations

import re

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from sharddsl.config import groups
from sharddsl.config.schema import keys_beside, missing_choice, unknown_choice, unknown_key
from sharddsl.findings import ShardError, UsageError


def explained(error: Exception) -> Exception:
    """The error in this project's words: the same ones as `fast` uses for the same mistake."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ShardError | UsageError):
            return cause
        cause = cause.__cause__
    if isinstance(error, OverrideParseException):
        return _unreadable(error.override, error.message)
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        return UsageError(f"Hydra cannot use {error.filename or 'a file'}: {error.strerror or error}")
    text = str(error)
    if isinstance(error, OmegaConfBaseException) and error.full_key:
        return UsageError(f"{error.full_key}: {text.splitlines()[0]}")
    if text.startswith("Config group override must be a string"):
        names = ", ".join(groups.GROUPS)
        return UsageError(
            f"{names} take the name of a choice; a name that looks like a number or null is quoted: \"'7'\""
        )
    if (match := re.search(r"Could not (?:find|load) '(\w+)/(.*?)'", text)) and match[1] in groups.GROUPS:
        return unknown_choice(match[1], match[2], groups.choices(match[1]))
    if match := re.search(r"You must specify '(\w+)'", text):
        return missing_choice(match[1], groups.choices(match[1]))
    if (match := re.search(r"Could not override '([^']+)'", text)) and not match[1].startswith("hydra"):
        return unknown_key(match[1], keys_beside(match[1]))
    text = text.partition("\nConfig search path")[0]
    return UsageError("\n".join(part for part in (text, str(error.__cause__ or "")) if part))


def _unreadable(override: str, why: str) -> UsageError:
    """What to do about an override that Hydra's grammar does not take."""
    key, equal, value = override.partition("=")
    if not equal:
        return UsageError(f"`{override}` is not an override: those are written key=value")
    if re.fullmatch(r"[\w./@+~-]+", key) is None:
        return UsageError(f"`{override}` is not an override that Hydra can read: a key is a name, or names with dots")
    reason = why.partition("\n")[0].rpartition("Exception: ")[2].removesuffix(override) or "a character of the value"
    quoted = f"\"{key}='{value}'\"" if "'" not in value else f"{key}=…"
    help_ = f"text with characters that Hydra gives a meaning is quoted twice: {quoted}"
    return UsageError(f"`{override}` is not an override that Hydra can read ({reason}); {help_}")
