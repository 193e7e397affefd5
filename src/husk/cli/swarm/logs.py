"""`husk service logs`: what the tasks of a service have written, with the task before each line."""

from typing import Any

import click

from husk.cli.kit.command import HuskCommand, flag, text
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.streams import descriptor
from husk.cli.kit.writing import write
from husk.client.client import Client
from husk.client.moments import moment
from husk.client.services import Service, Task
from husk.errors import NotFound

_SHORT = 12


@click.command(cls=HuskCommand)
@flag("--details", help="Show extra details provided to logs.")
@flag("-f", "--follow", help="Follow log output.")
@flag("--no-resolve", help="Do not map IDs to Names in output.")
@flag("--no-task-ids", help="Do not include task IDs in output.")
@flag("--no-trunc", help="Do not truncate output.")
@flag("--raw", help="Do not neatly format logs.")
@text("--since", help="Show logs since timestamp or relative (e.g. 42m).")
@text("-n", "--tail", default="all", help="Number of lines to show from the end of the logs.")
@flag("-t", "--timestamps", help="Show timestamps.")
@click.argument("name", metavar="SERVICE|TASK")
@click.pass_obj
def logs(
    place: HostChoice,
    /,
    name: str,
    details: bool,
    no_resolve: bool,
    no_task_ids: bool,
    no_trunc: bool,
    raw: bool,
    since: str,
    **options: Any,
) -> None:
    """Fetch the logs of a service or task."""
    options["since"] = moment(since)

    async def told(engine: Client) -> None:
        found: Service | Task
        try:
            found = await engine.services.get(name)
        except NotFound:
            try:
                found = await engine.tasks.get(name)
            except NotFound:
                raise NotFound(f"no such task or service: {name}") from None
        if raw:
            async for stream, data in found.logs(details=details, **options):
                write(descriptor(stream), data)
            return
        names = {} if no_resolve else await _names(engine)
        prefixes = _Prefixes(names, no_task_ids, no_trunc, details)
        rests = {"stdout": b"", "stderr": b""}
        async for stream, data in found.logs(details=True, **options):
            *lines, rests[stream] = (rests[stream] + data).split(b"\n")
            for line in lines:
                write(descriptor(stream), prefixes.put(line, bool(options["timestamps"])))

    ask_plainly(place, told)


async def _names(engine: Client) -> dict[str, str]:
    found = {each.id: each.name for each in [*await engine.services.list(), *await engine.nodes.list()]}
    for task in await engine.tasks.list():
        place = str(task.slot or task.attrs.get("NodeID") or "")
        found[task.id] = f"{found.get(task.service_id, task.service_id)}.{place}"
    return found


class _Prefixes:
    """`web.1.abc123@node | ` before each line, as wide as the widest until now."""

    def __init__(self, names: dict[str, str], no_ids: bool, whole: bool, details: bool) -> None:
        self._names, self._no_ids, self._whole, self._details = names, no_ids, whole, details
        self._width = 0

    def put(self, line: bytes, timed: bool) -> bytes:
        time, _, rest = line.partition(b" ") if timed else (b"", b"", line)
        said, _, text = rest.partition(b" ")
        found = dict(each.split("=", 1) for each in said.decode(errors="replace").split(",") if "=" in each)
        task, node = (found.pop(f"com.docker.swarm.{each}.id", "") for each in ("task", "node"))
        found.pop("com.docker.swarm.service.id", None)
        if not task:
            return line + b"\n"
        identity = task if self._whole else task[:_SHORT]
        name = self._names.get(task, "")
        prefix = name if name and self._no_ids else ".".join(filter(None, (name, identity)))
        if node:
            prefix += f"@{self._names.get(node, node)}"
        self._width = max(self._width, len(prefix))
        more = ",".join(f"{key}={value}" for key, value in found.items()) + " " if self._details and found else ""
        stamp = time.decode() + " " if timed else ""
        return f"{stamp}{prefix:<{self._width}}    | {more}".encode() + text + b"\n"
