"""Daemons on hosts of their own that share an etcd: networks that are everywhere, addresses that nobody has twice,
names, virtual addresses and published ports that lead to tasks on any host."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from husk.kernel import namespaces
from husk.swarm.state.etcd.store import EtcdStore
from tests.support.etcd import Etcd
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


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(2) as made:
        yield made


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory, hosts: Hosts) -> Iterator[list[HostDaemon]]:
    with ExitStack() as stack:
        etcd = stack.enter_context(Etcd(tmp_path_factory.mktemp("etcd"), on=[hosts[0]]))
        made = [host.daemon("--cluster-store", etcd.address) for host in hosts]
        made[0].docker("swarm", "init", "--advertise-addr", hosts[0].address)
        token = made[0].docker("swarm", "join-token", "-q", "manager").stdout.strip()
        made[1].docker("swarm", "join", "--advertise-addr", hosts[1].address, "--token", token, hosts[0].address)
        yield made
        for daemon in reversed(made):
            daemon.docker("swarm", "leave", "--force")
            assert daemon.close() == []


def networks(daemon: HostDaemon) -> list[str]:
    return daemon.docker("network", "ls", "--filter", "driver=overlay", "--format", "{{.Name}}").stdout.split()


def addresses(daemons: list[HostDaemon]) -> list[str]:
    """All records of addresses in the store."""
    host = daemons[0].where

    async def ask() -> list[str]:
        store = EtcdStore.open(f"etcd://{host.address}", None)
        try:
            return [record.key for record in (await store.listing("address")).records]
        finally:
            await store.close()

    return host.inside(lambda: asyncio.run(ask()))


def test_a_service_over_two_hosts(daemons: list[HostDaemon]) -> None:
    first, second = daemons
    first.docker("network", "create", "--driver", "overlay", "--attachable", "n")
    until(lambda: sorted(networks(second)) == ["ingress", "n"], "the network on the other host")
    refused = second.docker("network", "create", "--driver", "overlay", "n", check=False)
    assert "network with name n already exists" in refused.stderr
    assert [overlays(daemon) for daemon in daemons] == [0, 0]
    options = ("--detach", "--stop-grace-period", "0s", "--replicas", "4", "--network", "n", "--publish", "8080:80")
    first.docker("service", "create", "--name", "web", *options, "busybox", "sh", "-c", SERVE)
    until(lambda: [len(tasks(daemon, "web")) for daemon in daemons] == [2, 2], "two tasks on each host", 30)
    every = {task[:12] for daemon in daemons for task in tasks(daemon, "web")}
    places = {address(daemon, task, "n") for daemon in daemons for task in tasks(daemon, "web")}
    assert len(places) == 4
    told = json.loads(first.http("GET", "/tasks").body)
    known = {place for task in told for on in task["NetworksAttachments"] or () for place in on["Addresses"]}
    assert {f"{place}/24" for place in places} <= known
    shown = json.loads(first.docker("network", "inspect", "--verbose", "n").stdout)[0]
    assert sorted(peer["IP"] for peer in shown["Peers"]) == [daemon.where.address for daemon in daemons]
    at = {task["EndpointIP"]: task["Info"]["Host IP"] for task in shown["Services"]["web"]["Tasks"]}
    assert at == {address(d, task, "n"): d.where.address for d in daemons for task in tasks(d, "web")}

    # By name, one by one and by the virtual address, from tasks and from a plain container.
    second.docker("run", "-d", "--name", "plain", "--network", "n", "busybox", "sleep", "600")
    asking = [(first, tasks(first, "web")[0]), (second, tasks(second, "web")[0]), (second, "plain")]
    for daemon, container in asking:
        until(partial(lambda d, c: resolved(d, c, "tasks.web") == places, daemon, container), "the tasks' addresses")
        for place in places:
            assert fetched(daemon, container, place) in every
        (virtual,) = resolved(daemon, container, "web")
        assert virtual not in places
        until(partial(all_answer, partial(fetched, daemon, container, virtual), every), "all tasks behind the name")
    plain = address(second, "plain", "n")
    until(
        lambda: resolved(first, tasks(first, "web")[0], "plain") == {plain}, "the name of a container on the other host"
    )
    for daemon in daemons:
        until(partial(all_answer, partial(published, daemon, 8080), every), "all tasks behind a port of each host")

    # Without one of the daemons all of that goes on, and the next one changes nothing.
    second.kill9()
    for ask in (
        partial(fetched, first, tasks(first, "web")[0], virtual),
        *(partial(published, d, 8080) for d in daemons),
    ):
        assert all_answer(ask, every)
    second.start()
    until(partial(all_answer, partial(fetched, second, "plain", virtual), every), "all tasks again")
    assert {address(daemon, task, "n") for daemon in daemons for task in tasks(daemon, "web")} == places

    # A network is here while somebody needs it; what it had is given back.
    first.docker("service", "rm", "web")
    until(lambda: [overlays(daemon) for daemon in daemons] == [0, 1], "the networks gone where nobody is")
    refused = first.docker("network", "rm", "n", check=False)
    assert "has active endpoints" in refused.stderr
    second.docker("rm", "-f", "plain")
    until(lambda: [overlays(daemon) for daemon in daemons] == [0, 0], "the networks gone everywhere")
    until(lambda: addresses(daemons) == [], "all addresses given back")
    second.docker("network", "rm", "n")
    until(lambda: networks(first) == ["ingress"], "the removal on the other host")


def test_connections_over_hosts_outlive_daemons_and_what_a_killed_one_held_is_given_back(
    daemons: list[HostDaemon],
) -> None:
    first, second = daemons
    first.docker("network", "create", "--driver", "overlay", "--attachable", "--ipv6", "m")
    until(lambda: "m" in networks(second), "the network on the other host")
    here = json.loads(first.http("GET", "/info").body)["Swarm"]["NodeID"]
    options = ("--detach", "--stop-grace-period", "0s", "--network", "m", "--constraint", f"node.id=={here}")
    first.docker("service", "create", "--name", "web", *options, "busybox", "sleep", "600")
    for name in ("stays", "ends"):
        second.docker("run", "-d", "--name", name, "--network", "m", "busybox", "sleep", "600")
    (task,) = until(lambda: tasks(first, "web"), "the task")
    virtual = until(lambda: resolved(second, "stays", "web"), "the service's name")
    assert sorted(":" in one for one in virtual) == [False, True]
    with ExitStack() as stack:
        server, client = (partial(namespaces.run_inside, sandbox(d, c)) for d, c in ((first, task), (second, "stays")))
        stack.enter_context(echo(server, 80, "web"))
        four = next(one for one in virtual if ":" not in one)
        until(lambda: reaches(client, four, 80, "web"), "an answer behind the virtual address")
        connections = [stack.enter_context(Connection(client, one, 80)) for one in (four, address(first, task, "m"))]
        ending = json.loads(second.docker("inspect", "ends").stdout)[0]
        for daemon in daemons:
            daemon.kill9()
        os.kill(ending["State"]["Pid"], signal.SIGKILL)
        assert all(connection.says(b"a" * 100_000) for connection in connections)
        for daemon in daemons:
            daemon.start()
        gone = ending["NetworkSettings"]["Networks"]["m"]["IPAddress"]
        until(lambda: not any(key.endswith(f"/{gone}") for key in addresses(daemons)), "the address given back", 30)
        assert all(connection.says(b"b" * 100_000) for connection in connections)
        until(lambda: reaches(client, four, 80, "web"), "new connections")
    first.docker("service", "rm", "web")
    second.docker("rm", "-f", "stays", "ends")
    # At once, as `docker stack rm` does it: who is about to leave is waited for.
    second.docker("network", "rm", "m")
    until(lambda: addresses(daemons) == [], "all addresses given back")


def test_managers_share_an_encrypted_network(daemons: list[HostDaemon], hosts: Hosts) -> None:
    first, second = daemons
    first.docker("network", "create", "--driver", "overlay", "--opt", "encrypted", "--attachable", "--ipv6", "secret")
    until(lambda: "secret" in networks(second), "the network on the other host")
    for daemon, name in ((first, "one"), (second, "two")):
        daemon.docker("run", "-d", "--name", name, "--network", "secret", "busybox", "sh", "-c", SERVE)
    found = json.loads(first.docker("inspect", "one").stdout)[0]["NetworkSettings"]["Networks"]["secret"]
    server, client = (partial(namespaces.run_inside, sandbox(d, c)) for d, c in ((first, "one"), (second, "two")))
    with ExitStack() as stack:
        stack.enter_context(echo(server, 81, "word"))
        until(lambda: reaches(client, found["IPAddress"], 81, "word"), "an answer")
        ping = ("exec", "two", "ping", "-c", "1", "-W", "1", found["GlobalIPv6Address"])
        until(lambda: second.docker(*ping, check=False).returncode == 0, "an answer over IPv6", 20)
        connection = stack.enter_context(Connection(client, found["IPAddress"], 81))
        with hosts.listening() as frames:
            assert connection.says(b"nobody may read this" * 1000)
        assert frames and not any(b"nobody may read this" in frame for frame in frames)
        for daemon in daemons:
            daemon.kill9()
            daemon.start()
        assert connection.says(b"and go on")
    until(lambda: resolved(second, "two", "one") >= {found["IPAddress"]}, "its name")
    for daemon, name in ((first, "one"), (second, "two")):
        daemon.docker("rm", "-f", name)
    until(lambda: all(not any(link.startswith("wg-") for link in host.links()) for host in hosts), "no tunnel any more")
    until(lambda: addresses(daemons) == [], "all addresses given back")
    first.docker("network", "rm", "secret")
