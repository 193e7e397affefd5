"""`husk stats`: what containers use, again and again."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import click

from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.complete import running
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.tables import show
from husk.cli.kit.words import binary_size, size
from husk.cli.kit.writing import at_terminal, line
from husk.client.client import Client
from husk.client.container import Container
from husk.client.stats import Stats
from husk.errors import HuskError

HEADINGS = {
    "ID": "CONTAINER ID",
    "Name": "NAME",
    "CPUPerc": "CPU %",
    "MemUsage": "MEM USAGE / LIMIT",
    "MemPerc": "MEM %",
    "NetIO": "NET I/O",
    "BlockIO": "BLOCK I/O",
    "PIDs": "PIDS",
    "Container": "CONTAINER",
}
FIELDS = ("ID", "Name", "CPUPerc", "MemUsage", "MemPerc", "NetIO", "BlockIO", "PIDs")


class ContainerUsage(NamedTuple):
    """A container with its use of resources, which is None if it does not run."""

    container: Container
    stats: Stats | None


@click.command(cls=HuskCommand)
@flag("-a", "--all", "everything", help="Show all containers (default shows just running).")
@click.option("--format", "template", metavar="STRING", help="'json', 'TEMPLATE' or 'table TEMPLATE' of Go's.")
@flag("--no-stream", help="Disable streaming stats and only pull the first result.")
@flag("--no-trunc", help="Do not truncate output.")
@as_json
@click.argument("names", nargs=-1, metavar="[CONTAINER...]", shell_complete=running)
@click.pass_obj
def stats(
    place: HostChoice,
    /,
    names: tuple[str, ...],
    everything: bool,
    template: str | None,
    no_stream: bool,
    no_trunc: bool,
    as_json: bool,
) -> None:
    """Display a live stream of container(s) resource usage statistics."""

    async def told(engine: Client) -> None:
        if not (no_stream or as_json or template) and at_terminal():
            await _live(engine, names, everything, no_trunc)
            return
        async for samples in rounds(engine, names, everything):
            if as_json:
                for sample in samples:
                    line(fields(sample))
            else:
                show(HEADINGS, FIELDS, [row(sample, no_trunc) for sample in samples], template)
            if no_stream:
                return

    ask(place, told)


async def rounds(engine: Client, names: Sequence[str], everything: bool = False) -> AsyncIterator[list[ContainerUsage]]:
    """Yield a sample of each container, about once a second: those that are named, or all there are at the moment."""
    while True:
        found = await _found(engine, names, everything)
        began = asyncio.get_running_loop().time()
        yield list(await asyncio.gather(*(_sampled(container) for container in found)))
        spent = asyncio.get_running_loop().time() - began
        await asyncio.sleep(max(0.0, 1.0 - spent))


async def _found(engine: Client, names: Sequence[str], everything: bool) -> list[Container]:
    if not names:
        return await engine.containers.list(all=everything)
    return [await engine.containers.get(name) for name in names]


async def _sampled(container: Container) -> ContainerUsage:
    """One that ends meanwhile uses nothing any more."""
    if container.status not in ("running", "paused"):
        return ContainerUsage(container, None)
    try:
        return ContainerUsage(container, await container.stats_now())
    except HuskError:
        return ContainerUsage(container, None)


def row(sample: ContainerUsage, whole: bool = False) -> dict[str, str]:
    """Return the columns of a container; `--` in those of resources if it does not run."""
    container, used = sample
    names = {"ID": container.id if whole else container.short_id, "Name": container.name, "Container": container.name}
    if used is None:
        return {**dict.fromkeys(FIELDS, "--"), "MemUsage": "-- / --", **names}
    return {
        **names,
        "CPUPerc": f"{used.cpu_percent:.2f}%",
        "MemUsage": f"{binary_size(used.memory_usage)} / {binary_size(used.memory_limit)}",
        "MemPerc": f"{used.memory_percent:.2f}%",
        "NetIO": f"{size(used.network_received)} / {size(used.network_sent)}",
        "BlockIO": f"{size(used.block_read)} / {size(used.block_written)}",
        "PIDs": str(used.pids),
    }


def fields(sample: ContainerUsage) -> dict[str, Any]:
    """The same in numbers, for `--json`; nothing but names of one that does not run."""
    container, used = sample
    names: dict[str, Any] = {"Id": container.id, "Name": container.name}
    if used is None:
        return names
    return {
        **names,
        "Time": used.time.isoformat(),
        "CPUPercent": round(used.cpu_percent, 3),
        "MemoryUsage": used.memory_usage,
        "MemoryLimit": used.memory_limit,
        "NetworkReceived": used.network_received,
        "NetworkSent": used.network_sent,
        "BlockRead": used.block_read,
        "BlockWritten": used.block_written,
        "PIDs": used.pids,
    }


async def _live(engine: Client, names: Sequence[str], everything: bool, whole: bool) -> None:
    # A door: rich, which only a terminal wants.
    from husk.cli.kit.rich_tables import live_table, table

    with live_table() as live:
        async for samples in rounds(engine, names, everything):
            rows = [row(sample, whole) for sample in samples]
            titles = [HEADINGS[field] for field in FIELDS]
            live.update(table(titles, [[each[field] for field in FIELDS] for each in rows]), refresh=True)
