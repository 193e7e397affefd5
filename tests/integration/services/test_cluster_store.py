"""Daemons that share an etcd which exists: the same services, one that plans, and what they do while it is away."""

import json
import os
import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.etcd import Etcd
from tests.support.waiting import until

TEMPLATE = {"ContainerSpec": {"Image": "busybox"}, "Placement": {"Constraints": ["node.id==nobody"]}}
NET = f"{random.randint(1, 254)}.{random.randint(1, 254)}"
PORT = 2397
STOPPED = ("--detach", "--replicas", "0", "busybox", "true")


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    with Etcd(tmp_path_factory.mktemp("etcd"), tls=True) as etcd:
        yield etcd


@pytest.fixture(scope="module")
def daemons(etcd: Etcd) -> Iterator[list[Daemon]]:
    pair = etcd.client_certificate("manager")
    files = {"cacertfile": pair.ca, "certfile": pair.cert, "keyfile": pair.key}
    options = [word for name, path in files.items() for word in ("--cluster-store-opt", f"kv.{name}={path}")]
    with ExitStack() as stack:
        yield [stack.enter_context(Daemon("--cluster-store", etcd.address, *options)) for _ in range(2)]


def place(number: int) -> str:
    """Return the place of a daemon's cluster port: both are on one host, whose usual port others may have."""
    return f"127.{NET}.{number}:{PORT}"


def init(daemon: Daemon, number: int) -> None:
    daemon.docker("swarm", "init", "--listen-addr", place(number), "--advertise-addr", place(number))


def join(daemon: Daemon, number: int, by: Daemon) -> None:
    token = by.docker("swarm", "join-token", "-q", "manager").stdout.strip()
    own_place = ("--listen-addr", place(number), "--advertise-addr", place(number))
    said = daemon.docker("swarm", "join", *own_place, "--token", token, place(1)).stdout
    assert said.strip() == "This node joined a swarm as a manager."


def key(daemon: Daemon) -> bytes:
    return (daemon.config.data_root / "swarm.key").read_bytes()


def services(daemon: Daemon) -> list[str]:
    return sorted(daemon.docker("service", "ls", "--format", "{{.Name}}").stdout.split())


def _has(daemon: Daemon, *names: str) -> bool:
    return services(daemon) == list(names)


def leaders(daemon: Daemon) -> list[str]:
    nodes: list[dict[str, Any]] = json.loads(daemon.http("GET", "/nodes").body)
    return [node["ID"] for node in nodes if node["ManagerStatus"].get("Leader")]


def own(daemon: Daemon) -> str:
    return str(json.loads(daemon.http("GET", "/info").body)["Swarm"]["NodeID"])


