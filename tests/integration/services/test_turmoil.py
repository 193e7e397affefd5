"""Two hundred changes of services while nodes come and go: at the end exactly what is wanted runs, and nothing is left.

Three managers, each with its own etcd, and two workers. HUSK_TEST_SEED repeats the same changes and faults; how they
meet depends on the machine.
"""

import asyncio
import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from husk.storage.secrets.traces import TASK_FILES
from husk.swarm.membership.etcd_membership import CERTIFICATE, KEY, ROOT
from husk.swarm.state.etcd.certificates import CertificateFiles
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.parts import MEMBER
from tests.support.hosts import HostDaemon, Hosts
from tests.support.nodes import Nodes, member, nodes_of, own, tasks_of
from tests.support.waiting import until

UPDATES = 200
NAMES = ("a", "b", "c", "d")
QUICK = ("--detach", "--no-resolve-image")
OPTIONS = ("--stop-grace-period", "0s", "--restart-delay", "0s", "--update-monitor", "100ms", "--update-delay", "0s")
PORTS = range(8080, 8084)
# What a swarm without services has in its store. Of addresses: those that hosts have on the ingress network.
AT_REST = {"swarm", "node", "alive", "leader", "guard", "overlay", "store-certificate"}


class Changes:
    """Changes one service again and again; its label says which change was the last."""

    def __init__(self, nodes: Nodes, name: str, chance: random.Random) -> None:
        self.nodes, self.name, self.chance = nodes, name, chance
        self.port = PORTS[NAMES.index(name)]
        # The last one that a manager acknowledged.
        self.heard = 0
        self.refused: list[str] = []

    def make(self, count: int) -> None:
        for number in range(1, count + 1):
            until(partial(self.change, number), f"change {number} of {self.name}: {self.refused[-5:]}")

    def change(self, number: int) -> bool:
        """Try one. A manager that dies amid the call says nothing: the next is tried with another one."""
        manager = self.chance.choice(self.nodes.managers)
        options = ("--label-add", f"last={number}", *self.any_option(number))
        done = manager.docker("service", "update", *QUICK, *options, self.name, check=False)
        if done.returncode == 0:
            self.heard = number
        else:
            self.refused.append(done.stderr.strip()[-150:])
        return done.returncode == 0

    def any_option(self, number: int) -> tuple[str, ...]:
        return self.chance.choice(
            [
                ("--replicas", str(self.chance.randint(0, 5))),
                ("--force",),
                ("--env-add", f"NUMBER={number}"),
                ("--update-parallelism", str(self.chance.randint(0, 2))),
                ("--update-order", self.chance.choice(["start-first", "stop-first"])),
                ("--network-add", "net"),
                ("--network-rm", "net"),
                ("--publish-add", f"published={self.port},target=80"),
                ("--publish-rm", "80"),
                ("--secret-add", "source=word,target=word"),
                ("--secret-rm", "word"),
            ]
        )


class Weather:
    """Faults on one node after the other, each of which is mended."""

    def __init__(self, nodes: Nodes, chance: random.Random) -> None:
        self.nodes, self.chance = nodes, chance
        self.done: list[str] = []
        self.failure: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Weather":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        kinds = [self.kill_daemon, self.kill_member, self.cut_worker, self.drain, self.demote, self.isolate_manager]
        while not self._over.is_set():
            # Each of them once, before any a second time.
            for happen in self.chance.sample(kinds, len(kinds)):
                if self._over.is_set():
                    return
                self.done.append(happen.__name__)
                try:
                    happen()
                except BaseException as error:
                    self.failure = error
                    return

    def lasts(self, most: float) -> None:
        self._over.wait(self.chance.uniform(0, most))

    def kill_daemon(self) -> None:
        victim = self.chance.choice(self.nodes.daemons)
        victim.kill9()
        self.lasts(4)
        victim.start()

    def kill_member(self) -> None:
        os.kill(member(self.chance.choice(self.nodes.managers)), signal.SIGKILL)
        self.lasts(2)

    def cut_worker(self) -> None:
        victim = self.chance.choice(self.nodes.workers)
        for manager in self.nodes.managers:
            self.nodes.hosts.cut(victim.where, manager.where, both=self.chance.random() < 0.5)
        self.lasts(20)
        self.nodes.hosts.mend()

    def isolate_manager(self) -> None:
        self.nodes.hosts.isolate(self.chance.choice(self.nodes.managers).where)
        self.lasts(8)
        self.nodes.hosts.mend()

    def drain(self) -> None:
        node = own(self.chance.choice(self.nodes.workers))["NodeID"]
        self.tell("node", "update", "--availability", "drain", node)
        self.lasts(4)
        self.tell("node", "update", "--availability", "active", node)

    def demote(self) -> None:
        victim = self.chance.choice(self.nodes.managers)
        node = own(victim)["NodeID"]
        until(lambda: ready_managers(self.nodes) == 3, "that all managers are there")
        self.tell("node", "demote", node)
        until(lambda: not own(victim)["ControlAvailable"] and not member(victim), "that it is a worker")
        self.tell("node", "promote", node)
        until(lambda: own(victim)["ControlAvailable"] and bool(member(victim)), "that it is a manager")

    def tell(self, *command: str) -> None:
        def try_all() -> bool:
            found = (manager.docker(*command, check=False).returncode for manager in self.nodes.managers)
            return any(code == 0 for code in found)

        until(try_all, " ".join(command))


