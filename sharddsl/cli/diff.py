"""`sharddsl diff`: what another version of a spec changes, tensor by tensor. No jax, no Hydra."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sharddsl.cli.arguments import Parser, number, path
from sharddsl.cli.files import is_override
from sharddsl.findings import ShardError, UsageError, printable
from sharddsl.spec.mesh import LARGEST

if TYPE_CHECKING:
    from sharddsl.cli.sides import Asked, Read
    from sharddsl.cli.versions import Pair, Version, Versions
    from sharddsl.lint.differences import Differences, FileDifference, Unreadable

_FORMATS = ("text", "json", "markdown")


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    places = [word for word in options.words if not is_override(word)]
    overrides = tuple(word for word in options.words if is_override(word))
    with _versions(places, options.against) as versions:
        found = _compared(versions, overrides, options)
    for file in found.unreadable:
        print(f"{printable(file.name)} is not compared, as it has errors ({printable(file.version)}):", file=sys.stderr)
        print(file.told, file=sys.stderr)
    _tell(_text(found, options.format), options.output_file)
    return 1 if found.unreadable or (options.fail_on_change and found.changed) else 0


def make_parser() -> Parser:
    """The options of `diff`."""
    parser = Parser(
        "diff",
        "Tell which tensors change layout between two specs, or between a git revision and the working tree,\n"
        "and what a device holds before and after, for each `check`. Needs no accelerator and no jax.",
        with_config=False,
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PATH|OVERRIDE",
        help="OLD NEW: files, folders or names of specs; with --against any number of them (default: this folder); "
        "model=NAME, spec.mesh.AXIS=N, run.batch=N, … compare for that and not for the checks",
    )
    parser.add_argument("--against", metavar="REV", help="compare with what the git revision REV has, bases too")
    parser.add_argument(
        "--rule", action="append", default=[], metavar="TEXT", help="a rule after the file's own, in both versions"
    )
    parser.add_argument(
        "--devices",
        type=number(int, 1, "a number of devices", most=LARGEST),
        metavar="N",
        help="devices there are, from which an axis of size -1 is inferred",
    )
    parser.add_argument("--format", choices=_FORMATS, default="text", help="how it is told (default: text)")
    parser.add_argument("--output-file", type=path, metavar="FILE", help="write it there and not to stdout")
    parser.add_argument("--fail-on-change", action="store_true", help="exit with 1 if a layout or a mesh changes")
    return parser


def _versions(places: Sequence[str], against: str | None) -> AbstractContextManager[Versions]:
    from sharddsl.cli.versions import of_paths, of_revision

    if any(not place for place in places):
        raise UsageError("diff: a path is needed, and it is empty")
    if against is not None:
        return of_revision(places or ["."], against)
    if len(places) != 2:
        raise UsageError("diff: name two specs or folders, OLD NEW; or a path and --against REV")
    return nullcontext(of_paths(*places))


def _compared(versions: Versions, overrides: tuple[str, ...], options: argparse.Namespace) -> Differences:
    """Every pair of versions compared; those with errors set aside."""
    from sharddsl.cli.sides import Asked
    from sharddsl.lint.differences import Differences

    asked = Asked(overrides, tuple(options.rule), options.devices)
    files: list[FileDifference] = []
    unreadable: list[Unreadable] = []
    for pair in versions.pairs:
        before, after = (
            _read(pair, version, called, asked, unreadable)
            for called, version in ((versions.before, pair.before), (versions.after, pair.after))
        )
        if before is not None and after is not None:
            files.append(_between(pair, before, after))
    if versions.copy is not None:  # where it lies means nothing to a reader
        shown = f"{versions.before}:"
        unreadable = [replace(file, told=file.told.replace(str(versions.copy), shown)) for file in unreadable]
    return Differences(versions.before, versions.after, tuple(files), tuple(unreadable))


def _read(pair: Pair, version: Version | None, called: str, asked: Asked, unreadable: list[Unreadable]) -> Read | None:
    """The cases of one version, none where there is no such version; None, and an entry, where it has errors."""
    from sharddsl.cli.sides import Read, read
    from sharddsl.lint.differences import Unreadable

    try:
        return Read() if version is None else read(version, pair, asked)
    except ShardError as error:
        unreadable.append(Unreadable(pair.name, called, str(error)))
        return None


def _between(pair: Pair, before: Read, after: Read) -> FileDifference:
    from sharddsl.lint.differences import FileDifference, compared

    unchecked = (after if pair.after is not None else before).unchecked
    return FileDifference(
        pair.name,
        "new" if pair.before is None else "gone" if pair.after is None else "both",
        tuple(compared(before.sides, after.sides)),
        () if unchecked is None else (unchecked,),
    )


def _text(found: Differences, form: str) -> str:
    match form:
        case "json":
            import json

            from sharddsl.lint.differences.data import to_data

            return json.dumps(to_data(found), indent=2)
        case "markdown":
            from sharddsl.lint.differences.markdown import to_markdown

            return to_markdown(found)
        case _:
            from sharddsl.lint.differences.text import to_text

            return to_text(found)


def _tell(text: str, file: str | None) -> None:
    if file is None:
        print(text)
        return
    from sharddsl.cli.writing import write_whole

    try:
        write_whole(Path(file).expanduser(), f"{text}\n".encode())
    except OSError as error:
        raise UsageError(f"diff --output-file {file}: it cannot be written ({error.strerror})") from None
