"""`sharddsl fmt`: specs in the one style. It reads texts alone: no jax, no Hydra, no pydantic."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharddsl.cli.arguments import Parser, path
from sharddsl.cli.files import STDIN, specs
from sharddsl.cli.writing import write_whole
from sharddsl.findings import ShardError, UsageError
from sharddsl.search import read
from sharddsl.syntax.format import formatted
from sharddsl.syntax.parse import decode


@dataclass(frozen=True, slots=True)
class Done:
    """A text as it was and as it is formatted."""

    name: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse(argv)
    code, changed, count = 0, 0, 0
    for ref in specs("fmt", options.places or ["."]):
        count += 1
        try:
            done = _formatted(ref, options.stdin_filename)
        except ShardError as error:
            print(error, file=sys.stderr)
            code = max(code, 1)
            continue
        except UsageError as error:
            print(f"sharddsl: {error}", file=sys.stderr)
            code = 2
            continue
        changed += done.changed
        if options.check or options.diff:
            code = max(code, int(done.changed))
            _show(done, diff=options.diff)
        else:
            code = max(code, _keep(ref, done))
    _sum(changed, count, would=options.check or options.diff)
    return code


def make_parser() -> Parser:
    """The options of `fmt`."""
    parser = Parser(
        "fmt",
        "Write specs in the one style: columns aligned, spaces and ends of lines as everywhere. What a spec says\n"
        "stays, which is proved before a file is written.",
        with_config=False,
    )
    parser.add_argument(
        "places",
        nargs="*",
        metavar="PATH",
        help="files, folders (searched for *.shard), - for stdin to stdout (default: this folder)",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; name what would change, and exit with 1")
    parser.add_argument("--diff", action="store_true", help="the same, and print what would change")
    parser.add_argument(
        "--stdin-filename", type=path, default="<stdin>", metavar="NAME", help="what the text of stdin is called"
    )
    return parser


def _formatted(ref: str | Path, stdin_name: str) -> Done:
    """Raises `ShardError` for a text with syntax errors, `UsageError` for a file that cannot be read."""
    name = stdin_name if ref == STDIN else str(ref)
    data = sys.stdin.buffer.read() if ref == STDIN else read(Path(ref))
    if isinstance(data, str):
        named = "" if isinstance(ref, Path) else "; fmt takes files, and no names of specs"
        raise UsageError(f"fmt: cannot read {name}: {data}{named}")
    text, findings = decode(data, name)
    if findings:
        raise ShardError(findings, {name: text})
    return Done(name, data.decode(), formatted(text, name))


def _show(done: Done, *, diff: bool) -> None:
    if done.changed and diff:
        from difflib import unified_diff

        before, after = (text.splitlines(keepends=True) for text in (done.before, done.after))
        for line in unified_diff(before, after, done.name, done.name):
            sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    elif done.changed:
        print(f"{done.name}: would change")


def _keep(ref: str | Path, done: Done) -> int:
    """Write the text where it came from; the exit code. Of stdin it goes to stdout, changed or not."""
    if ref == STDIN:
        sys.stdout.write(done.after)
        return 0
    if not done.changed:
        return 0
    try:
        write_whole(Path(ref), done.after.encode())
    except OSError as error:
        print(f"sharddsl: fmt: {done.name} cannot be written ({error.strerror}); it is as it was", file=sys.stderr)
        return 2
    print(f"{done.name}: formatted")
    return 0


def _sum(changed: int, count: int, *, would: bool) -> None:
    files = f"{count} file{'s' * (count != 1)}"
    verb = "would change" if would else "changed"
    print(f"{files}: {changed or 'none'} {verb}", file=sys.stderr)
