"""`husk top`: a live screen of all containers with their charts; with a container, its processes."""

import click

from husk.cli.containers.stats import FIELDS, HEADINGS, fields, rounds, row
from husk.cli.kit.command import HuskCommand, as_json
from husk.cli.kit.complete import running
from husk.cli.kit.engine import ask, ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.tables import print_plain, show
from husk.cli.kit.writing import at_terminal, document
from husk.client.client import Client


@click.command(cls=HuskCommand, own_words=True)
@as_json
@click.argument("container", required=False, shell_complete=running)
@click.argument("ps_options", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def top(place: HostChoice, /, container: str | None, ps_options: tuple[str, ...], as_json: bool) -> None:
    """Display a live screen of all containers, or the processes of one.

    On the screen: q or ctrl-C leaves it.
    """
    if container is not None:
        name = container
        # What follows the container is for ps, which knows no such word.
        as_json = as_json or "--json" in ps_options
        ps_options = tuple(option for option in ps_options if option != "--json")
        ask_plainly(place, lambda engine: _processes(engine, name, ps_options, as_json))
    elif at_terminal() and not as_json:
        # A door: rich, which only a terminal wants.
        from husk.cli.containers.screen import watch

        ask(place, watch)
    else:
        ask(place, lambda engine: _once(engine, as_json))


async def _processes(engine: Client, name: str, ps_options: tuple[str, ...], as_json: bool) -> None:
    found = await (await engine.containers.get(name)).top(" ".join(ps_options) or None)
    if as_json:
        document(found)
    else:
        print_plain([found["Titles"], *found["Processes"]], narrowest=20)  # docker's columns are wider here


async def _once(engine: Client, as_json: bool) -> None:
    async for samples in rounds(engine, ()):
        if as_json:
            document([fields(sample) for sample in samples])
        else:
            show(HEADINGS, FIELDS, [row(sample) for sample in samples])
        return
