"""A manager and its worker, each on a host of its own and without etcd: overlay networks, names, virtual addresses and
published ports over both, and what a worker may know of them."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Any

import pytest

from husk.errors import Conflict, Forbidden
from husk.kernel import namespaces
from husk.storage.secrets.sealing import Sealer
from husk.swarm.ca import authority
from husk.swarm.ca.identity import Identity, IdentityFiles
from husk.swarm.network.server import AddressKeys
from husk.swarm.network.share import AddressRequest
from husk.swarm.port.addresses import AddressCalls
from husk.swarm.port.assignment_messages import encoded
from husk.swarm.port.dispatch import DispatchCalls
from husk.swarm.port.managers import Managers
from husk.text.endpoints import HostPort
from tests.support.hosts import HostDaemon, Hosts
from tests.support.overlays import Connection, echo
from tests.support.reach import (
    SERVE,
    address,
    all_answer,
    fetched,
    overlays,
    published,
    reaches,
    resolved,
    sandbox,
    tasks,
)
from tests.support.waiting import until

QUICK = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s")


@pytest.fixture(scope="module")
def daemons() -> Iterator[list[HostDaemon]]:
    with Hosts(2) as hosts:
        manager, worker = (host.daemon() for host in hosts)
        manager.docker("swarm", "init", "--advertise-addr", hosts[0].address)
        # What is there before the first worker comes along.
        manager.docker("network", "create", "--driver", "overlay", "n")
        manager.docker("service", "create", "--name", "old", "--network", "n", *QUICK, "busybox", "sh", "-c", SERVE)
        until(lambda: len(tasks(manager, "old")) == 1, "a task on the manager")
        token = manager.docker("swarm", "join-token", "-q", "worker").stdout.strip()
        worker.docker("swarm", "join", "--token", token, hosts[0].address)
        yield [manager, worker]
        for daemon in (worker, manager):
            daemon.docker("swarm", "leave", "--force")
            assert daemon.close() == []


def test_a_service_over_both(daemons: list[HostDaemon]) -> None:
    manager, worker = daemons
    [old] = tasks(manager, "old")
    before = address(manager, old, "n")
    options = ("--replicas", "4", "--network", "n", "--publish", "8080:80")
    manager.docker("service", "create", "--name", "web", *QUICK, *options, "busybox", "sh", "-c", SERVE)
    until(lambda: [len(tasks(daemon, "web")) for daemon in daemons] == [2, 2], "two tasks on each host", 30)
    every = {task[:12] for daemon in daemons for task in tasks(daemon, "web")}
    places = {address(daemon, task, "n") for daemon in daemons for task in tasks(daemon, "web")}
    assert len(places) == 4 and before not in places
    assert (address(manager, old, "n"), tasks(manager, "old")) == (before, [old]), "it runs on, where it was"
    for daemon in daemons:
        asking = tasks(daemon, "web")[0]
        until(partial(lambda d, c: resolved(d, c, "tasks.web") == places, daemon, asking), "the tasks' addresses")
        for place in places:
            until(partial(lambda d, c, p: fetched(d, c, p) in every, daemon, asking, place), "an answer of each")
        (virtual,) = resolved(daemon, asking, "web")
        assert virtual not in places
        until(partial(all_answer, partial(fetched, daemon, asking, virtual), every), "all tasks behind the name")
        until(partial(lambda d, c: resolved(d, c, "tasks.old") == {before}, daemon, asking), "those from before")
        until(partial(all_answer, partial(published, daemon, 8080), every), "all tasks behind a port of each host")
        assert fetched(daemon, asking, before) == old[:12]
    told = json.loads(manager.http("GET", "/tasks").body)
    known = {place for task in told for on in task["NetworksAttachments"] or () for place in on["Addresses"]}
    assert {f"{place}/24" for place in places} <= known
    shown = json.loads(manager.docker("network", "inspect", "--verbose", "n").stdout)[0]
    assert sorted(peer["IP"] for peer in shown["Peers"]) == [daemon.where.address for daemon in daemons]
    manager.docker("service", "rm", "web")
    until(lambda: overlays(worker) == 0, "nothing of networks on a worker that needs none")
    # Its gateway and both ends, the task from before, its virtual address, and the manager's own.
    until(lambda: in_use(manager, "n") == 6, "all else is given back")


def in_use(daemon: HostDaemon, network: str) -> int:
    shown = daemon.http("GET", f"/v1.52/networks/{network}").json()
    (subnet,) = shown["Status"]["IPAM"]["Subnets"].values()
    return int(subnet["IPsInUse"])


def test_a_worker_learns_nothing_of_networks_that_are_not_its_own(daemons: list[HostDaemon]) -> None:
    manager, worker = daemons
    here, there = (json.loads(daemon.http("GET", "/info").body)["Swarm"]["NodeID"] for daemon in daemons)
    private = manager.docker("network", "create", "--driver", "overlay", "--label", "hidden", "private").stdout.strip()
    for name, network, node in (("inner", "private", here), ("outer", "n", there)):
        options = ("--network", network, "--constraint", f"node.id=={node}")
        manager.docker("service", "create", "--name", name, *QUICK, *options, "busybox", "sleep", "600")
    [inner] = until(lambda: tasks(manager, "inner"), "a task on the manager")
    [outer] = until(lambda: tasks(worker, "outer"), "a task on the worker")
    hidden = address(manager, inner, "private")
    # The worker's certificate in other hands: whatever it asks for, it gets its own share.
    told, refused = worker.where.inside(lambda: asyncio.run(curious(daemons, private, inner)))
    assert address(worker, outer, "n").encode() in told and b'"outer"' in told
    for word in (private, hidden, "inner", "hidden", inner):
        assert word.encode() not in told, word
    assert refused == ["host", "task", "give back"]
    names = worker.docker("network", "ls", "--filter", "driver=overlay", "--format", "{{.Name}}").stdout.split()
    assert "private" not in names and "n" in names
    assert resolved(worker, outer, "inner") == set() and fetched(worker, outer, hidden) == ""
    manager.docker("service", "rm", "inner", "outer")
    manager.docker("network", "rm", "private")
    until(lambda: in_use(manager, "n") == 6, "all else is given back")


async def curious(daemons: list[HostDaemon], network: str, container: str) -> tuple[bytes, list[str]]:
    """All that a manager says to whoever has the worker's certificate, and what it does not do for it."""
    manager, worker = daemons
    managers = Managers([HostPort(manager.where.address, 2377)], identity_of(worker))
    task = manager.http("GET", f"/containers/{container}/json").json()["Config"]["Labels"]["com.docker.swarm.task.id"]
    used = address(manager, container, "private")
    told, refused = b"", []
    try:
        # The worker itself asks again soon, and has it alone.
        with contextlib.suppress(TimeoutError, Conflict):
            async with asyncio.timeout(2), aclosing(DispatchCalls(managers).assignments()) as news:
                async for message in news:
                    told += message
        calls = AddressCalls(managers)
        for what, call in (
            ("host", calls.take(encoded(AddressRequest(network=network, host=True)))),
            ("task", calls.take(encoded(AddressRequest(network=network, task=task)))),
            ("give back", calls.give_back(encoded(AddressKeys(keys=[f"{network}/{used}"])))),
        ):
            try:
                await call
            except Forbidden:
                refused.append(what)
    finally:
        await managers.close()
    return told, refused


