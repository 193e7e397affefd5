"""`husk logs`: what a container has written, and will write."""

from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.complete import containers
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.streams import StreamLines, descriptor
from husk.cli.kit.writing import write
from husk.client.client import Client
from husk.client.moments import moment


@click.command(cls=HuskCommand)
@flag("-f", "--follow", help="Follow log output.")
@click.option("-n", "--tail", default="all", metavar="STRING", help="Number of lines to show from the end of the logs.")
@flag("-t", "--timestamps", help="Show timestamps.")
@click.option("--since", default="", metavar="STRING", help="Show logs since timestamp or relative (e.g. 42m).")
@click.option("--until", default="", metavar="STRING", help="Show logs before a timestamp or relative (e.g. 42m).")
@as_json
@click.argument("container", shell_complete=containers)
@click.pass_obj
def logs(place: HostChoice, /, container: str, as_json: bool, since: str, until: str, **options: Any) -> None:
    """Fetch the logs of a container."""

    options |= {"since": moment(since), "until": moment(until)}
    ask_plainly(place, lambda engine: _logs(engine, container, as_json, **options))


async def _logs(engine: Client, name: str, as_json: bool, **options: Any) -> None:
    container = await engine.containers.get(name)
    if not as_json:
        async for stream, data in container.logs(**options):
            write(descriptor(stream), data)
        return
    lines = StreamLines(timed=True)
    async for stream, data in container.logs(**{**options, "timestamps": True}):
        lines.add(stream, data)
    lines.end()
