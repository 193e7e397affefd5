"""The reach of a service's tasks on several hosts: from other containers and hosts, by names and published ports.

daemon.docker("service", "create", "--name", "web", "--publish", "8080:80", "busybox", "sh", "-c", SERVE)
until(lambda: all_answer(partial(published, daemon, 8080), {task[:12] for task in tasks(daemon, "web")}), "all")
"""

import json
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.support.hosts import HostDaemon
from tests.support.overlays import Connection

# A task that answers with the name of its container.
SERVE = "mkdir /w; hostname > /w/index.html; exec httpd -f -p 80 -h /w"


def tasks(daemon: HostDaemon, service: str) -> list[str]:
    """The containers of a service that run on a host."""
    label = f"label=com.docker.swarm.service.name={service}"
    return daemon.docker("ps", "-q", "--no-trunc", "--filter", label).stdout.split()


def address(daemon: HostDaemon, container: str, network: str) -> str:
    found = json.loads(daemon.docker("inspect", container).stdout)[0]
    return str(found["NetworkSettings"]["Networks"][network]["IPAddress"])


def sandbox(daemon: HostDaemon, container: str) -> Path:
    found = json.loads(daemon.docker("inspect", container).stdout)[0]
    return Path(found["NetworkSettings"]["SandboxKey"])


def fetched(daemon: HostDaemon, container: str, where: str) -> str:
    """Return the task that answers a container there; "" for none."""
    asked = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {where} 80 | tail -n 1"
    return daemon.docker("exec", container, "sh", "-c", asked, check=False).stdout.strip()


def resolved(daemon: HostDaemon, container: str, name: str) -> set[str]:
    said = daemon.docker("exec", container, "nslookup", name, check=False).stdout
    return {line.split()[1] for line in said.splitlines()[2:] if line.startswith("Address")}


def published(daemon: HostDaemon, port: int) -> str:
    """Return the task that answers behind a port of the host."""

    def ask() -> str:
        with urllib.request.urlopen(f"http://{daemon.where.address}:{port}/", timeout=2) as answer:
            return str(answer.read().decode().strip())

    try:
        return daemon.where.inside(ask)
    except OSError:
        return ""


def reaches(client: Callable[[Callable[[], socket.socket]], socket.socket], address: str, port: int, word: str) -> bool:
    """Tell if the echo there that says this word takes a client's connection."""
    try:
        with Connection(client, address, port) as connection:
            return connection.word == word
    except (OSError, ValueError):
        return False


def all_answer(ask: Callable[[], str], wanted: set[str]) -> bool:
    """Tell if all that are wanted answer in turn, and nobody else."""
    return {ask() for _ in range(2 * len(wanted))} == wanted


def overlays(daemon: HostDaemon) -> int:
    return sum(name.startswith("vx-") for name in daemon.where.links())
