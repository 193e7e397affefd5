"""Words that are the same for things of every kind: ls, inspect, rm and prune.

A `ThingKind` says once how its things are asked for and which columns they have; `listing`, `inspecting`, `removing`
and `pruning` make a command of it. A group of such words is one line for each.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from husk.cli.kit.command import Flag, HuskCommand, as_json, flag, many
from husk.cli.kit.complete import filters as conditions
from husk.cli.kit.complete import formats, named
from husk.cli.kit.engine import ask_plainly, each, told
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.tables import show
from husk.cli.kit.templates import FormatTemplate
from husk.cli.kit.words import size, visible
from husk.cli.kit.writing import complain, document, encoded, say
from husk.client.client import Client
from husk.errors import HuskError, NotFound

Document = Mapping[str, Any]
formatted = click.option(
    "--format", "template", metavar="STRING", help="'json', 'TEMPLATE' or 'table TEMPLATE' of Go's."
)
filtered = many("-f", "--filter", "filters", metavar="FILTER", help="Filter output based on conditions provided.")
forced = Flag(["-f", "--force"], help="Do not prompt for confirmation.")


class Shown(NamedTuple):
    """The way in which rows are wanted."""

    now: float
    whole: bool = False


class ThingKind(NamedTuple):
    """One kind of thing: its word, its collection in the client, its columns, and a row out of a thing's document."""

    name: str
    things: Callable[[Client], Any]
    headings: Mapping[str, str]
    fields: Sequence[str]
    row: Callable[[Document, Shown], dict[str, str]]
    identity: str = "ID"
    """The column that `-q` shows."""
    order: str = ""
    """The column that rows are sorted by; as the engine lists them if empty."""
    conditions: Sequence[str] = ("label", "name", "id")
    """Names that `--filter` takes."""

    @property
    def words(self) -> str:
        """Several of it."""
        return f"{self.name}s"

    @property
    def metavar(self) -> str:
        return self.name.upper()


def names_of(kind: ThingKind, required: bool = True) -> Callable[[Any], Any]:
    """Add the argument that names some of a kind, completed by the shell."""
    metavar = f"{kind.metavar}..." if required else f"[{kind.metavar}...]"
    return click.argument("names", nargs=-1, required=required, metavar=metavar, shell_complete=completing(kind))


def name_of(kind: ThingKind, parameter: str) -> Callable[[Any], Any]:
    """Add the argument that names one."""
    return click.argument(parameter, metavar=kind.metavar, shell_complete=completing(kind))


def completing(kind: ThingKind) -> Callable[..., Any]:
    """Complete the names of a kind."""

    async def names(engine: Client) -> list[str]:
        rows = [kind.row(thing.attrs, Shown(0.0)) for thing in await kind.things(engine).list()]
        return [row.get("Name") or row[kind.identity] for row in rows]

    return named(names)


def listing(kind: ThingKind, help: str, *more: click.Option, truncates: bool = True) -> click.Command:
    """`ls`, with a table, a template, ids alone or the engine's documents."""

    @click.command("ls", cls=HuskCommand, help=help)
    @many(
        *("-f", "--filter", "filters"),
        metavar="FILTER",
        help="Filter output based on conditions provided.",
        shell_complete=conditions(*kind.conditions),
    )
    @click.option(
        *("--format", "template"),
        metavar="STRING",
        help="'json', 'TEMPLATE' or 'table TEMPLATE' of Go's.",
        shell_complete=formats(kind.headings),
    )
    @flag("-q", "--quiet", help=f"Only display {kind.name} {'names' if kind.identity == 'Name' else 'IDs'}.")
    @as_json
    @click.pass_obj
    def ls(
        place: HostChoice,
        /,
        filters: Sequence[str],
        template: str | None,
        quiet: bool,
        as_json: bool,
        no_trunc: bool = False,
        **options: Any,
    ) -> None:
        async def listed(engine: Client) -> None:
            found = await kind.things(engine).list(filters=filters_of(filters), **options)
            print_things(kind, [thing.attrs for thing in found], template, quiet, as_json, no_trunc)

        ask_plainly(place, listed)

    if truncates:
        ls.params.append(Flag(["--no-trunc"], help="Don't truncate output."))
    ls.params.extend(more)
    return ls


def print_things(
    kind: ThingKind, found: Sequence[Document], template: str | None, quiet: bool, as_json: bool, whole: bool = False
) -> None:
    """Print things as `ls` does."""
    if as_json:
        document(list(found))
        return
    rows = [kind.row(attrs, Shown(time.time(), whole)) for attrs in found]
    if kind.order:
        rows.sort(key=lambda row: row[kind.order])
    if quiet and not template:
        for row in rows:
            say(row[kind.identity])
    else:
        show(kind.headings, kind.fields, rows, template)


