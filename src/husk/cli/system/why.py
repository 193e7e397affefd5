"""`husk doctor CONTAINER`: ask the engine all that tells why a container does not run, and its last lines."""

import os

from husk.cli.kit.place import HostChoice
from husk.client.address import resolve
from husk.client.client import Client
from husk.client.container import Container
from husk.client.diagnosis import Reason, examine, explain, last_lines


async def why(engine: Client, name: str, place: HostChoice) -> tuple[list[Reason], list[str]]:
    """The reasons, and the container's last lines; NotFound where there is no such container."""
    container = await engine.containers.get(name)
    facts = await examine(engine, container)
    return explain(facts._replace(gone=gone(container, place))), await last_lines(container)


def gone(container: Container, place: HostChoice) -> list[str]:
    """Sources of bind mounts that are not there; nothing where the engine may be on another host."""

    if not resolve(place.host, place.context).url.startswith("unix://"):
        return []
    binds = [each for each in container.attrs.get("Mounts") or () if each.get("Type") == "bind"]
    return [str(each["Source"]) for each in binds if not os.path.lexists(str(each.get("Source")))]
