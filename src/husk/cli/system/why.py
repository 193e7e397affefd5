"""`husk doctor CONTAINER`: ask the engine all that tells why a container does not run, and its last lines."""

import os

from husk.cli.kit.place import HostChoice
from husk.cli.system.diagnosis import ContainerFacts, Reason, explain
from husk.client.address import resolve
from husk.client.client import Client
from husk.client.container import Container
from husk.errors import HuskError, NotFound

_LINES = 10


async def why(engine: Client, name: str, place: HostChoice) -> tuple[list[Reason], list[str]]:
    """The reasons, and the container's last lines; NotFound where there is no such container."""
    container = await engine.containers.get(name)
    try:
        image = (await engine.images.get(str(container.attrs.get("Image") or container.image))).attrs
    except NotFound:
        image = None
    facts = ContainerFacts(
        container.attrs,
        image,
        await engine.info(),
        [other.attrs for other in await engine.containers.list()],
        gone(container, place),
    )
    return explain(facts), await _last_lines(container)


def gone(container: Container, place: HostChoice) -> list[str]:
    """Sources of bind mounts that are not there; nothing where the engine may be on another host."""

    if not resolve(place.host, place.context).url.startswith("unix://"):
        return []
    binds = [each for each in container.attrs.get("Mounts") or () if each.get("Type") == "bind"]
    return [str(each["Source"]) for each in binds if not os.path.lexists(str(each.get("Source")))]


async def _last_lines(container: Container) -> list[str]:
    try:
        return [line async for line in container.logs(tail=_LINES).lines()]
    except HuskError:
        return []  # a log driver that does not give back
