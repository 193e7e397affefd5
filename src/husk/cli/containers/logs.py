"""`husk logs`: what containers have written, and will write: one, several, or those of a Compose project."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from husk.cli.containers.lines import LEVELS, LevelFilter, Prefixes, fields_of, is_level
from husk.cli.kit.command import HuskCommand, as_json, flag, text
from husk.cli.kit.complete import containers
from husk.cli.kit.engine import ask, ask_plainly
from husk.cli.kit.late import late
from husk.cli.kit.place import HostChoice
from husk.cli.kit.streams import StreamLines, descriptor
from husk.cli.kit.writing import at_terminal, line, write
from husk.client.client import Client
from husk.client.container import Container
from husk.client.moments import moment
from husk.errors import InvalidParameter, NotFound

# With an event loop, for more than one log at a time.
_tell_several = late("husk.cli.containers.following:tell_several")
_PROJECT = "com.docker.compose.project"
# A line that is longer is told in pieces.
_LONGEST = 1 << 20


class LoggedLine(NamedTuple):
    """A line without its end, as it was written."""

    time: bytes
    name: str
    stream: str
    text: bytes


class Telling(NamedTuple):
    """The way in which lines are told."""

    timestamps: bool
    as_json: bool
    level: str
    json_fields: Sequence[str]


@click.command(cls=HuskCommand)
@flag("--details", help="Show extra details provided to logs.")
@flag("-f", "--follow", help="Follow log output.")
@text("--json-fields", metavar="FIELD,...", help="Show these fields alone of lines that are JSON, as level,msg.")
@text("--level", help=f"Show lines of this level and louder ones: {', '.join(LEVELS)}.")
@text("-n", "--tail", default="all", help="Number of lines to show from the end of the logs.")
@flag("-t", "--timestamps", help="Show timestamps.")
@text("--since", help="Show logs since timestamp or relative (e.g. 42m).")
@text("--until", help="Show logs before a timestamp or relative (e.g. 42m).")
@as_json
@click.argument("names", nargs=-1, required=True, metavar="CONTAINER|PROJECT...", shell_complete=containers)
@click.pass_obj
def logs(
    place: HostChoice,
    /,
    names: tuple[str, ...],
    as_json: bool,
    level: str,
    json_fields: str,
    since: str,
    until: str,
    timestamps: bool,
    **options: Any,
) -> None:
    """Fetch the logs of a container, of several, or of a Compose project."""
    level = level.lower()
    if level and not is_level(level):
        raise InvalidParameter(f"unknown level: {level!r}: expected {', '.join(LEVELS)}")
    telling = Telling(timestamps, as_json, level, [each for each in json_fields.split(",") if each])
    options |= {"since": moment(since), "until": moment(until)}
    several: list[str] = []

    async def told(engine: Client) -> None:
        try:
            container = await engine.containers.get(names[0])
        except NotFound:
            if not await of_project(engine, names[0]):
                raise
            several.append(names[0])
        else:
            await _of_one(container, telling, options)

    if len(names) == 1:
        ask_plainly(place, told)
    else:
        several.extend(names)
    if several:
        ask(place, lambda engine: _tell_several(engine, several, telling, options))


async def _of_one(container: Container, telling: Telling, options: Mapping[str, Any]) -> None:
    if telling.level or telling.json_fields:
        tell = teller([container.name], telling, prefixed=False)
        async for each in lines_of(container, options):
            tell(each)
    elif telling.as_json:
        lines = StreamLines(timed=True)
        async for stream, data in container.logs(**options, timestamps=True):
            lines.add(stream, data)
        lines.end()
    else:
        async for stream, data in container.logs(**options, timestamps=telling.timestamps):
            write(descriptor(stream), data)


async def of_project(engine: Client, name: str) -> list[Container]:
    return await engine.containers.list(all=True, filters={"label": f"{_PROJECT}={name}"})


def teller(names: Sequence[str], telling: Telling, prefixed: bool) -> Callable[[LoggedLine], None]:
    prefixes = Prefixes(names, at_terminal()) if prefixed else None
    filters = {name: LevelFilter(telling.level) for name in names} if telling.level else {}

    def tell(given: LoggedLine) -> None:
        if filters and not filters[given.name].keeps(given.text, given.stream):
            return
        text = fields_of(given.text, telling.json_fields) if telling.json_fields else given.text
        if telling.as_json:
            said = {"Stream": given.stream, "Time": given.time.decode(errors="replace")}
            line({**({"Name": given.name} if prefixed else {}), **said, "Line": text.decode(errors="replace")})
            return
        if telling.timestamps:
            text = given.time + b" " + text
        write(descriptor(given.stream), (prefixes.put(given.name, text) if prefixes else text) + b"\n")

    return tell


async def lines_of(container: Container, options: Mapping[str, Any]) -> AsyncIterator[LoggedLine]:
    """Yield the lines of one, with their times."""
    rests = {"stdout": b"", "stderr": b""}
    async for stream, data in container.logs(**options, timestamps=True):
        *whole, rests[stream] = (rests[stream] + data).split(b"\n")
        if len(rests[stream]) > _LONGEST:
            whole.append(rests[stream])
            rests[stream] = b""
        for each in whole:
            yield _line(container.name, stream, each)
    for stream, rest in rests.items():
        if rest:
            yield _line(container.name, stream, rest)


def _line(name: str, stream: str, data: bytes) -> LoggedLine:
    time, _, text = data.removesuffix(b"\r").partition(b" ")
    return LoggedLine(time, name, stream, text)
