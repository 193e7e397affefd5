"""A swarm over several hosts: managers first, each with its own etcd, then workers; and how tests look at them.

with Hosts(5) as hosts, Nodes(hosts, managers=3) as nodes:
    nodes.first.docker("service", "create", *SLEEPER, "--name", "web", "--replicas", "5", *PROGRAM)
    until(lambda: len(homes(nodes.first, "web")) == 5, "five tasks")
"""

import contextlib
import json
from collections.abc import Mapping
from functools import partial
from http.client import HTTPException
from typing import Any, Self
from urllib.parse import quote

from husk.kernel import process
from husk.swarm.state.etcd.member import mark_of
from husk.swarm.state.parts import MEMBER
from tests.support.client import Answer
from tests.support.hosts import HostDaemon, Hosts
from tests.support.waiting import until

SLEEPER = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s", "--restart-delay", "0s")
PROGRAM = ("busybox", "sleep", "600")
# What a manager says while it hears nothing of etcd, be it because another member is about to lead.
SILENT = "the cluster store does not answer"


class Nodes:
    def __init__(self, hosts: Hosts, managers: int, options: Mapping[int, Mapping[str, Any]] | None = None) -> None:
        """`options` are those of a host's daemon, by the host's place; `arguments` are for its command."""
        self.hosts = hosts
        given = [dict((options or {}).get(number, {})) for number in range(len(hosts))]
        self.daemons: list[HostDaemon] = [
            host.daemon(*own.pop("arguments", ()), **own) for host, own in zip(hosts, given, strict=True)
        ]
        self.first = self.daemons[0]
        self.managers, self.workers = self.daemons[:managers], self.daemons[managers:]

    def form(self) -> None:
        """Make them a swarm, and return when all are ready."""
        self.first.docker("swarm", "init", "--advertise-addr", self.first.where.address)
        for daemon in self.daemons[1:]:
            self.join(daemon, "manager" if daemon in self.managers else "worker")
        until(lambda: states(self.first) == ["ready"] * len(self.daemons), "that all are ready")

    def join(self, daemon: HostDaemon, role: str = "manager", by: HostDaemon | None = None) -> str:
        by = by or self.first
        token = by.docker("swarm", "join-token", "-q", role).stdout.strip()
        return daemon.docker("swarm", "join", "--token", token, f"{by.where.address}:2377").stdout.strip()

    def by_id(self) -> dict[str, HostDaemon]:
        return {own(daemon)["NodeID"]: daemon for daemon in self.daemons}

    def containers(self) -> dict[str, set[str]]:
        """Return the containers that run on each host."""
        return {daemon.where.name: running(daemon) for daemon in self.daemons}

    def settled(self) -> bool:
        """Tell if every manager knows all nodes as ready."""
        return all(states(daemon) == ["ready"] * len(self.daemons) for daemon in self.managers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hosts.mend()
        for daemon in reversed(self.daemons):
            if daemon.process is None:
                with contextlib.suppress(AssertionError):
                    daemon.start()
            daemon.docker("swarm", "leave", "--force", check=False)


def ask(daemon: HostDaemon, path: str) -> Answer | None:
    """Its answer; None where it is not there."""
    try:
        return daemon.http("GET", path)
    except (OSError, HTTPException):
        return None


def own(daemon: HostDaemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.http("GET", "/info").json()["Swarm"]
    return found


def nodes_of(daemon: HostDaemon) -> dict[str, dict[str, Any]]:
    answer = daemon.http("GET", "/nodes")
    return {node["ID"]: node for node in answer.json()} if answer.status == 200 else {}


def states(daemon: HostDaemon) -> list[str]:
    return sorted(node["Status"]["State"] for node in nodes_of(daemon).values())


def node_state(daemon: HostDaemon, node: str) -> str:
    """Return the state of a node; empty where the manager cannot say it now."""
    return str(nodes_of(daemon).get(node, {}).get("Status", {}).get("State", ""))


def leader(daemon: HostDaemon) -> str:
    found = [id for id, node in nodes_of(daemon).items() if node.get("ManagerStatus", {}).get("Leader")]
    return found[0] if found else ""


def running(daemon: HostDaemon) -> set[str]:
    return {container["Id"] for container in daemon.http("GET", "/containers/json").json()}


def tasks_of(daemon: HostDaemon, **filters: str) -> list[dict[str, Any]]:
    """Tasks as they are recorded; none where the manager cannot say."""
    asked = quote(json.dumps({name.replace("_", "-"): [value] for name, value in filters.items()}))
    answer = daemon.http("GET", f"/tasks?filters={asked}")
    found: list[dict[str, Any]] = answer.json() if answer.status == 200 else []
    return found


def homes(daemon: HostDaemon, name: str) -> list[str]:
    """The nodes of the tasks that run and are wanted, by what is recorded."""
    tasks = tasks_of(daemon, service=name, desired_state="running")
    return sorted(task["NodeID"] for task in tasks if task["Status"]["State"] == "running")


def member(daemon: HostDaemon) -> int:
    """The process of its etcd; 0 where there is none."""
    found = process.given([mark_of(daemon.config.data_root / MEMBER)])
    return found[0] if found else 0


def manager_of(daemon: HostDaemon, managers: list[HostDaemon]) -> HostDaemon | None:
    """The manager that a worker is connected to; None while there is none."""
    for line in daemon.where.run("ss", "-Htn", "state", "established", "dport", "=", ":2377").splitlines():
        peer = line.split()[3].rpartition(":")[0]
        for manager in managers:
            if manager.where.address == peer:
                return manager
    return None


def again(by: HostDaemon, name: str, *options: str) -> None:
    """New tasks for a service, one after the other. The engine may change the service while the client does, too."""
    update = ("service", "update", "--detach", "--no-resolve-image", "--force", *options, name)

    def done() -> bool:
        asked = by.docker(*update, check=False)
        assert asked.returncode == 0 or "update out of sequence" in asked.stderr, asked.stderr
        return asked.returncode == 0

    until(done, "a change of the service as it is")


def give_role(by: HostDaemon, verb: str, node: str) -> None:
    """Promote or demote a node. The swarm may write the node's record while the client does, the store may be silent
    for a moment, and the members of etcd may be too busy to answer the question whether they are a majority."""
    passing = ("update out of sequence", "would lose their majority", SILENT)

    def done() -> bool:
        asked = by.docker("node", verb, node, check=False)
        assert asked.returncode == 0 or any(told in asked.stderr for told in passing), asked.stderr
        return asked.returncode == 0

    until(done, f"that the swarm takes docker node {verb}")


def on(daemon: HostDaemon) -> tuple[str, str]:
    return "--constraint", f"node.id=={own(daemon)['NodeID']}"


def insist(by: HostDaemon, *words: str, done: str) -> None:
    """Run a command of docker until it is carried out, also where a member of etcd has just gone: the store may be
    silent for a moment then, and have done it nevertheless, which `done` tells."""

    def carried_out() -> bool:
        asked = by.docker(*words, check=False)
        well = asked.returncode == 0 or done in asked.stderr
        assert well or SILENT in asked.stderr, asked.stderr
        return well

    until(carried_out, "that the swarm takes docker " + " ".join(words))


def pinned(name: str, where: HostDaemon, by: HostDaemon) -> None:
    """A new service runs on a node, and ends there; what ran there goes on. More may come, where another node is lost
    meanwhile."""
    before = running(where)
    insist(by, "service", "create", *SLEEPER, "--name", name, *on(where), *PROGRAM, done="name conflicts")
    until(lambda: len(homes(by, name)) == 1, f"a task of {name} there")
    insist(by, "service", "rm", name, done="not found")
    until(lambda: not of_service(where, name), "its end")
    assert before <= running(where), "nothing else was stopped"


def of_service(daemon: HostDaemon, name: str) -> list[str]:
    filters = quote(json.dumps({"label": [f"com.docker.swarm.service.name={name}"]}))
    found = daemon.http("GET", f"/containers/json?filters={filters}").json()
    return [str(container["Id"]) for container in found]


def asked_by(worker: HostDaemon, managers: list[HostDaemon]) -> HostDaemon:
    """The manager that a worker is connected to, as soon as it is."""
    found = until(partial(manager_of, worker, managers), "its manager")
    assert found is not None
    return found


def trouble(daemon: HostDaemon) -> str:
    """Return the trouble that `docker info` tells of its place in the swarm."""
    return str(own(daemon)["Error"])


def told(manager: HostDaemon, service: str) -> str:
    """Return the errors of a service's tasks."""
    return " ".join(task["Status"].get("Err", "") for task in tasks_of(manager, service=service))


def updated(daemon: HostDaemon, name: str) -> bool:
    found = daemon.http("GET", f"/services/{name}").json()
    return bool(found.get("UpdateStatus", {}).get("State") == "completed")
