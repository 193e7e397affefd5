"""A swarm is upgraded as docs/swarm.md tells it, one node after the other, while clients ask its service all the time.

With HUSK_TEST_FORMER=DIRECTORY the nodes begin with the release whose sources are there (`src` of a `git worktree`), so
that both are in one swarm meanwhile, and encrypted networks are among it; without it all have this one.
"""

import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

from husk.kernel import namespaces
from tests.support.hosts import HostDaemon, Hosts
from tests.support.nodes import SLEEPER, Nodes, homes, leader, nodes_of, pinned, tasks_of
from tests.support.reach import sandbox, tasks
from tests.support.waiting import until

FORMER = os.environ.get("HUSK_TEST_FORMER", "")
NETWORKS = {"plain": (), "sealed": ("--opt", "encrypted")} if FORMER else {"plain": ()}
OURS = Path(__file__).resolve().parents[3] / "src"
SIZE = 5 if FORMER else 4
# Workers without tasks answer at the published port, too.
PLACE = () if FORMER else ("--constraint", "node.role==manager")
HOMES = SIZE if FORMER else 3
PORT = 8080
# A task that answers with its container's name, and with the secret.
SERVE = "mkdir /w; hostname > /w/index.html; cat /run/secrets/word >> /w/index.html; exec httpd -f -p 80 -h /w"


def answers(ask: Callable[[], str]) -> bool:
    return "told" in ask()


class Asking:
    """Asks one place after the other until it is over, and remembers which did not answer."""

    def __init__(self, places: dict[str, Callable[[], str]]) -> None:
        self._places = places
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answered = 0
        self.failed: list[str] = []
        # What happens now, for who reads of a failure.
        self.now = "before"

    def _run(self) -> None:
        while not self._over.wait(0.02):
            for name, ask in self._places.items():
                begun = time.monotonic()
                if "told" in (said := ask()):
                    self.answered += 1
                else:
                    lasted = time.monotonic() - begun
                    self.failed.append(f"{name} {self.now}: {said!r} after {lasted:.2f} s")

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    former = {"environment": {"PYTHONPATH": FORMER}} if FORMER else {}
    with Hosts(SIZE) as hosts, Nodes(hosts, managers=3, options=dict.fromkeys(range(SIZE), former)) as nodes:
        nodes.form()
        yield nodes


def upgrade(daemon: HostDaemon) -> None:
    daemon.stop()
    daemon.program_environment["PYTHONPATH"] = str(OURS)
    daemon.start()


def well(nodes: Nodes) -> bool:
    """Tell if `docker node ls` says on every manager that all are ready, managers reachable, and one of them leads."""
    for manager in nodes.managers:
        found = nodes_of(manager).values()
        offices = [node["ManagerStatus"] for node in found if "ManagerStatus" in node]
        if [node["Status"]["State"] for node in found] != ["ready"] * len(nodes.daemons):
            return False
        if [ca_server["Reachability"] for ca_server in offices] != ["reachable"] * len(nodes.managers):
            return False
        if not leader(manager):
            return False
    return True


def in_order(nodes: Nodes) -> Iterator[HostDaemon]:
    """Managers first, who leads last, then workers."""
    left = list(nodes.managers)
    while left:
        leads = nodes.by_id()[until(lambda: leader(nodes.first), "a leader")]
        following = next((daemon for daemon in left if daemon is not leads), left[0])
        left.remove(following)
        yield following
    yield from nodes.workers


def declare(nodes: Nodes) -> list[str]:
    """Declare the services that are to run on. Return the networks, without those that the former release has not."""
    first, networks = nodes.first, list[str]()
    first.docker("secret", "create", "word", "-", input="told")
    for network, options in NETWORKS.items():
        made = first.docker("network", "create", "--driver", "overlay", *options, network, check=not FORMER)
        networks += [network] if made.returncode == 0 else []
    on = [word for network in networks for word in ("--network", network)]
    web = ("--name", "web", "--mode", "global", "--secret", "word", "--publish", f"{PORT}:80", *PLACE)
    first.docker("service", "create", *SLEEPER, *web, *on, "busybox", "sh", "-c", SERVE)
    each = ("--name", "each", "--mode", "global", *PLACE)
    first.docker("service", "create", *SLEEPER, *each, *on, "busybox", "sleep", "600")
    until(lambda: len(homes(first, "web")) == len(homes(first, "each")) == HOMES, "all tasks", 120)
    return networks


def places(nodes: Nodes, networks: list[str]) -> dict[str, Callable[[], str]]:
    """Each host's port; on each network the service's virtual address, as tasks on two hosts reach it."""
    found: dict[str, Callable[[], str]] = {
        f"port of {daemon.where.name}": partial(fetched, daemon.where.inside, f"{daemon.where.address}:{PORT}")
        for daemon in nodes.daemons
    }
    service = nodes.first.http("GET", "/services/web").json()
    virtual = {one["NetworkID"]: one["Addr"].partition("/")[0] for one in service["Endpoint"]["VirtualIPs"]}
    for network in networks:
        address = virtual[nodes.first.http("GET", f"/networks/{network}").json()["Id"]]
        for daemon in (nodes.first, nodes.daemons[HOMES - 1]):
            (task,) = tasks(daemon, "each")
            inside = partial(namespaces.run_inside, sandbox(daemon, task))
            found[f"{network} from {daemon.where.name}"] = partial(fetched, inside, address)
    return found


def fetched(inside: Callable[[Callable[[], str]], str], address: str) -> str:
    def ask() -> str:
        with urllib.request.urlopen(f"http://{address}/", timeout=5) as answer:
            return str(answer.read().decode())

    try:
        return inside(ask)
    except (OSError, HTTPException) as error:
        return str(error)


@pytest.mark.timeout(300)
def test_one_node_after_the_other_while_clients_ask(nodes: Nodes) -> None:
    asked = places(nodes, declare(nodes))
    for name, ask in asked.items():
        until(partial(answers, ask), f"an answer: {name}")
    containers = nodes.containers()
    before = sorted(task["ID"] for task in tasks_of(nodes.first))
    with Asking(asked) as asking:
        for number, daemon in enumerate(in_order(nodes)):
            asking.now = f"while {daemon.where.name} is upgraded"
            upgrade(daemon)
            until(lambda: well(nodes), "that all are ready and reachable")
            if number == 1:
                # A change by one that is upgraded, on a node that is not.
                asking.now = "between"
                pinned("between", nodes.workers[-1], daemon)
    print(f"{asking.answered} answers; failed: {asking.failed}")
    assert not asking.failed and asking.answered > len(asked)
    assert nodes.containers() == containers, "nothing was replaced"
    assert sorted(task["ID"] for task in tasks_of(nodes.first)) == before
