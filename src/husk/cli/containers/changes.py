"""Commands for what a container has become: port, diff, commit, export, and prune of those that have ended."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json, flag, many, text
from husk.cli.kit.complete import containers, running
from husk.cli.kit.engine import ask, ask_plainly
from husk.cli.kit.files import written_to
from husk.cli.kit.kinds import Pruning, pruning
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import document, say
from husk.client.client import Client
from husk.errors import CommandFailed

_CHANGES = {0: "C", 1: "A", 2: "D"}


@click.command(cls=HuskCommand)
@as_json
@click.argument("container", shell_complete=running)
@click.argument("private_port", metavar="[PRIVATE_PORT[/PROTO]]", default="")
@click.pass_obj
def port(place: HostChoice, /, container: str, private_port: str, as_json: bool) -> None:
    """List port mappings or a specific mapping for the container."""

    async def told(engine: Client) -> None:
        found = (await engine.containers.get(container)).attrs.get("NetworkSettings") or {}
        ports: dict[str, Any] = {name: where or [] for name, where in (found.get("Ports") or {}).items()}
        wanted = private_port if "/" in private_port or not private_port else f"{private_port}/tcp"
        if wanted and not ports.get(wanted):
            raise CommandFailed(f"no public port '{wanted}' published for {container}", 1)
        if as_json:
            document({wanted: ports[wanted]} if wanted else ports)
            return
        for name in [wanted] if wanted else sorted(ports, key=_number):
            for where in ports[name]:
                host = str(where.get("HostIp") or "")
                place = f"[{host}]:{where['HostPort']}" if ":" in host else f"{host}:{where['HostPort']}"
                say(place if wanted else f"{name} -> {place}")

    ask_plainly(place, told)


def _number(name: str) -> tuple[int, str]:
    number, _, protocol = name.partition("/")
    return int(number), protocol


@click.command(cls=HuskCommand)
@as_json
@click.argument("container", shell_complete=containers)
@click.pass_obj
def diff(place: HostChoice, /, container: str, as_json: bool) -> None:
    """Inspect changes to files or directories on a container's filesystem."""

    async def told(engine: Client) -> None:
        found = await (await engine.containers.get(container)).diff()
        if as_json:
            document(found)
            return
        for change in found:
            say(f"{_CHANGES.get(change['Kind'], '?')} {change['Path']}")

    ask_plainly(place, told)


@click.command(cls=HuskCommand)
@text("-a", "--author", help='Author (e.g., "Ada <ada@example.org>").')
@many("-c", "--change", help="Apply Dockerfile instruction to the created image.")
@text("-m", "--message", help="Commit message.")
@flag("-p", "--pause", default=True, help="Pause container during commit (default true).")
@as_json
@click.argument("container", shell_complete=containers)
@click.argument("name", metavar="[REPOSITORY[:TAG]]", default="")
@click.pass_obj
def commit(
    place: HostChoice,
    /,
    container: str,
    name: str,
    author: str,
    change: Sequence[str],
    message: str,
    pause: bool,
    as_json: bool,
) -> None:
    """Create a new image from a container's changes."""

    async def committed(engine: Client) -> None:
        box = await engine.containers.get(container)
        image = await box.commit(name, author=author, changes=change, message=message, pause=pause)
        document({"Id": image.id, "Name": name}) if as_json else say(image.id)

    ask(place, committed)


@click.command(cls=HuskCommand)
@text("-o", "--output", help="Write to a file, instead of STDOUT.")
@click.argument("container", shell_complete=containers)
@click.pass_obj
def export(place: HostChoice, /, container: str, output: str) -> None:
    """Export a container's filesystem as a tar archive."""

    async def exported(engine: Client) -> None:
        await written_to(output, (await engine.containers.get(container)).export())

    ask(place, exported)


async def _prune(engine: Client, filters: Mapping[str, Any]) -> Any:
    return await engine.containers.prune(filters)


prune = pruning(
    Pruning(
        _prune, lambda flags: "This will remove all stopped containers.", "Deleted Containers:", "ContainersDeleted"
    ),
    "Remove all stopped containers.",
)
