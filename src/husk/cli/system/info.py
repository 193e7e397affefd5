"""`husk info`: which engine this is, and what it has."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.templates import FormatTemplate
from husk.cli.kit.words import binary_size
from husk.cli.kit.writing import complain, document, say
from husk.client.client import Client


@click.command(cls=HuskCommand)
@click.option("-f", "--format", "template", metavar="STRING", default="", help="'json' or a Go template.")
@as_json
@click.pass_obj
def info(place: HostChoice, /, template: str, as_json: bool) -> None:
    """Display system-wide information."""

    shape = FormatTemplate(template) if template and template != "json" else None

    async def told(engine: Client) -> None:
        found = await engine.info()
        if as_json or template == "json":
            document(found)
        elif shape is not None:
            say(shape.fill(found), exact=True)
        else:
            for line in lines(found):
                say(line)
            for warning in found.get("Warnings") or []:
                complain(str(warning))

    ask_plainly(place, told)


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that people look for in `GET /info`."""
    plugins = found.get("Plugins") or {}
    yield f"Containers: {found.get('Containers')}"
    for state in ("Running", "Paused", "Stopped"):
        yield f" {state}: {found.get(f'Containers{state}')}"
    for title, name in (
        ("Images", "Images"),
        ("Server Version", "ServerVersion"),
        ("Storage Driver", "Driver"),
        ("Logging Driver", "LoggingDriver"),
        ("Cgroup Driver", "CgroupDriver"),
        ("Cgroup Version", "CgroupVersion"),
    ):
        yield f"{title}: {found.get(name)}"
    yield "Plugins:"
    for kind in ("Volume", "Network", "Log"):
        yield f" {kind}: {' '.join(plugins.get(kind) or [])}"
    yield f"Swarm: {(found.get('Swarm') or {}).get('LocalNodeState', 'inactive')}"
    yield f"Runtimes: {' '.join(found.get('Runtimes') or {})}"
    for title, name in (
        ("Default Runtime", "DefaultRuntime"),
        ("Kernel Version", "KernelVersion"),
        ("Operating System", "OperatingSystem"),
        ("OSType", "OSType"),
        ("Architecture", "Architecture"),
        ("CPUs", "NCPU"),
    ):
        yield f"{title}: {found.get(name)}"
    yield f"Total Memory: {binary_size(found.get('MemTotal') or 0)}"
    for title, name in (("Name", "Name"), ("ID", "ID"), ("Root Dir", "DockerRootDir")):
        yield f"{title}: {found.get(name)}"