def test_two_daemons_of_one_etcd(etcd: Etcd, daemons: list[Daemon]) -> None:
    one, two = daemons
    init(one, 1)
    refused = two.docker("swarm", "init", check=False)
    assert refused.returncode != 0 and "holds a swarm already" in refused.stderr
    wrong = two.http("POST", "/swarm/join", {"JoinToken": "SWMTKN-1-x-y", "RemoteAddrs": [place(1)]})
    assert wrong.status == 400
    join(two, 2, one)
    # Both have the key of the swarm: each unseals what the other sealed, and signs.
    one.docker("secret", "create", "word", "-", input="of the first")
    until(lambda: two.docker("secret", "ls", "-q").stdout, "that the second hears of it")
    assert key(one) == key(two)
    two.docker("secret", "rm", "word")

    one.docker("service", "create", "--name", "first", *STOPPED)
    two.docker("service", "create", "--name", "second", *STOPPED)
    for daemon in daemons:
        until(partial(_has, daemon, "first", "second"), "services of both")
        assert len(json.loads(daemon.http("GET", "/nodes").body)) == 2
    taken = [daemon.http("POST", "/services/create", {"Name": "same", "TaskTemplate": TEMPLATE}) for daemon in daemons]
    assert sorted(answer.status for answer in taken) == [201, 409]
    one.docker("service", "rm", "same")
    seen = json.loads(two.http("GET", "/services/first").body)
    one.docker("service", "update", "--detach", "--label-add", "a=b", "first")
    stale = two.http("POST", f"/services/first/update?version={seen['Version']['Index']}", seen["Spec"])
    assert stale.status == 400 and b"update out of sequence" in stale.body
    until(lambda: json.loads(two.http("GET", "/services/first").body)["Spec"]["Labels"], "the change of the other")

    # The one that plans is stopped: the other takes over, and the first finds that out when it goes on.
    until(lambda: leaders(two) == [own(one)], "one that plans, known to the other")
    os.kill(one.pid, signal.SIGSTOP)
    try:
        until(lambda: leaders(two) == [own(two)], "another one that plans")
    finally:
        os.kill(one.pid, signal.SIGCONT)
    until(lambda: one.http("GET", "/nodes").status == 200 and leaders(one) == [own(two)], "that the first knows it")
    two.docker("service", "rm", "second")
    until(lambda: services(one) == ["first"], "the removal by the other")

    # The store is away: plain containers know nothing of it, the swarm says what is wrong, also after a start.
    for member in etcd.members:
        member.kill()
    until(lambda: one.http("GET", "/services").status == 503, "that the swarm cannot be used")
    one.restart()
    away = one.http("GET", "/services")
    assert away.status == 503 and b"cluster store" in away.body
    state = json.loads(one.http("GET", "/info").body)["Swarm"]
    assert state["LocalNodeState"] == "pending" and state["Error"]
    assert one.http("GET", "/containers/json").status == 200
    etcd.restart(*etcd.members)
    until(lambda: one.http("GET", "/services").status == 200 and services(one) == ["first"], "the swarm again")

    two.docker("swarm", "leave", "--force")
    until(lambda: len(json.loads(one.http("GET", "/nodes").body)) == 1, "that the other has left")
    assert services(one) == ["first"] and two.http("GET", "/services").status == 503
    one.docker("swarm", "leave", "--force")
    # Its watch may be on its way back yet, since the store was away.
    own_place = ("--listen-addr", place(2), "--advertise-addr", place(2))
    until(lambda: two.docker("swarm", "init", *own_place, check=False).returncode == 0, "a swarm of its own")
    until(lambda: services(two) == [], "nothing of the former one")
    two.docker("swarm", "leave", "--force")


def homes(daemon: Daemon) -> list[str]:
    """The nodes of the tasks that run and are wanted, by what is recorded."""
    tasks: list[dict[str, Any]] = json.loads(daemon.http("GET", "/tasks").body)
    live = [t for t in tasks if t["Status"]["State"] == "running" and t["DesiredState"] == "running"]
    return sorted(task["NodeID"] for task in live)


def running(daemon: Daemon) -> int:
    return len(json.loads(daemon.http("GET", "/containers/json").body))


def test_tasks_of_a_manager_that_dies_run_on_the_other_and_end_first_when_it_returns(daemons: list[Daemon]) -> None:
    one, two = daemons
    init(one, 1)
    join(two, 2, one)
    try:
        gone, left = own(one), own(two)
        image = ("--stop-grace-period", "0s", "--network", "host", "--no-resolve-image", "busybox", "sleep", "600")
        one.docker("service", "create", "--detach", "--name", "web", "--replicas", "2", *image)
        until(lambda: homes(two) == sorted([gone, left]), "one on each")
        one.kill9()
        until(lambda: homes(two) == [left] * 2, "both on the one that is left")
        states = {node["ID"]: node["Status"]["State"] for node in json.loads(two.http("GET", "/nodes").body)}
        assert states == {gone: "down", left: "ready"}
        one.start()
        until(lambda: running(one) == 0, "its old task ends")
        assert homes(two) == [left] * 2 and running(two) == 2
        two.docker("service", "rm", "web")
        until(lambda: running(two) == 0, "nothing is left")
    finally:
        if one.process is None:
            one.start()
        for daemon in (two, one):
            daemon.docker("swarm", "leave", "--force", check=False)


def test_certificates_that_cannot_be_used_say_so_at_the_start(etcd: Etcd) -> None:
    options = [f"kv.{name}=/nonexistent" for name in ("cacertfile", "certfile", "keyfile")]
    daemon = Daemon("--cluster-store", etcd.address, *(word for o in options for word in ("--cluster-store-opt", o)))
    try:
        with pytest.raises(Exception, match=r"kv\.cacertfile"):
            daemon.start()
    finally:
        daemon.close()