def ready_managers(nodes: Nodes) -> int:
    found = [nodes_of(manager) for manager in nodes.managers]
    return sum(len(known) == len(nodes.daemons) for known in found)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with Hosts(5) as hosts, Nodes(hosts, managers=3) as nodes:
        nodes.form()
        yield nodes


@pytest.mark.timeout(400)
def test_changes_while_nodes_come_and_go(nodes: Nodes, chance: random.Random) -> None:
    first = nodes.first
    first.docker("swarm", "update", "--task-history-limit", "0")
    first.docker("network", "create", "--driver", "overlay", "net")
    first.docker("secret", "create", "word", "-", input="told")
    for name in NAMES:
        first.docker("service", "create", *QUICK, *OPTIONS, "--name", name, "busybox", "sleep", "600")
    changes = [Changes(nodes, name, random.Random(chance.random())) for name in NAMES]
    with Weather(nodes, random.Random(chance.random())) as weather, ThreadPoolExecutor(len(NAMES)) as pool:
        list(pool.map(lambda change: change.make(UPDATES // len(NAMES)), changes))
    if weather.failure is not None:
        raise weather.failure
    refused = [line for change in changes for line in change.refused]
    print(f"{len(weather.done)} faults: {weather.done}; {len(refused)} refusals: {sorted(set(refused))}")
    until(nodes.settled, "that all nodes are back")
    comes_to_nothing(lambda: differences(nodes), "exactly what is wanted runs")
    services = {service["Spec"]["Name"]: service for service in nodes.first.http("GET", "/services").json()}
    for change in changes:
        assert services[change.name]["Spec"]["Labels"]["last"] == str(change.heard), "what was acknowledged is kept"
    first.docker("service", "rm", *NAMES)
    first.docker("secret", "rm", "word")
    until(lambda: first.docker("network", "rm", "net", check=False).returncode == 0, "that nobody is on the network")
    comes_to_nothing(lambda: left_over(nodes), "nothing is left")


def comes_to_nothing(look: Callable[[], list[str]], what: str) -> None:
    """`look` finds nothing wrong, in the end."""
    found: list[str] = []

    def is_fine() -> bool:
        found[:] = look()
        return not found

    try:
        until(is_fine, what)
    except AssertionError as error:
        raise AssertionError(f"{error}: {found}") from None


def differences(nodes: Nodes) -> list[str]:
    """Return the differences between what runs and what is wanted, by any manager and on any host."""
    found = []
    for manager in nodes.managers:
        services = manager.http("GET", "/services").json()
        tasks = tasks_of(manager)
        for service in services:
            own_tasks = [task for task in tasks if task["ServiceID"] == service["ID"]]
            wanted = service["Spec"]["Mode"]["Replicated"]["Replicas"]
            state = sorted((task["DesiredState"], task["Status"]["State"]) for task in own_tasks)
            if state != [("running", "running")] * wanted:
                found.append(f"{manager.where.name}: {service['Spec']['Name']} wants {wanted}: {state}")
    live = {container_of(task): task["NodeID"] for task in tasks_of(nodes.first)}
    there = {
        container["Id"]: node
        for node, daemon in nodes.by_id().items()
        for container in daemon.http("GET", "/containers/json?all=1").json()
    }
    if live != there:
        found.append(f"containers: {sorted(live.items() ^ there.items())}")
    return found


def container_of(task: dict[str, Any]) -> str:
    return str(task["Status"].get("ContainerStatus", {}).get("ContainerID", "none yet"))


def left_over(nodes: Nodes) -> list[str]:
    """Return the things in the store and on hosts of a swarm that wants nothing any more."""
    found = [
        f"record {kind} {key}" for kind, key in nodes.first.where.inside(lambda: asyncio.run(records(nodes.first)))
    ]
    for daemon in nodes.daemons:
        where, config = daemon.where, daemon.config
        containers = daemon.http("GET", "/containers/json?all=1").json()
        found += [f"{where.name}: container {container['Id']}" for container in containers]
        with contextlib.suppress(FileNotFoundError):
            found += [f"{where.name}: secrets of {task}" for task in os.listdir(config.exec_root / TASK_FILES)]
        rules = where.run("nft", "list", "ruleset")
        found += [f"{where.name}: port {port}" for port in PORTS if f" {port}" in rules]
        found += [f"{where.name}: {name}" for name in where.links() if name.startswith("vx-")]
    return found


async def records(manager: HostDaemon) -> list[tuple[str, str]]:
    """All of the swarm's store that one without services would not have."""
    directory = manager.config.data_root / MEMBER
    files = CertificateFiles(*(directory / name for name in (ROOT, CERTIFICATE, KEY)))
    store = EtcdStore.open(f"etcd://{manager.where.address}", files)
    try:
        return [record.name for record in (await store.listing("")).records if record.kind not in AT_REST]
    finally:
        await store.close()
