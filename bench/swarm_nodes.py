"""Hosts of a swarm to measure: network namespaces of this machine, each with an engine of its own, Husk's or Docker's.

    with nodes_of("dockerd-new", 5) as (hosts, nodes):
        nodes[0].docker("swarm", "init", "--advertise-addr", nodes[0].where.address)

dockerd gets a mount namespace besides, with a /run of its own, and keeps all its files below a temporary directory.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol

from bench.engines import Engine, UnixConnection, busybox
from bench.peers import cgroups_removed, command
from tests.support.hosts import Host, HostDaemon, Hosts

# The ports that hosts of a swarm talk on; what a manager's traffic consists of.
PORTS: Mapping[str, Mapping[str, int]] = {
    "husk": {"etcd's members (2380)": 2380, "etcd's clients (2379)": 2379, "cluster port (2377)": 2377},
    "dockerd-new": {"Raft and dispatcher (2377)": 2377, "gossip (7946)": 7946},
}
# What an engine says to its own store, over the loopback of its host.
STORE: Mapping[str, Mapping[str, int]] = {"husk": {"etcd's clients (2379)": 2379}, "dockerd-new": {}}
# For one answer, in seconds: who does not answer is asked again.
ANSWER = 3.0


class Node(Protocol):
    where: Host

    @property
    def socket(self) -> Path: ...

    @property
    def directory(self) -> Path:
        """All of its files; processes that belong to it are known by that."""
        ...

    def docker(self, *arguments: str, check: bool = True) -> None: ...

    def kill(self) -> None:
        """kill -9 of the engine, and of what it keeps the swarm's records in; containers go on."""
        ...

    def start(self) -> None:
        """Again, after `kill`."""
        ...

    def leave(self) -> None: ...


class HuskNode:
    def __init__(self, where: Host) -> None:
        self.where = where
        self._daemon: HostDaemon = where.daemon()

    @property
    def socket(self) -> Path:
        return self._daemon.socket_path

    @property
    def directory(self) -> Path:
        return self._daemon.directory

    def docker(self, *arguments: str, check: bool = True) -> None:
        self._daemon.docker(*arguments, check=check)

    def kill(self) -> None:
        self._daemon.kill9()
        for pid, name in programs(self.directory):
            if name == "etcd":
                os.kill(pid, signal.SIGKILL)

    def start(self) -> None:
        self._daemon.start()

    def leave(self) -> None:
        self.docker("swarm", "leave", "--force", check=False)


class DockerdNode:
    def __init__(self, where: Host, home: Path, name: str) -> None:
        home.mkdir()
        self.where = where
        started, environment = command(name, home, False, bridge="10.232.0.1/16")
        self._engine = Engine(name, home, [*where.enter, *started], environment)
        self._engine.wait_until_ready()
        path = "/v1.40/images/create?fromSrc=-&repo=busybox&tag=latest"
        self._engine.connection().call("POST", path, busybox(), "application/x-tar")

    @property
    def socket(self) -> Path:
        return self._engine.socket

    @property
    def directory(self) -> Path:
        return self._engine.directory

    def docker(self, *arguments: str, check: bool = True) -> None:
        with contextlib.suppress(*(() if check else (SystemExit,))):
            self._engine.docker(*arguments)

    def kill(self) -> None:
        """Its containerd goes on, as it does when a dockerd dies."""
        self._engine.process.kill()
        self._engine.process.wait()

    def start(self) -> None:
        self._engine.start()
        self._engine.wait_until_ready()

    def leave(self) -> None:
        self.docker("swarm", "leave", "--force", check=False)

    def stop(self) -> None:
        self._engine.stop()


@contextlib.contextmanager
def nodes_of(engine: str, count: int) -> Iterator[tuple[Hosts, list[Node]]]:
    """That many hosts with this engine; all has gone afterwards."""
    with Hosts(count) as hosts:
        if engine == "husk":
            made: list[Node] = [HuskNode(host) for host in hosts]
            try:
                yield hosts, made
            finally:
                for node in reversed(made):
                    node.leave()
            return
        with _dockerds(engine, hosts) as found:
            yield hosts, list(found)


@contextlib.contextmanager
def _dockerds(engine: str, hosts: Hosts) -> Iterator[list[DockerdNode]]:
    top = Path(tempfile.mkdtemp(prefix="hkb-", dir="/tmp"))
    made: list[DockerdNode] = []
    with cgroups_removed():
        try:
            for host in hosts:
                made.append(DockerdNode(host, top / host.name, engine))
            yield made
        finally:
            for node in reversed(made):
                node.leave()
            for node in reversed(made):
                node.stop()
            for line in reversed(Path("/proc/mounts").read_text().splitlines()):
                if f" {top}/" in line:
                    subprocess.run(["umount", "-l", line.split()[1]], check=False)
            shutil.rmtree(top, ignore_errors=True)


def ask(node: Node, path: str) -> Any:
    """Return the answer of the node's API; None where it does not answer, or not well."""
    connection = UnixConnection(node.socket)
    connection.timeout = ANSWER
    try:
        return connection.call("GET", path)[1]
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def programs(directory: Path) -> list[tuple[int, str]]:
    """The processes that have the directory in their arguments, and the names of their programs."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(f"{directory}/") in (entry / "cmdline").read_bytes():
                found.append((int(entry.name), Path(os.readlink(entry / "exe")).name))
    return found


def memory(directory: Path) -> dict[str, float]:
    """MiB (PSS) by program; what docker's client or a container's own process is counts for nothing."""
    total: dict[str, float] = {}
    for pid, name in programs(directory):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            kib = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            total[name] = total.get(name, 0.0) + kib / 1024
    return total
