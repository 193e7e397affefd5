"""`husk serve`, and a program called `dockerd` that is a link to ours: dockerd's command line, turned into settings.

What flags may hold is checked in one place, together with the configuration file: here only their form.
"""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from husk.config_keys import BY_FLAG, BY_SHORT, OPTIONS, Kind, Option
from husk.version import __version__


class DaemonCommand(click.Command):
    """A command with the options of the table, which reads them as dockerd does: `--icc=false`, `-Dl debug`."""

    def __init__(self, name: str, help: str, as_dockerd: bool = False) -> None:
        options: list[click.Parameter] = [_option(option) for option in OPTIONS if option.flag]
        if as_dockerd:
            options.append(click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_tell))
        super().__init__(
            name,
            params=options,
            help=help,
            callback=lambda **flags: _run(as_dockerd, flags),
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(expanded(args)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(_shown(option), option.help) for option in OPTIONS if option.flag]
        with formatter.section("Options"):
            formatter.write_dl([*rows, ("-h, --help", "Show this message and exit.")])


def expanded(arguments: list[str]) -> Iterator[str]:
    """The same with every option in its long form: a truth with its value, others followed by theirs."""
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            yield from left
        elif argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            option = BY_FLAG.get(name)
            if option is not None and option.kind is Kind.TRUTH:
                yield f"--{name}={value if equals else 'true'}"
            elif equals or option is None:
                yield argument
            else:
                yield argument
                yield from _next(left)
        elif argument.startswith("-") and argument not in ("-", "-h", "-v"):
            yield from _letters(argument[1:], left)
        else:
            yield "--version" if argument == "-v" else argument


def _letters(letters: str, left: Iterator[str]) -> Iterator[str]:
    """`-D`, `-Dl debug`, `-H=unix://`: truths may stand before one that takes the rest, or the next word."""
    while letters:
        option = BY_SHORT.get(letters[0])
        if option is None:
            yield f"-{letters}"
            return
        rest = letters[1:]
        if option.kind is not Kind.TRUTH:
            yield f"--{option.flag}"
            yield from [rest.removeprefix("=")] if rest else _next(left)
            return
        if rest.startswith("="):
            yield f"--{option.flag}={rest[1:]}"
            return
        yield f"--{option.flag}=true"
        letters = rest


def _next(left: Iterator[str]) -> Iterator[str]:
    for value in left:
        yield value
        return


def _option(option: Option) -> click.Option:
    return click.Option([f"--{option.flag}", option.flag.replace("-", "_")], multiple=option.multiple)


def _shown(option: Option) -> str:
    short = f"-{option.short}, " if option.short else "    "
    return f"{short}--{option.flag}" + ("" if option.kind is Kind.TRUTH else f" {option.kind.value.upper()}")


def _tell(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"husk {__version__}, with dockerd's command line")
        context.exit()


def _run(as_dockerd: bool, flags: dict[str, Any]) -> None:
    # What is made until the daemon serves is there to stay: looking for garbage in it meanwhile, again and again while
    # modules are loaded, is a fifth of the start. `Daemon.serve` lets the collector begin.
    gc.disable()
    from husk.config_load import DOCKERD, Source
    from husk.config_settings import from_flags, truth
    from husk.daemon import check, run

    given = {name.replace("_", "-"): value for name, value in flags.items()}
    file, validate, restart = (given.pop(name) for name in ("config-file", "validate", "restart"))
    if restart is not None:
        if not truth(BY_FLAG["restart"], restart):
            raise click.UsageError(f"--restart=false is not supported: {BY_FLAG['restart'].means}")
        click.echo(f"--restart is deprecated: {BY_FLAG['restart'].means}", err=True)
    source = Source(from_flags(given), Path(file) if file else None, DOCKERD if as_dockerd else None)
    if validate is not None and truth(BY_FLAG["validate"], validate):
        check(source)
        print("configuration OK", file=sys.stderr)
        return
    run(source)


serve = DaemonCommand(
    "serve",
    help="""Run the daemon in the foreground.

    SIGTERM and SIGINT end it and leave the containers running; SIGHUP reads the configuration file again.
    docs/configuration.md says what every option of dockerd means here, and which of them SIGHUP takes over.
    """,
)
dockerd = DaemonCommand("dockerd", help="Husk with dockerd's command line; see `husk serve`.", as_dockerd=True)