def inspecting(kind: ThingKind, help: str, *more: click.Option, pretty: bool = False) -> click.Command:
    """`inspect`: the engine's documents, or a template filled with each."""

    @click.command("inspect", cls=HuskCommand, help=help)
    @click.option("-f", "--format", "template", metavar="STRING", default="", help="'json' or a Go template.")
    @as_json
    @names_of(kind)
    @click.pass_obj
    def inspect(
        place: HostChoice,
        /,
        names: tuple[str, ...],
        template: str,
        as_json: bool,
        pretty: bool = False,
        **options: Any,
    ) -> None:
        shape = FormatTemplate("{{json .}}" if template == "json" else template) if template else None

        async def inspected(engine: Client) -> int:
            found, failed = [], []
            for name in names:
                try:
                    found.append((await kind.things(engine).get(name, **options)).attrs)
                except NotFound as error:
                    failed.append(told(error))
            if shape is not None:
                for attrs in found:
                    say(shape.fill(attrs), exact=True)
            elif pretty:
                for attrs in found:
                    for line in indented(attrs):
                        say(line)
            elif as_json:
                document(found)
            else:
                say(encoded(found, indent=4))
            for message in failed:
                complain(message)
            return 1 if failed else 0

        ask_plainly(place, inspected)

    if pretty:
        inspect.params.append(Flag(["--pretty"], help="Print the information in a human friendly format."))
    inspect.params.extend(more)
    return inspect


def indented(value: Any, depth: int = 0) -> list[str]:
    """Write a document for people: a line for each value that says something, parts to the right of their name."""
    found: list[str] = []
    space = "  " * depth
    for name, part in value.items() if isinstance(value, Mapping) else [("-", entry) for entry in value]:
        if part in (None, "", [], {}):
            continue
        if isinstance(part, Mapping | list):
            found += [f"{space}{name}:" if name != "-" else f"{space}-", *indented(part, depth + 1)]
        else:
            found.append(f"{space}{name}: {part}" if name != "-" else f"{space}- {part}")
    return found


def removing(kind: ThingKind, help: str, force: str = "", missing_is_well: bool = False) -> click.Command:
    """`rm`: each that is named; `force` is what help says of `-f`, for kinds that have it."""

    @click.command("rm", cls=HuskCommand, help=help)
    @as_json
    @names_of(kind)
    @click.pass_obj
    def rm(place: HostChoice, /, names: tuple[str, ...], as_json: bool, **options: Any) -> None:
        async def removed(engine: Client) -> int:
            async def one(name: str) -> None:
                thing = await kind.things(engine).get(name)
                passed = {} if missing_is_well and kind.name == "network" else options
                await thing.remove(**passed)

            return await each(names, one, as_json, missing_is_well=missing_is_well and bool(options.get("force")))

        ask_plainly(place, removed)

    if force:
        rm.params.insert(0, Flag(["-f", "--force"], help=force))
    return rm


def to_each(
    kind: ThingKind, word: str, help: str, act: Callable[..., Any], *more: click.Parameter, shown: str = "{name}"
) -> click.Command:
    """A word that does one thing to each that is named: `act` gets the thing and the word's flags."""

    @click.command(word, cls=HuskCommand, help=help)
    @as_json
    @names_of(kind)
    @click.pass_obj
    def command(place: HostChoice, /, names: tuple[str, ...], as_json: bool, **options: Any) -> None:
        async def done(engine: Client) -> int:
            async def one(name: str) -> None:
                await act(await kind.things(engine).get(name), **options)

            return await each(names, one, as_json, lambda name: shown.format(name=name))

        ask_plainly(place, done)

    command.params[:0] = more
    return command


class Pruning(NamedTuple):
    """A prune: how it is asked for, and where in the answer is what was removed."""

    ask: Callable[..., Any]
    """Gets the client, the filters and the command's other flags; returns the API's document."""
    warning: Callable[[Mapping[str, Any]], str]
    """Say what will be removed, from the flags."""
    title: str
    deleted: str


def pruning(kind: Pruning, help: str, *more: click.Option) -> click.Command:
    """`prune`: what nobody uses, after a question at the terminal."""

    @click.command("prune", cls=HuskCommand, help=help)
    @many("--filter", "filters", metavar="FILTER", help="Provide filter values (e.g. 'until=<timestamp>').")
    @as_json
    @click.pass_obj
    def prune(place: HostChoice, /, filters: Sequence[str], force: bool, as_json: bool, **options: Any) -> None:
        wanted = filters_of(filters)
        if not force and not agreed(f"WARNING! {kind.warning(options)}\nAre you sure you want to continue?"):
            return

        async def done(engine: Client) -> None:
            found = await kind.ask(engine, wanted, **options) or {}
            if as_json:
                document(found)
                return
            if gone := found.get(kind.deleted):
                names = [": ".join(*each.items()) if isinstance(each, dict) else str(each) for each in gone]
                say("\n".join([kind.title, *names, ""]))
            if "SpaceReclaimed" in found:
                say(f"Total reclaimed space: {size(found['SpaceReclaimed'], 4)}")

        ask_plainly(place, done)

    prune.params[:0] = [forced, *more]
    return prune


def agreed(question: str) -> bool:
    """Ask; return True for yes. All else is no, as with docker's client: the end of stdin, too, which is no ctrl-C."""
    click.echo(f"{visible(question)} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def failing(message: str, code: int = 1) -> SystemExit:
    """End a command with a message: raise what this returns."""
    complain(message)
    return SystemExit(code)


def problem(error: HuskError) -> SystemExit:
    return failing(told(error))
