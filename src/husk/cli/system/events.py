"""`husk events`: what happens in the engine, line by line."""

from collections.abc import Sequence
from datetime import datetime

import click

from husk.cli.kit.command import HuskCommand, as_json, many
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.templates import FormatTemplate
from husk.cli.kit.words import in_line
from husk.cli.kit.writing import line, say
from husk.client.client import Client
from husk.client.events import Event


@click.command(cls=HuskCommand)
@many("-f", "--filter", "filters", metavar="FILTER", help="Filter output based on conditions provided.")
@click.option("--format", "template", metavar="STRING", default="", help="'json' or a Go template.")
@click.option("--since", default="", metavar="STRING", help="Show all events created since timestamp.")
@click.option("--until", default="", metavar="STRING", help="Stream events until this timestamp.")
@as_json
@click.pass_obj
def events(place: HostChoice, /, filters: Sequence[str], template: str, since: str, until: str, as_json: bool) -> None:
    """Get real time events from the server."""

    wanted = filters_of(filters)
    shape = FormatTemplate(template) if template and template != "json" else None

    async def told(engine: Client) -> None:
        async for event in engine.events(since=since or None, until=until or None, filters=wanted):
            if as_json or template == "json":
                line(fields(event))
            elif shape is not None:
                say(shape.fill(fields(event)), exact=True)
            else:
                say(in_line(sentence(event)))

    ask_plainly(place, told)


def fields(event: Event) -> dict[str, object]:
    """An event as `--json` and templates have it."""
    return {
        "Type": event.type,
        "Action": event.action,
        "Status": event.action,
        "ID": event.id,
        "Actor": {"ID": event.id, "Attributes": dict(event.attributes)},
        "Scope": event.scope,
        "Time": event.time_nano // 10**9,
        "TimeNano": event.time_nano,
    }


def sentence(event: Event) -> str:
    """An event as docker's client tells it."""
    at = datetime.fromtimestamp(event.time_nano // 10**9).astimezone()
    zone = at.strftime("%z")
    offset = "Z" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}"
    stamp = f"{at:%Y-%m-%dT%H:%M:%S}.{event.time_nano % 10**9:09d}{offset}"
    more = ", ".join(f"{name}={event.attributes[name]}" for name in sorted(event.attributes))
    return f"{stamp} {event.type} {event.action} {event.id}" + (f" ({more})" if more else "")
