"""`husk serve`, and a program called `dockerd` that is a link to ours: dockerd's command line, as click reads it.

What flags may hold is checked in one place, together with the configuration file: here only their form.
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

from husk.cli.flags import expanded
from husk.cli.start import start
from husk.config.keys import BY_FLAG, OPTIONS, KeyKind, Option
from husk.config.settings import truth
from husk.version import __version__

Start = Callable[[bool, Mapping[str, Any]], object]


class DaemonCommand(click.Command):
    """A command with the options of the table, which reads them as dockerd does: `--icc=false`, `-Dl debug`."""

    def __init__(self, name: str, help: str, as_dockerd: bool = False, start: Start = start) -> None:
        options: list[click.Parameter] = [_option(option) for option in OPTIONS if option.flag]
        if as_dockerd:
            options.append(click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_tell))
        super().__init__(
            name,
            params=options,
            help=help,
            callback=lambda **flags: start(as_dockerd, _given(flags)),
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(expanded(args)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(_shown(option), option.help) for option in OPTIONS if option.flag]
        with formatter.section("Options"):
            formatter.write_dl([*rows, ("-h, --help", "Show this message and exit.")])


def _option(option: Option) -> click.Option:
    return click.Option([f"--{option.flag}", option.flag.replace("-", "_")], multiple=option.multiple)


def _shown(option: Option) -> str:
    short = f"-{option.short}, " if option.short else "    "
    return f"{short}--{option.flag}" + ("" if option.kind is KeyKind.TRUTH else f" {option.kind.value.upper()}")


def _tell(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"husk {__version__}, with dockerd's command line")
        context.exit()


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    given = {name.replace("_", "-"): value for name, value in flags.items()}
    if (restart := given.pop("restart")) is not None:
        if not truth(BY_FLAG["restart"], restart):
            raise click.UsageError(f"--restart=false is not supported: {BY_FLAG['restart'].means}")
        click.echo(f"--restart is deprecated: {BY_FLAG['restart'].means}", err=True)
    return given


serve = DaemonCommand(
    "serve",
    help="""Run the daemon in the foreground.

    SIGTERM and SIGINT end it and leave the containers running; SIGHUP reads the configuration file again.
    docs/configuration.md says what every option of dockerd means here, and which of them SIGHUP takes over.
    """,
)
dockerd = DaemonCommand("dockerd", help="Husk with dockerd's command line; see `husk serve`.", as_dockerd=True)
