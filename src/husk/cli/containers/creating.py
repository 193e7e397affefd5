"""The work of `husk create`, shared with `husk run`: a container made as flags say, its image pulled if need be."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from husk.cli.containers.spec import spec_of
from husk.cli.kit.engine import NOT_RUN, ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.progress import Silence, teller
from husk.cli.kit.writing import complain, document, say
from husk.client.client import Client
from husk.client.container import Container
from husk.client.names import ALWAYS, MISSING, NEVER, with_tag
from husk.client.spec import ContainerSpec
from husk.client.spec import document as document_of
from husk.errors import InvalidParameter, NotFound


def create(place: HostChoice, /, image: str, command: Sequence[str], as_json: bool, **flags: Any) -> None:
    """Make a container and print its id; `flags` are those of `container_flags`."""
    spec = read(image, command, flags, detached=False)

    async def created(engine: Client) -> None:
        container = await made(engine, spec, flags)
        if as_json:
            document({"Id": container.id, "Warnings": container.attrs.get("Warnings") or []})
        else:
            say(container.id)

    ask(place, created)


def read(image: str, command: Sequence[str], flags: Mapping[str, Any], detached: bool) -> ContainerSpec:
    """The flags' meaning; those that have none end the command."""

    try:
        spec = spec_of(image, command, flags, detached)
        document_of(spec)
        if flags["cidfile"] and os.path.exists(flags["cidfile"]):
            file = flags["cidfile"]
            raise InvalidParameter(
                f"container ID file found, make sure the other container isn't running or delete {file}"
            )
    except InvalidParameter as error:
        complain(f"husk: {error.message}")
        raise SystemExit(NOT_RUN) from None
    return spec


async def made(engine: Client, spec: ContainerSpec, flags: Mapping[str, Any]) -> Container:
    """The container. An image that is not here is pulled first, which is told on stderr."""

    if flags["pull"] == ALWAYS:
        await _pull(engine, spec, flags["quiet"])
    try:
        container = await engine.containers.create(spec, pull=NEVER)
    except NotFound as error:
        if flags["pull"] != MISSING or "No such image" not in error.message:
            raise

        if not flags["quiet"]:
            complain(f"Unable to find image '{with_tag(spec.image)}' locally")
        await _pull(engine, spec, flags["quiet"])
        container = await engine.containers.create(spec, pull=NEVER)
    for warning in container.attrs.get("Warnings") or []:
        complain(f"WARNING: {warning}")
    if flags["cidfile"]:
        _note(flags["cidfile"], container.id)
    return container


def _note(file: str, identity: str) -> None:
    with open(file, "x") as written:
        written.write(identity)


async def _pull(engine: Client, spec: ContainerSpec, quiet: bool) -> None:
    told = Silence() if quiet else teller(2)
    with told:
        async for step in engine.images.pulling(spec.image, platform=spec.platform):
            told.tell(step)
