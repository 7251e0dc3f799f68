"""The options that commands share. Options are taken out before Hydra, or anything else, looks at the overrides."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from sharddsl.findings import UsageError

_EPILOG = """\
overrides:
  model=NAME  spec=NAME  spec=./my.shard  run=NAME  data=NAME  weights=auto|random|PATH
  model.layers=2  spec.mesh.fsdp=4  run.batch=8      one value of the above
  anything else that Hydra understands               with --multirun: spec=llama/fsdp,llama/tp

{groups}"""


_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` in place of printing and exiting; names the nearest option to one that does not exist.

    `elsewhere` says what to do in place of options that another command has.
    """

    def __init__(
        self,
        command: str,
        description: str,
        with_config: bool = True,
        elsewhere: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(
            prog=f"sharddsl {command}",
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._with_config = with_config
        self._elsewhere = elsewhere
        if with_config:
            _add_config_options(self)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The options of a command line, in any order with its overrides."""
        options, unknown = self.parse_known_intermixed_args(_with_info(argv))
        # What stands behind `--` is an override too: Hydra would take `--…` among them for options of its own.
        unknown += [word for word in getattr(options, "overrides", ()) if word.startswith("-")]
        if unknown:
            raise self._unknown(unknown[0])
        if self._with_config and options.cfg is None and (options.package or options.resolve):
            self.error(
                f"{'--package' if options.package else '--resolve'} says how --cfg prints, and --cfg is not given"
            )
        return options

    @property
    def long_options(self) -> list[str]:
        """The options by their long names: `--rule`."""
        return [name for name in self._option_string_actions if name.startswith("--")]

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog.removeprefix('sharddsl ')}: {message}; `{self.prog} --help` lists the options")

    def format_help(self) -> str:
        self.epilog = _EPILOG.format(groups=_list_groups()) if self._with_config else None
        return super().format_help()

    def _unknown(self, word: str) -> UsageError:
        from difflib import get_close_matches

        if not word.startswith("-"):
            return UsageError(f"{self.prog.removeprefix('sharddsl ')} takes no argument `{word}`")
        name = word.partition("=")[0]
        close = get_close_matches(name, self.long_options, n=1, cutoff=0.5)
        hint = f"did you mean `{close[0]}`?" if close else f"`{self.prog} --help` lists the options"
        hint = self._elsewhere.get(name, hint)
        return UsageError(f"{self.prog.removeprefix('sharddsl ')}: there is no option `{word}`; {hint}")


def number(kind: Callable[[str], Any], least: float, what: str, most: float | None = None) -> Callable[[str], Any]:
    """An argparse type: a number of `kind` from `least` to `most`, called `what` in messages."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return parse


def path(text: str) -> str:
    """An argparse type: a path, which an empty text is not (it would mean the working folder)."""
    if not text:
        raise argparse.ArgumentTypeError("a path is needed, and it is empty")
    return text


def hydra_flags(options: argparse.Namespace) -> tuple[str, ...]:
    """Hydra's own options among those given, as Hydra's parser takes them."""
    flags = ["--multirun"] if options.multirun else []
    flags += ["--resolve"] if options.resolve else []
    flags += [f"--{name}={value}" for name in ("cfg", "info", "package") if (value := getattr(options, name))]
    return tuple(flags)


def _add_config_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="key=value, see below")
    parser.add_argument(
        "--rule", action="append", default=[], metavar="TEXT", help="a rule after the file's own, which it overrides"
    )
    config = parser.add_argument_group("configuration (by Hydra)")
    config.add_argument("-m", "--multirun", action="store_true", help="run every combination of the values given")
    config.add_argument("-c", "--cfg", choices=["job", "hydra", "all"], help="print the composed config and stop")
    config.add_argument("--resolve", action="store_true", help="with --cfg: interpolations resolved")
    config.add_argument("-p", "--package", metavar="KEY", help="with --cfg: only this part")
    config.add_argument(
        "-i",
        "--info",
        choices=_INFO,
        metavar="PART",
        help=f"print how Hydra composes the config: {', '.join(_INFO)} (default: all)",
    )


def _with_info(argv: Sequence[str]) -> list[str]:
    """The words, with `--info` made `--info=all` where none of its values follows, as Hydra has it. argparse's own way
    of that, `nargs="?"`, would take an override for the value."""
    ends = argv.index("--") if "--" in argv else len(argv)
    return [
        "--info=all" if place < ends and word in ("-i", "--info") and following not in _INFO else word
        for place, (word, following) in enumerate(zip(argv, [*argv, ""][1:], strict=True))
    ]


def _list_groups() -> str:
    from textwrap import fill

    from sharddsl.config import groups

    return "\n".join(
        fill(f"{group}: {', '.join(groups.choices(group))}", 100, initial_indent="  ", subsequent_indent=" " * 9)
        for group in groups.GROUPS
    )
