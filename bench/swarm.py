"""How long does a swarm take to run many tasks, and to run them again when a node is lost? What does it cost at rest?

    sudo .venv/bin/python -m bench.swarm [--managers 3] [--workers 2] [--tasks 200] [--rest 20]

Hosts are network namespaces of this machine, each with a daemon of its own; managers run an etcd, all on the same
disk and processors. The node that is lost is a worker: it is cut off from all others, and its tasks run on there until
it hears of the swarm again. Memory is PSS. What is on the wire at rest is all that a host sends and gets, etcd's
members among themselves included.
"""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from bench.sheet import Sheet
from husk.cluster.etcd.member import mark_of
from husk.engine.services.wanted import MEMBER
from husk.kernel import process
from tests.support.hosts import UPLINK, HostDaemon, Hosts

SERVICE = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s", "--restart-delay", "0s")
PATIENCE = 300.0


class Nodes:
    """The nodes of a swarm; the first one is asked."""

    def __init__(self, hosts: Hosts, managers: int) -> None:
        self.daemons: list[HostDaemon] = [host.daemon() for host in hosts]
        self.first = self.daemons[0]
        self.first.docker("swarm", "init", "--advertise-addr", self.first.where.address)
        for number, daemon in enumerate(self.daemons[1:], 1):
            role = "manager" if number < managers else "worker"
            token = self.first.docker("swarm", "join-token", "-q", role).stdout.strip()
            daemon.docker("swarm", "join", "--token", token, f"{self.first.where.address}:2377")
        until(lambda: self.states() == ["ready"] * len(hosts))

    def states(self) -> list[str]:
        return sorted(node["Status"]["State"] for node in self.first.http("GET", "/nodes").json())

    def running(self) -> list[str]:
        """The nodes of the tasks that run and are wanted."""
        filters = quote(json.dumps({"desired-state": ["running"]}))
        tasks = self.first.http("GET", f"/tasks?filters={filters}").json()
        return [task["NodeID"] for task in tasks if task["Status"]["State"] == "running"]

    def id_of(self, daemon: HostDaemon) -> str:
        return str(daemon.http("GET", "/info").json()["Swarm"]["NodeID"])

    def memory(self) -> tuple[list[float], list[float]]:
        """MiB of each daemon, and of each etcd."""
        daemons = [pss(daemon.process.pid) for daemon in self.daemons if daemon.process is not None]
        marks = [mark_of(daemon.config.data_root / MEMBER) for daemon in self.daemons]
        return daemons, [pss(pid) for mark in marks for pid in process.given([mark])]

    def traffic(self, seconds: float) -> list[float]:
        """KiB a second that each host sends and gets."""
        before = [_bytes(daemon) for daemon in self.daemons]
        time.sleep(seconds)
        return [(_bytes(daemon) - old) / seconds / 1024 for daemon, old in zip(self.daemons, before, strict=True)]


def _bytes(daemon: HostDaemon) -> int:
    lines = daemon.where.run("cat", "/proc/net/dev").splitlines()
    [fields] = [line.split(":")[1].split() for line in lines if line.strip().startswith(f"{UPLINK}:")]
    return int(fields[0]) + int(fields[8])


def pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def until(condition: Callable[[], bool]) -> float:
    """The seconds that it took."""
    begun = time.perf_counter()
    while not condition():
        if time.perf_counter() - begun > PATIENCE:
            raise SystemExit(f"waited {PATIENCE:g} seconds in vain")
        time.sleep(0.1)
    return time.perf_counter() - begun


def measure(sheet: Sheet, nodes: Nodes, hosts: Hosts) -> None:
    options = sheet.options
    of = f"{options.managers} managers, {options.workers} workers, {options.tasks} tasks"
    empty = [round(figure, 1) for figure in nodes.traffic(options.rest)]
    sheet.say("service create")
    before = time.perf_counter()
    nodes.first.docker(
        "service", "create", *SERVICE, "--name", "web", "--replicas", str(options.tasks), "busybox", "sleep", "86400"
    )
    until(lambda: len(nodes.running()) == options.tasks)
    sheet.add("husk", "from service create until all run", "s", time.perf_counter() - before, of=of)
    sheet.say("at rest")
    time.sleep(5)
    daemons, members = nodes.memory()
    sheet.add("husk", "memory of a daemon", "MiB", statistics.median(daemons), of=of)
    if members:
        sheet.add("husk", "memory of an etcd", "MiB", statistics.median(members), of=of)
    busy = nodes.traffic(options.rest)
    for role, some, none in (
        ("manager", busy[: options.managers], empty[: options.managers]),
        ("worker", busy[options.managers :], empty[options.managers :]),
    ):
        if some:
            sheet.add("husk", f"on the wire of a {role} at rest", "KiB/s", statistics.median(some), of=of)
            sheet.add("husk", f"on the wire of a {role} at rest", "KiB/s", statistics.median(none), of="no tasks")
    sheet.say("loss of a node")
    lost = nodes.daemons[-1]
    gone = nodes.id_of(lost)
    before = time.perf_counter()
    hosts.isolate(lost.where)
    until(lambda: len(found := nodes.running()) == options.tasks and gone not in found)
    sheet.add("husk", "from the loss of a node until all run elsewhere", "s", time.perf_counter() - before, of=of)
    hosts.mend()
    until(lambda: nodes.states() == ["ready"] * len(nodes.daemons))
    nodes.first.docker("service", "rm", "web")
    until(lambda: not nodes.first.http("GET", "/tasks").json())


def main() -> None:
    sheet = Sheet("swarm", __doc__)
    sheet.option("managers", 3, quick=1)
    sheet.option("workers", 2, quick=1)
    sheet.option("tasks", 200, quick=10)
    sheet.option("rest", 20.0, quick=2.0, about="seconds")
    options = sheet.read()
    sheet.title("husk", "husk")
    with Hosts(options.managers + options.workers) as hosts:
        nodes = Nodes(hosts, options.managers)
        try:
            measure(sheet, nodes, hosts)
        finally:
            for daemon in reversed(nodes.daemons):
                daemon.docker("swarm", "leave", "--force", check=False)
    sheet.finish()


if __name__ == "__main__":
    main()