def identity_of(worker: HostDaemon) -> Identity:
    root = worker.config.data_root
    sealer, context = Sealer(root / "swarm.key"), "the key of the node's certificate"
    files = IdentityFiles(
        root / "swarm.node", lambda key: key, lambda sealed: sealer.unseal(sealed, context), authority.fits
    )
    identity = files.load()
    assert identity is not None
    return identity


def test_plain_containers_on_a_worker(daemons: list[HostDaemon]) -> None:
    manager, worker = daemons
    manager.docker("network", "create", "--driver", "overlay", "--attachable", "open")
    manager.docker("run", "-d", "--name", "here", "--network", "open", "busybox", "sh", "-c", SERVE)
    worker.docker("run", "-d", "--name", "there", "--network", "open", "busybox", "sh", "-c", SERVE)
    for daemon, own, other, far in ((worker, "there", "here", manager), (manager, "here", "there", worker)):
        place = address(far, other, "open")
        until(partial(lambda d, o, t, p: resolved(d, o, t) == {p}, daemon, own, other, place), "its name")
        until(partial(lambda d, o, t: fetched(d, o, t) != "", daemon, own, other), "an answer")
    worker.docker("run", "-d", "--name", "later", "busybox", "sleep", "600")
    worker.docker("network", "connect", "open", "later")
    assert fetched(worker, "later", "here") != ""
    refused = worker.docker("run", "-d", "--rm", "--network", "n", "busybox", "sleep", "1", check=False)
    assert "not manually attachable" in refused.stderr
    refused = worker.docker("run", "-d", "--rm", "--network", "nothing", "busybox", "sleep", "1", check=False)
    assert "network nothing not found" in refused.stderr
    worker.docker("rm", "-f", "there", "later")
    manager.docker("rm", "-f", "here")
    until(lambda: overlays(worker) == 0, "nothing of networks on a worker that needs none")
    manager.docker("network", "rm", "open")


