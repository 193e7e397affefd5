"""Time of a swarm to run many tasks, and to run them again when a node is lost, and its cost at rest.

    sudo .venv/bin/python -m bench.swarm [--managers 3] [--workers 2] [--tasks 200] [--engines husk,dockerd-new]

Hosts are network namespaces of this machine, each with an engine of its own; Husk's managers run an etcd, all on the
same disk and processors. The node that is lost is a worker: it is cut off from all others, and its tasks run on there
until it hears of the swarm again. With three managers or more, the one that plans is killed at the end (kill -9, with
its etcd), until another says that it plans. Memory is PSS. What is on the wire at rest is all that a host sends and
gets, whole frames; a manager's is taken apart by port, that of the one with the most. What a manager's daemon asks of
its own member of etcd goes over the loopback, and is counted besides.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from bench.sheet import Sheet
from bench.swarm_nodes import PORTS, STORE, Node, ask, memory, nodes_of
from bench.wire import Wire, kib_per_second
from tests.support.hosts import Hosts

SERVICE = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s", "--restart-delay", "0s")
PATIENCE = 300.0
# The programs that are the engine itself; the others run one container each, or keep the swarm's records.
DAEMON = {"husk": (Path(sys.executable).resolve().name,), "dockerd-new": ("dockerd", "containerd")}


class Traffic(NamedTuple):
    """KiB a second, by port: what a host sends and gets, and what its engine and its own store say to one another."""

    wire: dict[str, float]
    store: dict[str, float]


class Swarm:
    """The nodes of a swarm; the first one is asked."""

    def __init__(self, engine: str, nodes: Sequence[Node], managers: int) -> None:
        self.engine, self.nodes, self.managers = engine, nodes, managers
        self.first = nodes[0]
        self.first.docker("swarm", "init", "--advertise-addr", self.first.where.address)
        for number, node in enumerate(nodes[1:], 1):
            token = ask(self.first, "/swarm")["JoinTokens"]["Manager" if number < managers else "Worker"]
            node.docker("swarm", "join", "--token", token, f"{self.first.where.address}:2377")
        until(self.all_ready)

    def all_ready(self) -> bool:
        found = ask(self.first, "/nodes") or []
        return [node["Status"]["State"] for node in found] == ["ready"] * len(self.nodes)

    def running(self) -> list[str]:
        """The nodes of the tasks that run and are wanted."""
        filters = quote(json.dumps({"desired-state": ["running"]}))
        tasks = ask(self.first, f"/tasks?filters={filters}") or []
        return [task["NodeID"] for task in tasks if task["Status"]["State"] == "running"]

    def leader(self, asked: Node) -> str:
        """The address of the manager that plans, as this one knows it; empty while it knows none."""
        for node in ask(asked, "/nodes") or []:
            if (node.get("ManagerStatus") or {}).get("Leader"):
                return str(node["Status"]["Addr"])
        return ""

    def traffic(self, seconds: float) -> list[Traffic]:
        """Of each host."""
        ports, store = PORTS[self.engine], STORE[self.engine]
        with ExitStack() as stack:
            wires = [stack.enter_context(Wire(node.where.enter, ports, local=store)) for node in self.nodes]
            before = [(wire.read(), wire.read_local()) for wire in wires]
            time.sleep(seconds)
            after = [(wire.read(), wire.read_local()) for wire in wires]
        return [
            Traffic(*(kib_per_second(*parts, seconds) for parts in zip(*both, strict=True)))
            for both in zip(before, after, strict=True)
        ]


def until(condition: Callable[[], bool]) -> float:
    """The seconds that it took."""
    begun = time.perf_counter()
    while not condition():
        if time.perf_counter() - begun > PATIENCE:
            raise SystemExit(f"waited {PATIENCE:g} seconds in vain")
        time.sleep(0.1)
    return time.perf_counter() - begun


def measure(sheet: Sheet, swarm: Swarm, hosts: Hosts) -> None:
    options, engine = sheet.options, swarm.engine
    of = f"{options.managers} managers, {options.workers} workers, {options.tasks} tasks"
    time.sleep(options.settle)
    _at_rest(sheet, swarm, of="no tasks")
    sheet.say(f"{engine}: service create")
    before = time.perf_counter()
    swarm.first.docker(
        "service", "create", *SERVICE, "--name", "web", "--replicas", str(options.tasks), "busybox", "sleep", "86400"
    )
    until(lambda: len(swarm.running()) == options.tasks)
    sheet.add(engine, "from service create until all run", "s", time.perf_counter() - before, of=of)
    time.sleep(options.settle)
    _memory(sheet, swarm, of)
    _at_rest(sheet, swarm, of=of)
    if options.losses:
        _lose_a_worker(sheet, swarm, hosts, of)
    swarm.first.docker("service", "rm", "web")
    until(lambda: ask(swarm.first, "/tasks") == [])
    if options.losses and options.managers >= 3:
        _take_over(sheet, swarm, of)


def _lose_a_worker(sheet: Sheet, swarm: Swarm, hosts: Hosts, of: str) -> None:
    sheet.say(f"{swarm.engine}: loss of a node")
    lost = swarm.nodes[-1]
    gone = str(ask(lost, "/info")["Swarm"]["NodeID"])
    before = time.perf_counter()
    hosts.isolate(lost.where)
    until(lambda: len(found := swarm.running()) == sheet.options.tasks and gone not in found)
    sheet.add(swarm.engine, "from the loss of a node until all run elsewhere", "s", time.perf_counter() - before, of=of)
    hosts.mend()
    until(swarm.all_ready)


def _memory(sheet: Sheet, swarm: Swarm, of: str) -> None:
    found = [memory(node.directory) for node in swarm.nodes]
    daemons = [sum(sizes.get(name, 0.0) for name in DAEMON[swarm.engine]) for sizes in found]
    sheet.add(swarm.engine, "memory of a daemon", "MiB", statistics.median(daemons), of=of)
    if members := [sizes["etcd"] for sizes in found if "etcd" in sizes]:
        sheet.add(swarm.engine, "memory of an etcd", "MiB", statistics.median(members), of=of)
    whole = [sum(sizes.values()) for sizes in found]
    sheet.add(swarm.engine, "memory of all that runs containers on a node", "MiB", statistics.median(whole), of=of)


def _at_rest(sheet: Sheet, swarm: Swarm, of: str) -> None:
    sheet.say(f"{swarm.engine}: at rest, {of}")
    found = swarm.traffic(sheet.options.rest)
    for role, some in (("manager", found[: swarm.managers]), ("worker", found[swarm.managers :])):
        if some:
            whole = [sum(traffic.wire.values()) for traffic in some]
            name = f"on the wire of a {role} at rest"
            sheet.add(swarm.engine, name, "KiB/s", statistics.median(whole), of=of)
            if role == "manager":
                sheet.add(swarm.engine, f"{name}: the one with most", "KiB/s", max(whole), of=of)
                most = max(some, key=lambda traffic: sum(traffic.wire.values()))
                for part, rate in most.wire.items():
                    sheet.add(swarm.engine, f"{name}: {part}", "KiB/s", rate, of=of)
                if swarm.managers > 1 and most.store:
                    asked = [sum(traffic.store.values()) for traffic in some]
                    name = "asked of the store on a manager at rest"
                    sheet.add(swarm.engine, name, "KiB/s", statistics.median(asked), of=of)
                    sheet.add(swarm.engine, f"{name}: the one with most", "KiB/s", max(asked), of=of)


def _take_over(sheet: Sheet, swarm: Swarm, of: str) -> None:
    sheet.say(f"{swarm.engine}: the manager that plans is killed")
    until(lambda: swarm.leader(swarm.first) != "")
    address = swarm.leader(swarm.first)
    planner = next(node for node in swarm.nodes if node.where.address == address)
    other = next(node for node in swarm.nodes[: swarm.managers] if node is not planner)
    before = time.perf_counter()
    planner.kill()
    until(lambda: swarm.leader(other) not in ("", address))
    taken = time.perf_counter() - before
    sheet.add(swarm.engine, "from kill -9 of the manager that plans until another does", "s", taken, of=of)
    planner.start()
    until(swarm.all_ready)


def main() -> None:
    sheet = Sheet("swarm", __doc__, engines="husk,dockerd-new")
    sheet.option("managers", 3, quick=1)
    sheet.option("workers", 2, quick=1)
    sheet.option("tasks", 200, quick=4)
    sheet.option("rest", 20.0, quick=0.3, about="seconds that traffic is counted for")
    sheet.option("settle", 8.0, quick=0.2, about="seconds before that")
    sheet.option("losses", 1, quick=0, about="0 for none, of a node and of the manager that plans")
    options = sheet.read()
    for engine in sheet.wanted:
        if engine not in PORTS:
            raise SystemExit(f"{engine} has no swarm that could be measured: {', '.join(PORTS)} have")
        with nodes_of(engine, options.managers + options.workers) as (hosts, nodes):
            version = str(ask(nodes[0], "/version")["Version"])
            sheet.title(engine, f"{engine.removesuffix('-new')} {version.split('+')[0]}")
            measure(sheet, Swarm(engine, nodes, options.managers), hosts)
    sheet.finish()


if __name__ == "__main__":
    main()
