"""Virtual addresses and published ports whose tasks are on several hosts: the routing mesh."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from husk.network.balance import Balance, BalancedPort, Balancer, VirtualAddress
from tests.support.hosts import Host, Hosts
from tests.support.overlays import Connection, Endpoint, OverlayNetwork, echo

VIRTUAL = "10.0.9.100"
PORT, PUBLISHED = 7000, 8080


class Mesh(NamedTuple):
    hosts: Hosts
    net: OverlayNetwork
    # One task on each of the first two hosts, and a client on the network on each of the first three.
    tasks: list[Endpoint]
    clients: list[Endpoint]


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Mesh]:
    with Hosts(4) as hosts, ExitStack() as stack:
        net = OverlayNetwork(tmp_path, 4097)
        tasks = [net.endpoint(hosts[number], f"10.0.9.{10 + number}") for number in (0, 1)]
        clients = [net.endpoint(hosts[number], f"10.0.9.{20 + number}") for number in (0, 1, 2)]
        net.tell()
        for host in hosts[:3]:
            host.inside(partial(Balancer("husk-test-lb").change, balance(net, host, tasks)))
        for task in tasks:
            stack.enter_context(echo(task.inside, PORT, task.host.name))
        yield Mesh(hosts, net, tasks, clients)


def balance(net: OverlayNetwork, host: Host, tasks: list[Endpoint]) -> Balance:
    """Return the orders to a host: all tasks, and from where it speaks to those on other hosts."""
    targets = tuple(task.address for task in tasks)
    return Balance(
        (VirtualAddress(net.bridge, VIRTUAL, targets),),
        (BalancedPort("tcp", PUBLISHED, PORT, targets),),
        tuple((task.address, net.own(host)) for task in tasks if task.host is not host),
    )


def answers(where: Callable[..., object], address: str, port: int, times: int = 4) -> list[tuple[str, str]]:
    """(host of the task, address that the task saw) for each of some connections, in which bytes go both ways."""
    found = []
    for _ in range(times):
        with Connection(where, address, port) as connection:  # type: ignore[arg-type]
            assert connection.says(bytes(20_000))
            found.append((connection.word, connection.seen_at))
    return found


def test_a_virtual_address_leads_to_tasks_on_any_host_from_any_host(mesh: Mesh) -> None:
    for client in mesh.clients:
        words = Counter(word for word, _ in answers(client.inside, VIRTUAL, PORT))
        assert words == {"host1": 2, "host2": 2}, client.host.name


def test_a_published_port_of_any_host_leads_to_tasks_on_any_host(mesh: Mesh) -> None:
    outside = mesh.hosts[3]
    for host in mesh.hosts[:3]:
        found = answers(outside.inside, host.address, PUBLISHED)
        assert Counter(word for word, _ in found) == {"host1": 2, "host2": 2}, host.name
        for word, seen_at in found:
            # Who comes from outside is seen as itself by tasks on the host it came to.
            assert seen_at == (outside.address if word == host.name else mesh.net.own(host))


def test_a_host_itself_reaches_published_ports(mesh: Mesh) -> None:
    for host in mesh.hosts[:3]:
        for address in (host.address, "127.0.0.1"):
            assert len({word for word, _ in answers(host.inside, address, PUBLISHED)}) == 2


def test_a_task_reaches_itself_and_others_by_the_virtual_address(mesh: Mesh) -> None:
    for task in mesh.tasks:
        assert len({word for word, _ in answers(task.inside, VIRTUAL, PORT)}) == 2


def test_connections_survive_the_restart_of_a_daemon(mesh: Mesh) -> None:
    client, host = mesh.clients[2], mesh.hosts[2]
    with (
        Connection(client.inside, VIRTUAL, PORT, 20) as inner,
        Connection(mesh.hosts[3].inside, host.address, PUBLISHED, 20) as outer,
    ):
        mesh.net.open(host)
        host.inside(lambda: Balancer("husk-test-lb").change(balance(mesh.net, host, mesh.tasks)))
        assert inner.says(bytes(100_000)) and outer.says(bytes(100_000))
    assert len(answers(client.inside, VIRTUAL, PORT)) == 4
