"""A worker joins a manager: each a real daemon on a host of its own, with docker's own commands."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.hosts import HostDaemon, Hosts
from tests.support.waiting import until

SLEEPER = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s")
PROGRAM = ("busybox", "sleep", "600")


class Pair:
    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.manager: HostDaemon = hosts[0].daemon()
        self.worker: HostDaemon = hosts[1].daemon()
        self.manager.docker("swarm", "init", "--advertise-addr", hosts[0].address)
        self.join()

    def join(self) -> None:
        token = self.manager.docker("swarm", "join-token", "-q", "worker").stdout.strip()
        said = self.worker.docker("swarm", "join", "--token", token, f"{self.hosts[0].address}:2377").stdout
        assert said.strip() == "This node joined a swarm as a worker."
        until(lambda: self.state() == "ready", "that the worker is ready")

    @property
    def ids(self) -> tuple[str, str]:
        return own(self.manager)["NodeID"], own(self.worker)["NodeID"]

    def state(self, node: str = "") -> str:
        found = self.manager.http("GET", f"/nodes/{node or self.ids[1]}").json()
        return str(found["Status"]["State"])

    def homes(self, name: str) -> list[str]:
        """The nodes of the tasks that run and are wanted, by what is recorded."""
        filters = quote(json.dumps({"service": [name], "desired-state": ["running"]}))
        tasks: list[dict[str, Any]] = self.manager.http("GET", f"/tasks?filters={filters}").json()
        return sorted(task["NodeID"] for task in tasks if task["Status"]["State"] == "running")

    def create(self, name: str, replicas: int, *options: str, program: tuple[str, ...] = PROGRAM) -> None:
        what = ("--name", name, "--replicas", str(replicas), *options, *program)
        self.manager.docker("service", "create", *SLEEPER, *what)

    def remove(self, name: str) -> None:
        self.manager.docker("service", "rm", name)
        until(lambda: not running(self.manager) and not running(self.worker), "nothing runs any more")


def own(daemon: HostDaemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.http("GET", "/info").json()["Swarm"]
    return found


def running(daemon: HostDaemon) -> set[str]:
    return {container["Id"] for container in daemon.http("GET", "/containers/json").json()}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Hosts(2) as hosts:
        pair = Pair(hosts)
        yield pair
        pair.worker.docker("swarm", "leave", "--force", check=False)
        pair.manager.docker("swarm", "leave", "--force", check=False)


def test_a_worker_and_what_it_may_be_asked(pair: Pair) -> None:
    manager, worker = pair.ids
    told = own(pair.worker)
    assert (told["LocalNodeState"], told["ControlAvailable"], told["Error"]) == ("active", False, "")
    assert [remote["Addr"] for remote in told["RemoteManagers"]] == ["192.0.2.1:2377"]
    until(lambda: own(pair.worker)["NodeAddr"] == "192.0.2.2", "that it knows its address")
    assert "Nodes" not in told and pair.worker.http("GET", "/_ping").headers["Swarm"] == "active/worker"
    nodes = {node["ID"]: node for node in pair.manager.http("GET", "/nodes").json()}
    assert set(nodes) == {manager, worker}
    described = nodes[worker]["Description"]
    assert described["Resources"] == nodes[manager]["Description"]["Resources"] and described["TLSInfo"]
    assert "ManagerStatus" not in nodes[worker] and nodes[worker]["Status"]["Addr"] == "192.0.2.2"
    for path in ("/swarm", "/nodes", "/services", "/tasks", "/secrets", "/configs"):
        refused = pair.worker.http("GET", path)
        assert refused.status == 503 and b"Worker nodes can't be used to view or modify" in refused.body
    again = pair.worker.docker("swarm", "join", "--token", "SWMTKN-1-x-y", "192.0.2.1", check=False)
    assert "This node is already part of a swarm" in again.stderr
    assert pair.worker.docker("swarm", "init", check=False).returncode != 0


def test_tasks_are_spread_and_go_on_while_daemons_start_again(pair: Pair) -> None:
    both = sorted(pair.ids * 2)
    pair.create("web", 4)
    until(lambda: pair.homes("web") == both, "two on each")
    here, there = running(pair.manager), running(pair.worker)
    assert (len(here), len(there)) == (2, 2)
    pair.worker.restart()
    pair.manager.restart()
    until(lambda: pair.state() == "ready" and not own(pair.worker)["Error"], "that they know each other again")
    assert pair.homes("web") == both
    pair.manager.docker("service", "scale", "--detach", "web=6")
    until(lambda: len(pair.homes("web")) == 6, "two more")
    assert here < running(pair.manager) and there < running(pair.worker), "those from before ran on"
    pair.remove("web")