@pytest.fixture
def connected(daemons: list[HostDaemon]) -> Iterator[tuple[list[Connection], list[tuple[Any, str, int]]]]:
    """Connections from the manager to a task on the worker, by all ways that there are, and those ways."""
    manager, worker = daemons
    here, there = (json.loads(daemon.http("GET", "/info").body)["Swarm"]["NodeID"] for daemon in daemons)
    for name, node, more in (("near", here, ()), ("far", there, ("--publish", "8081:80"))):
        options = ("--network", "n", "--constraint", f"node.id=={node}", *more)
        manager.docker("service", "create", "--name", name, *QUICK, *options, "busybox", "sleep", "600")
    [near] = until(lambda: tasks(manager, "near"), "a task on the manager")
    [far] = until(lambda: tasks(worker, "far"), "a task on the worker")
    [virtual] = until(lambda: resolved(manager, near, "far"), "the name of the other service")
    with ExitStack() as stack:
        server, client = (partial(namespaces.run_inside, sandbox(d, c)) for d, c in ((worker, far), (manager, near)))
        stack.enter_context(echo(server, 80, "far"))
        until(lambda: reaches(client, virtual, 80, "far"), "an answer behind the virtual address")
        ways: list[tuple[Any, str, int]] = [(client, virtual, 80), (client, address(worker, far, "n"), 80)]
        for daemon in daemons:
            until(partial(reaches, daemon.where.inside, daemon.where.address, 8081, "far"), "an answer behind the port")
            ways.append((daemon.where.inside, daemon.where.address, 8081))
        yield [stack.enter_context(Connection(*way)) for way in ways], ways
        assert (tasks(manager, "near"), tasks(worker, "far")) == ([near], [far])
    manager.docker("service", "rm", "near", "far")
    until(lambda: in_use(manager, "n") == 6, "all else is given back")


Connected = tuple[list[Connection], list[tuple[Any, str, int]]]


def test_connections_outlive_daemons(daemons: list[HostDaemon], connected: Connected) -> None:
    worker = daemons[1]
    connections, ways = connected
    worker.restart()
    assert all(connection.says(b"a" * 100_000) for connection in connections)
    for daemon in daemons:
        daemon.kill9()
    assert all(connection.says(b"b" * 100_000) for connection in connections)
    for daemon in daemons:
        daemon.start()
    until(lambda: not swarm_of(worker)["Error"], "the worker is heard")
    assert all(connection.says(b"c" * 100_000) for connection in connections)
    for way in ways:
        until(partial(reaches, *way, "far"), "new connections on each way")


def swarm_of(daemon: HostDaemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.http("GET", "/info").json()["Swarm"]
    return found


def test_connections_outlive_another_role(daemons: list[HostDaemon], connected: Connected) -> None:
    manager, worker = daemons
    connections, ways = connected
    node = swarm_of(worker)["NodeID"]
    for verb, manages in (("promote", True), ("demote", False)):
        manager.docker("node", verb, node)
        until(partial(lambda wanted: is_settled(worker, wanted), manages), verb)
        if not manages:
            known = [{"NodeID": swarm_of(manager)["NodeID"], "Addr": f"{manager.where.address}:2377"}]
            until(partial(lambda wanted: swarm_of(worker)["RemoteManagers"] == wanted, known), "whom it asks")
        assert all(connection.says(b"a" * 100_000) for connection in connections)
        options = ("--network", "n", "--constraint", f"node.id=={node}")
        says = ("busybox", "sh", "-c", f"echo {verb}d; exec sleep 600")
        manager.docker("service", "create", "--name", verb, *QUICK, *options, *says)
        # Managers ask one another, too.
        until(partial(lambda v: manager.docker("service", "logs", "--raw", v).stdout == f"{v}d\n", verb), "its log")
        for way in ways:
            until(partial(reaches, *way, "far"), f"new connections on each way after {verb}")
        assert all(connection.says(b"b" * 100_000) for connection in connections)
        manager.docker("service", "rm", verb)


def is_settled(daemon: HostDaemon, manages: bool) -> bool:
    told = swarm_of(daemon)
    return told["ControlAvailable"] == manages and not told["Error"]
