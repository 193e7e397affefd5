"""`husk lab up`, `ls` and `down`, as they are typed."""

from collections.abc import Sequence

import click

from husk.cli.kit.command import HuskCommand, as_json, many
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import complain, document, say
from husk.cli.lab import labs
from husk.cli.lab.layout import USUAL_NAME, USUAL_SUBNET, Lab
from husk.cli.lab.machine import LabMachine, answers
from husk.client.client import Client, connect
from husk.errors import HuskError, NotFound

_name = click.option("--name", metavar="NAME", default=USUAL_NAME, help=f"Of a lab beside others. [{USUAL_NAME}]")


@click.command(cls=HuskCommand)
@click.option("--subnet", metavar="CIDR", default="", help=f"Addresses of the hosts. [{USUAL_SUBNET}, or others]")
@many(
    "--image",
    "images",
    metavar="IMAGE",
    help="Bring an image of this machine's daemon to all hosts; it is pulled there.",
)
@_name
@as_json
@click.argument("count", type=int, default=3)
@click.pass_obj
def up(place: HostChoice, /, count: int, subnet: str, images: Sequence[str], name: str, as_json: bool) -> None:
    """Make several hosts on this machine, each with a daemon of its own.

    They reach one another and this machine, and nothing else: bring images along."""
    machine = LabMachine()
    with _complaints():
        with labs.made(machine, name, count, subnet) as lab:
            if images:
                _bring(place, lab, images)
        show(machine, lab, as_json)


@click.command(cls=HuskCommand)
@_name
@as_json
def ls(name: str, as_json: bool) -> None:
    """List the hosts of a lab."""
    machine = LabMachine()
    with _complaints():
        show(machine, labs.known(machine, name), as_json)


@click.command(cls=HuskCommand)
@_name
def down(name: str) -> None:
    """End all hosts, with everything on them. Nothing of the lab is left."""
    with _complaints():
        labs.end(LabMachine(), name)


@click.command(cls=HuskCommand)
@_name
@click.argument("host")
def stop(host: str, name: str) -> None:
    """End the daemon of a host; its containers run on."""
    with _complaints():
        labs.end_daemon(LabMachine(), name, host)


@click.command(cls=HuskCommand)
@_name
@click.argument("host")
def start(host: str, name: str) -> None:
    """Start the daemon of a host again: that of the husk that is installed now."""
    with _complaints():
        labs.start_daemon(LabMachine(), name, host)


class _complaints:
    """A context in which a failure becomes one line on stderr and exit code 1."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, HuskError):
            complain(f"husk: {error.message}")
            raise SystemExit(1) from None


def _bring(place: HostChoice, lab: Lab, images: Sequence[str]) -> None:
    async def bring(engine: Client) -> None:
        for image in images:
            try:
                await engine.images.get(image)
            except NotFound:
                await engine.images.pull(image)
        for host in lab.hosts:
            async with connect(host.docker_host) as there:
                await there.images.load(engine.images.save(*images))

    ask(place, bring)


def show(machine: LabMachine, lab: Lab, as_json: bool) -> None:
    """Tell of the hosts of a lab: their addresses, and whether their daemons answer."""
    rows = [(host.name, str(host.address.ip), host.docker_host, answers(machine, host)) for host in lab.hosts]
    if as_json:
        names = ("Name", "Address", "DockerHost", "Answers")
        document([dict(zip(names, row, strict=True)) for row in rows])
        return
    say(f"{'HOST':<8} {'ADDRESS':<16} {'STATE':<6} DOCKER_HOST")
    for name, address, where, up in rows:
        say(f"{name:<8} {address:<16} {'up' if up else 'down':<6} {where}")
