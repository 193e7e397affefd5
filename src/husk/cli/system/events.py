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
from husk.cli.kit.writing import at_terminal, line, say, write
from husk.client.client import Client
from husk.client.events import Event
from husk.errors import HuskError

_MOST_NAMES = 10_000
_COLOURS = {
    **dict.fromkeys(("start", "create", "connect", "mount", "health_status: healthy", "unpause"), "32"),
    **dict.fromkeys(("die", "oom", "kill", "health_status: unhealthy"), "31"),
    **dict.fromkeys(("stop", "destroy", "remove", "disconnect", "unmount", "delete", "pause", "untag"), "33"),
}


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

    terminal, names = at_terminal(), _Names()

    async def told(engine: Client) -> None:
        async for event in engine.events(since=since or None, until=until or None, filters=wanted):
            if as_json or template == "json":
                line(fields(event))
            elif shape is not None:
                say(shape.fill(fields(event)), exact=True)
            elif terminal:
                container = await names.of(engine, event)
                write(1, f"{coloured_line(event, container)}\n".encode(errors="replace"))
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


class _Names:
    """Names of containers, which events of networks and volumes tell by id alone."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    async def of(self, engine: Client, event: Event) -> str:
        """Return the name of the container that something is done to or with; empty where there is none."""
        if event.type == "container":
            name = event.attributes.get("name", "")
            self._known[event.id] = name
            if len(self._known) > _MOST_NAMES:
                del self._known[next(iter(self._known))]
            return name
        identity = event.attributes.get("container", "")
        if identity and identity not in self._known:
            try:
                self._known[identity] = (await engine.containers.get(identity)).name
            except HuskError:
                self._known[identity] = identity[:12]  # it is gone
        return self._known.get(identity, "")


def coloured_line(event: Event, container: str) -> str:
    """An event for people: the time of the day, what happened to which thing, and what is worth knowing of it."""
    at = datetime.fromtimestamp(event.time_nano // 10**9).astimezone()
    colour = next((code for start, code in _COLOURS.items() if event.action.startswith(start)), "")
    attributes = event.attributes
    name = attributes.get("name") or event.id.removeprefix("sha256:")[:12]
    more = [f"{word} {attributes[word]}" for word in ("image", "exitCode", "signal") if attributes.get(word)]
    if container and event.type != "container":
        more.insert(0, f"container {container}")
    action = in_line(event.action)
    shown = f"\x1b[{colour}m{action}\x1b[0m" if colour else action
    rest = f"  \x1b[2m{in_line(', '.join(more))}\x1b[0m" if more else ""
    return f"\x1b[2m{at:%H:%M:%S}\x1b[0m {in_line(event.type):<9} {shown} \x1b[1m{in_line(name)}\x1b[0m{rest}"


def sentence(event: Event) -> str:
    """An event as docker's client tells it."""
    at = datetime.fromtimestamp(event.time_nano // 10**9).astimezone()
    zone = at.strftime("%z")
    offset = "Z" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}"
    stamp = f"{at:%Y-%m-%dT%H:%M:%S}.{event.time_nano % 10**9:09d}{offset}"
    more = ", ".join(f"{name}={event.attributes[name]}" for name in sorted(event.attributes))
    return f"{stamp} {event.type} {event.action} {event.id}" + (f" ({more})" if more else "")
