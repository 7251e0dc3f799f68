"""`sharddsl lint --golden DIR`: which golden files there are, and writing them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sharddsl.cli.linting import Linted, Wanted, orphan
from sharddsl.cli.writing import write_whole
from sharddsl.findings import UsageError, errors
from sharddsl.lint import golden


def orphans(each: Sequence[Linted], wanted: Wanted) -> list[Linted]:
    """What is told of golden files whose specs are not there, those of the linted specs' projects."""
    assert wanted.golden is not None
    _refuse_shared(each)
    roots = [golden.root_of(linted.file) for linted in each if linted.file is not None]
    return [orphan(file, spec, wanted) for file, spec in golden.orphans(wanted.golden, roots)]


def write(each: Sequence[Linted], folder: Path) -> None:
    """Write the golden file of each spec that has layouts and no errors, and say on stderr what was done."""
    _refuse_shared(each)
    unchanged = 0
    for linted in each:
        if linted.golden is None or errors(judged.finding for judged in linted.report.findings):
            _say(f"{linted.report.name}: it has errors, and no golden file is written")
        elif linted.golden.sections or (folder / linted.golden.name).exists():
            unchanged += not _write_one(linted.golden, folder)
    if unchanged:
        _say(f"{unchanged} golden file{'s' * (unchanged > 1)} in {folder} said the same already")


def _write_one(made: golden.Golden, folder: Path) -> bool:
    """Whether the file is another one now."""
    file = folder / made.name
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else None
        if before is not None and golden.agrees(made, before):
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, made.text.encode())
    except UnicodeDecodeError:
        raise UsageError(f"lint --write-golden: {file} is no golden file (not UTF-8 text); it stays") from None
    except OSError as error:
        raise UsageError(f"lint --write-golden: {file} cannot be written ({error.strerror})") from None
    count = len(made.sections)
    _say(f"{'wrote' if before is None else 'rewrote'} {file}: {count} case{'s' * (count != 1)}")
    for title in golden.read(before or ""):
        if title not in made.sections:
            _say(f"  no more in it: {title}")
    return True


def _refuse_shared(each: Sequence[Linted]) -> None:
    """Raises `UsageError` where two specs would have one golden file."""
    owners: dict[str, str] = {}
    for linted in each:
        if linted.golden is not None:
            name = linted.report.name
            other = owners.setdefault(linted.golden.name, name)
            if other != name:
                raise UsageError(
                    f"lint --golden: {other} and {name} would both be in {linted.golden.name}: a golden file is named "
                    "for its spec's path in the project, the folder with a pyproject.toml"
                )


def _say(line: str) -> None:
    print(line, file=sys.stderr)
