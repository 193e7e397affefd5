"""`husk lab up`, `ls` and `down`, as they are typed."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from husk.cli.kit.command import HuskCommand, as_json, many
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import complain, document, say
from husk.cli.lab import used
from husk.cli.lab.holder import ended, is_daemon_of
from husk.cli.lab.layout import MOST, USUAL_NAME, USUAL_SUBNET, Lab, LabHost, free, planned, read, written
from husk.cli.lab.take_back import is_up, take_back
from husk.client.client import Client, connect
from husk.errors import Conflict, Forbidden, HuskError, InvalidParameter, NotFound, SystemFault
from husk.kernel.process import arguments_of, given

# How long daemons may take to start or end, in seconds, and how often is looked.
PATIENCE, LOOK = 60.0, 0.1
_OF_ROOT = "hosts of a lab are root's: run it with sudo"
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
    with _complaints():
        lab = make(planned(name, count, subnet or USUAL_SUBNET), choose=not subnet)
        try:
            for host in lab.hosts:
                await_daemon(lab, host)
            if images:
                _bring(place, lab, images)
        except BaseException:
            _end(lab)
            raise
        _tell(lab, as_json)


@click.command(cls=HuskCommand)
@_name
@as_json
def ls(name: str, as_json: bool) -> None:
    """List the hosts of a lab."""
    with _complaints():
        _tell(_known(name), as_json)


@click.command(cls=HuskCommand)
@_name
def down(name: str) -> None:
    """End all hosts, with everything on them. Nothing of the lab is left."""
    with _complaints():
        _check_root()
        try:
            lab = _known(name)
        except NotFound:
            # What a machine that was switched off has on its disk.
            lab = planned(name, MOST, USUAL_SUBNET)
        _end(lab)


@click.command(cls=HuskCommand)
@_name
@click.argument("host")
def stop(host: str, name: str) -> None:
    """End the daemon of a host; its containers run on."""
    with _complaints():
        _check_root()
        lab = _known(name)
        there = lab.host(host)
        lab.wish(there).unlink(missing_ok=True)
        deadline = time.monotonic() + PATIENCE
        # Once: a daemon that is told so several times ends at once, and leaves its work undone.
        for pid in (told := daemons_of(there)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        while not told.isdisjoint(daemons_of(there)):
            if time.monotonic() > deadline:
                raise SystemFault(f"the daemon of {host} does not end")
            time.sleep(LOOK)


@click.command(cls=HuskCommand)
@_name
@click.argument("host")
def start(host: str, name: str) -> None:
    """Start the daemon of a host again: that of the husk that is installed now."""

    with _complaints():
        _check_root()
        lab = _known(name)
        there = lab.host(host)
        if not (holders := given([lab.mark])):
            raise Conflict(f"the lab {name} has ended: `husk lab up` makes another")
        if answers(there):
            return
        said = lab.log.stat().st_size
        lab.wish(there).touch()
        try:
            for pid in holders:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGHUP)
            await_daemon(lab, there, said)
        finally:
            # It may have been about to start anyhow: a later `stop` must not find the wish.
            lab.wish(there).unlink(missing_ok=True)


class _complaints:
    """A context in which a failure becomes one line on stderr and exit code 1."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, HuskError):
            complain(f"husk: {error.message}")
            raise SystemExit(1) from None


def make(lab: Lab, choose: bool = False) -> Lab:
    """Start it; nothing is there before, but what a former one left. With `choose`, at addresses that nobody uses."""

    _check_root()
    if is_up(lab):
        raise Conflict(f"the lab {lab.name} is up: end it with `husk lab down`, or see `husk lab ls`")
    # First, for the interface of a lab that has just been killed is there for a moment.
    take_back(lab)
    if choose:
        lab = planned(lab.name, lab.size, free(used.in_use()))
    for interface in used.own_interfaces():
        if interface.network.overlaps(lab.subnet):
            raise InvalidParameter(f"this machine has the address {interface} already: choose another --subnet")
    _new(lab.run, 0o755)
    _new(lab.data, 0o700)
    lab.record.write_bytes(written(lab))
    (lab.run / "daemon.json").write_text("{}")
    words = [lab.mark, lab.name, str(lab.size), str(lab.subnet)]
    with lab.log.open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "husk.cli.lab.holder", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            check=False,
        )
    return lab


def _new(directory: Path, mode: int) -> None:
    while True:
        directory.parent.mkdir(mode=0o755, exist_ok=True)
        # The last lab beside this one may take the parent away just now.
        with suppress(FileNotFoundError):
            return directory.mkdir(mode=mode)


def daemons_of(host: LabHost) -> set[int]:
    """The processes that are its daemon: none, or one."""

    return {pid for pid in given([str(host.data_root)]) if is_daemon_of(host, arguments_of(pid))}


def await_daemon(lab: Lab, host: LabHost, said: int = 0) -> None:
    """`said`: how much of the log is older."""

    deadline = time.monotonic() + PATIENCE
    while not answers(host):
        news = lab.log.read_bytes()[said:].decode(errors="replace")
        if not is_up(lab) or ended(host) in news or time.monotonic() > deadline:
            raise SystemFault(f"{host.name} does not start: {_last_words(lab, host)}")
        time.sleep(0.05)


def answers(host: LabHost) -> bool:
    """Return True if the host's daemon answers a ping; Forbidden if it may not be asked."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        try:
            line.connect(str(host.socket))
            line.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            answer = http.client.HTTPResponse(line)
            answer.begin()
            return answer.status == 200
        except PermissionError:
            raise Forbidden(_OF_ROOT) from None
        except (OSError, http.client.HTTPException):
            return False


def _last_words(lab: Lab, host: LabHost) -> str:
    for path in (lab.run / f"{host.name}.log", lab.log):
        if path.exists() and (lines := path.read_text(errors="replace").strip().splitlines()):
            return lines[-1]
    return "it said nothing"


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


def _known(name: str) -> Lab:
    lab = planned(name, 1, USUAL_SUBNET)
    try:
        return read(name, lab.record.read_bytes())
    except PermissionError:
        raise Forbidden(_OF_ROOT) from None
    except FileNotFoundError:
        raise NotFound(f"there is no lab {name}: `husk lab up` makes one") from None


def _tell(lab: Lab, as_json: bool) -> None:
    rows = [(host.name, str(host.address.ip), host.docker_host, answers(host)) for host in lab.hosts]
    if as_json:
        names = ("Name", "Address", "DockerHost", "Answers")
        document([dict(zip(names, row, strict=True)) for row in rows])
        return
    say(f"{'HOST':<8} {'ADDRESS':<16} {'STATE':<6} DOCKER_HOST")
    for name, address, where, up in rows:
        say(f"{name:<8} {address:<16} {'up' if up else 'down':<6} {where}")


def _end(lab: Lab) -> None:
    take_back(lab)


def _check_root() -> None:
    if os.geteuid() != 0:
        raise Forbidden(_OF_ROOT)
