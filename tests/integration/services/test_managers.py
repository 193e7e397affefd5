"""Managers that join with nothing but a token: each a real daemon on a host of its own, with an etcd of its own."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from husk.cluster.etcd.member import mark_of
from husk.engine.services.wanted import MEMBER
from husk.kernel import process
from tests.support.hosts import HostDaemon, Hosts
from tests.support.waiting import until

SLEEPER = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s")
PROGRAM = ("busybox", "sleep", "600")


class Council:
    """Managers that are asked one by one."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.daemons: list[HostDaemon] = [host.daemon() for host in hosts]

    def join(self, daemon: HostDaemon, role: str = "manager", by: HostDaemon | None = None) -> str:
        by = by or self.daemons[0]
        token = by.docker("swarm", "join-token", "-q", role).stdout.strip()
        return daemon.docker("swarm", "join", "--token", token, f"{by.where.address}:2377").stdout.strip()


def own(daemon: HostDaemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.http("GET", "/info").json()["Swarm"]
    return found


def nodes(daemon: HostDaemon) -> dict[str, dict[str, Any]]:
    return {node["ID"]: node for node in daemon.http("GET", "/nodes").json()}


def states(daemon: HostDaemon) -> list[str]:
    answer = daemon.http("GET", "/nodes")
    return sorted(node["Status"]["State"] for node in answer.json()) if answer.status == 200 else []


def leader(daemon: HostDaemon) -> str:
    found = [id for id, node in nodes(daemon).items() if node.get("ManagerStatus", {}).get("Leader")]
    return found[0] if found else ""


def running(daemon: HostDaemon) -> set[str]:
    return {container["Id"] for container in daemon.http("GET", "/containers/json").json()}


def homes(daemon: HostDaemon, name: str) -> list[str]:
    """The nodes of the tasks that run and are wanted, by what is recorded."""
    filters = quote(json.dumps({"service": [name], "desired-state": ["running"]}))
    answer = daemon.http("GET", f"/tasks?filters={filters}")
    if answer.status != 200:
        return []
    return sorted(task["NodeID"] for task in answer.json() if task["Status"]["State"] == "running")


def member(daemon: HostDaemon) -> int:
    """The process of its etcd; 0 where there is none."""
    found = process.given([mark_of(daemon.config.data_root / MEMBER)])
    return found[0] if found else 0


@pytest.fixture(scope="module")
def council() -> Iterator[Council]:
    with Hosts(3) as hosts:
        made = Council(hosts)
        yield made
        for daemon in reversed(made.daemons):
            daemon.docker("swarm", "leave", "--force", check=False)


def test_managers_join_while_tasks_run(council: Council) -> None:
    one, two, three = council.daemons
    one.docker("swarm", "init", "--advertise-addr", one.where.address)
    one.docker("service", "create", *SLEEPER, "--name", "web", "--replicas", "2", *PROGRAM)
    until(lambda: len(homes(one, "web")) == 2, "two tasks")
    before = running(one)
    one.docker("secret", "create", "word", "-", input="told by the first")
    assert not member(one)
    assert council.join(two) == "This node joined a swarm as a manager."
    assert member(one) and member(two) and running(one) == before
    assert council.join(three, by=two) == "This node joined a swarm as a manager."
    until(lambda: all(states(daemon) == ["ready"] * 3 for daemon in council.daemons), "that all know of all")
    assert running(one) == before, "nothing was stopped"
    # Any manager unseals what another sealed, and signs.
    here = own(three)["NodeID"]
    says = ("busybox", "sh", "-c", "cat /run/secrets/word; exec sleep 600")
    constraint = ("--constraint", f"node.id=={here}")
    two.docker("service", "create", *SLEEPER, "--name", "says", "--secret", "word", *constraint, *says)
    until(lambda: homes(two, "says") == [here], "the task on the third")
    [container] = running(three)
    until(lambda: three.docker("logs", container).stdout == "told by the first", "the secret is in its task")
    two.docker("service", "rm", "says")
    until(lambda: not running(three), "its end")


def test_a_new_root_reaches_all_managers(council: Council) -> None:
    """Also those whose cluster ports nobody has called."""
    before = council.daemons[0].http("GET", "/swarm").json()["TLSInfo"]["TrustRoot"]
    council.daemons[1].docker("swarm", "ca", "--rotate", "--detach", "--quiet")

    def replaced(daemon: HostDaemon) -> bool:
        told = daemon.http("GET", "/swarm").json()
        issuers = {node["Description"]["TLSInfo"]["TrustRoot"] for node in nodes(daemon).values()}
        return not told["RootRotationInProgress"] and before not in (told["TLSInfo"]["TrustRoot"], *issuers)

    until(lambda: all(map(replaced, council.daemons)), "the new root on all")


def test_the_leader_and_a_member_die(council: Council) -> None:
    one, two, three = council.daemons
    by_id = {own(daemon)["NodeID"]: daemon for daemon in council.daemons}
    until(lambda: leader(one), "a leader")
    first = by_id[leader(one)]
    left = [daemon for daemon in council.daemons if daemon is not first]
    first.kill9()
    gone = next(id for id, daemon in by_id.items() if daemon is first)
    until(lambda: leader(left[0]) not in ("", gone), "another leader", 10.0)
    first.start()
    until(lambda: states(first) == ["ready"] * 3, "that it is back")
    # A member of etcd: its daemon starts it again, and the others go on.
    pid = member(two)
    os.kill(pid, signal.SIGKILL)
    one.docker("service", "create", *SLEEPER, "--name", "more", "--replicas", "1", *PROGRAM)
    until(lambda: member(two) not in (0, pid), "its member again")
    until(lambda: len(homes(two, "more")) == 1, "what was declared meanwhile")
    # A daemon that starts again finds its member running.
    pid = member(three)
    three.restart()
    until(lambda: states(three) == ["ready"] * 3, "that it is back")
    assert member(three) == pid
    three.docker("service", "rm", "more")
    until(lambda: homes(one, "more") == [], "its end")


def test_all_managers_have_the_same_lock(council: Council) -> None:
    one, two, three = council.daemons
    two.docker("swarm", "update", "--autolock")
    key = two.docker("swarm", "unlock-key", "-q").stdout.strip()
    until(
        lambda: all(not file(daemon, "key") and file(daemon, "lock") for daemon in council.daemons), "that all have it"
    )
    assert one.docker("swarm", "unlock-key", "-q").stdout.strip() == key
    three.restart()
    assert own(three)["LocalNodeState"] == "locked" and three.http("GET", "/services").status == 503
    assert states(one) == ["ready"] * 3, "its member of etcd goes on"
    # Unlocked by others while it cannot read its key: the one that it knew last opens it.
    two.docker("swarm", "update", "--autolock=false")
    until(lambda: file(one, "key") and not file(one, "lock"), "that the first is unlocked")
    three.docker("swarm", "unlock", input=key + "\n")
    until(lambda: file(three, "key") and not file(three, "lock"), "that the third is, too")
    assert file(three, "key") == file(one, "key")
    until(partial(_sees, three), "that it sees all")


def file(daemon: HostDaemon, name: str) -> bytes:
    """What is in swarm.key or swarm.lock; empty where it is not there."""
    path = daemon.config.data_root / f"swarm.{name}"
    return path.read_bytes() if path.exists() else b""


def test_a_manager_is_demoted_and_promoted(council: Council) -> None:
    one, two, three = council.daemons
    here = own(three)["NodeID"]
    one.docker("service", "create", *SLEEPER, "--name", "stays", "--constraint", f"node.id=={here}", *PROGRAM)
    until(lambda: homes(one, "stays") == [here], "a task there")
    before = running(three)
    one.docker("node", "demote", here)
    until(lambda: own(three)["ControlAvailable"] is False and not member(three), "that it is a worker", 30.0)
    until(lambda: nodes(two)[here]["Status"]["State"] == "ready", "that it is ready")
    assert "ManagerStatus" not in nodes(two)[here] and own(three)["LocalNodeState"] == "active"
    assert three.http("GET", "/nodes").status == 503
    assert running(three) == before and homes(one, "stays") == [here]
    two.docker("node", "promote", here)
    until(lambda: own(three)["ControlAvailable"] and member(three), "that it is a manager", 30.0)
    until(partial(_sees, three), "that it sees all")
    assert running(three) == before and homes(three, "stays") == [here]
    three.docker("service", "rm", "stays")


def _sees(daemon: HostDaemon) -> bool:
    return states(daemon) == ["ready"] * 3


def test_a_minority_says_so_and_can_go_on_alone(council: Council) -> None:
    one, two, three = council.daemons
    before = running(one)
    council.hosts.isolate(council.hosts[0])

    def refused() -> bool:
        answer = one.http("GET", "/services")
        return answer.status == 503 and b"majority" in answer.body

    until(refused, "that it cannot be asked, and why", 30.0)
    # Etcd may have lost its leader with it.
    until(lambda: two.http("GET", "/services").status == 200, "that the others can be asked")
    assert running(one) == before
    council.hosts.mend()
    until(lambda: one.http("GET", "/services").status == 200, "that it can again", 30.0)
    assert running(one) == before
    # Both others are lost for good.
    for daemon in (two, three):
        daemon.kill9()
        os.kill(member(daemon), signal.SIGKILL)
    until(lambda: one.http("GET", "/services").status == 503, "that most are gone", 30.0)
    one.docker("swarm", "init", "--force-new-cluster", "--advertise-addr", one.where.address)
    assert [service["Spec"]["Name"] for service in one.http("GET", "/services").json()] == ["web"]
    assert [node["Spec"]["Role"] for node in nodes(one).values() if node["ID"] != own(one)["NodeID"]] == ["worker"] * 2
    for daemon in (two, three):
        daemon.start()
        daemon.docker("swarm", "leave", "--force")
        assert not member(daemon)
    assert council.join(two) == "This node joined a swarm as a manager."
    # One that nobody hears leaves all the same, and nothing is left of it there.
    council.hosts.isolate(council.hosts[1])
    until(lambda: two.http("GET", "/services").status == 503, "that it is alone", 30.0)
    two.docker("swarm", "leave", "--force")
    assert not member(two) and not running(two) and own(two)["LocalNodeState"] == "inactive"
    council.hosts.mend()
