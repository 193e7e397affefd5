"""`husk migrate`, as it is typed."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from husk.cli.kit.command import HuskCommand, flag
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import say
from husk.cli.migrate.compose import Surroundings, compose, written
from husk.cli.migrate.images import bring_images
from husk.cli.migrate.networks import bring_networks
from husk.cli.migrate.report import MigrationReport
from husk.cli.migrate.volumes import bring_volumes
from husk.client.client import Client, connect
from husk.errors import CommandFailed, HuskError, NotFound, SystemFault

_SOCKETS = {"docker": "unix:///var/run/docker.sock", "podman": "unix:///run/podman/podman.sock"}


@click.command(cls=HuskCommand)
@click.option("--from", "origin", type=click.Choice(list(_SOCKETS)), required=True, help="Whose things come over.")
@click.option("--from-host", metavar="ADDRESS", default="", help="Its socket. [its usual one]")
@click.option("--compose", metavar="FILE", default="migrated.compose.yaml", help="Where containers are written to.")
@flag("--images", default=True, help="Images; --images=false leaves them out, and so on.")
@flag("--volumes", default=True, help="Volumes, with what is in them.")
@flag("--networks", default=True, help="Networks.")
@flag("--containers", default=True, help="Containers, as a Compose file.")
@click.pass_obj
def migrate(
    place: HostChoice,
    origin: str,
    from_host: str,
    compose: str,
    images: bool,
    volumes: bool,
    networks: bool,
    containers: bool,
) -> None:
    """Bring images, volumes, networks and containers of a docker or podman on this host over.

    Containers come as a Compose file, for docker compose; what that cannot say is told, and the exit status is 1.

    Nothing is taken away there. Run again, it goes on where it was, and fetches nothing twice. Volumes need root.
    """

    async def work(target: Client) -> int:
        async with _reached(origin, from_host) as source:
            theirs, ours = await source.info(), await target.info()
            if theirs.get("ID") == ours.get("ID"):
                raise CommandFailed("husk: both are the same engine: -H or HUSK_HOST names the other", 1)
            boxes = [await source.containers.get(each.id) for each in await source.containers.list(all=True)]
            with MigrationReport() as report:
                if images:
                    await bring_images(source, target, {str(each.attrs.get("Image")) for each in boxes}, report)
                if volumes:
                    writers = {
                        str(mount.get("Name")): each.name
                        for each in boxes
                        if each.status == "running"
                        for mount in each.attrs.get("Mounts") or ()
                    }
                    await bring_volumes(source, target, origin, writers, report)
                if networks:
                    await bring_networks(source, target, report)
                if containers and boxes:
                    around = Surroundings(await _subnets(target), theirs, ours)
                    await _write(source, around, [each.attrs for each in boxes], Path(compose), report)
        if report.failures:
            say(f"{report.failures} failed: run it again when they are mended; what is here stays")
        return 1 if report.failures or report.losses else 0

    ask(place, work)


@asynccontextmanager
async def _reached(origin: str, address: str) -> AsyncIterator[Client]:
    try:
        source = await connect(address or _SOCKETS[origin]).__aenter__()
    except HuskError as error:
        told = f"husk: {origin} does not answer: {error.message} --from-host names another socket"
        raise CommandFailed(told, 1) from error
    try:
        yield source
    finally:
        await source.close()


async def _subnets(target: Client) -> dict[str, list[str]]:
    return {network.name: network.subnets for network in await target.networks.list()}


async def _write(
    source: Client, around: Surroundings, boxes: list[dict[str, object]], file: Path, report: MigrationReport
) -> None:
    known = {}
    for identity in {str(each.get("Image")) for each in boxes}:
        try:
            known[identity] = (await source.images.get(identity)).attrs
        except NotFound:
            continue
    found = compose(boxes, known, around)
    _save(written(found.document), file, len(boxes), report)
    for name, settings in found.lost.items():
        report.lost(name, settings)


def _save(text: str, file: Path, count: int, report: MigrationReport) -> None:
    if file.exists() and file.read_text(errors="replace") != text:
        report.failed(f"containers in {file}", "the file is there with something else in it: --compose names another")
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # environments hold secrets
        with open(descriptor, "w") as opened:
            opened.write(text)
    except OSError as error:
        raise SystemFault(f"cannot write {file}: {error.strerror}") from error
    report.done(f"{count} containers in {file}: docker compose -f {file} up -d makes them, once theirs are stopped")
