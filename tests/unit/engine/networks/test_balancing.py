"""Services on networks: which names and ports lead where, and what somebody else has already."""

from collections.abc import Sequence
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.engine.model.network import Network
from husk.engine.networks.balancing import Balancing, VirtualService
from husk.engine.networks.live import LiveNetwork, Roster
from husk.network.balance import NOTHING, Balance, BalancedPort
from husk.network.ports import HostPorts, PortRequest, PortTaken, PortTarget, PublishedPort


class FakePorts:
    def __init__(self) -> None:
        self.held: list[PublishedPort] = []
        self.others: set[int] = set()

    def take(self, requests: Sequence[PortRequest], target: PortTarget) -> list[PublishedPort]:
        [request] = requests
        if request.first in self.others:
            raise PortTaken(f"port {request.first} is already allocated")
        made = PublishedPort(request.protocol, "0.0.0.0", request.first, "", request.container_port)
        self.held.append(made)
        return [made]

    def give_back(self, ports: Sequence[PublishedPort]) -> None:
        for port in ports:
            self.held.remove(port)


class House:
    def __init__(self) -> None:
        self.roster, self.ports = Roster(), FakePorts()
        for name in ("lan", "host"):
            record = Network(id=f"id-{name}", name=name, driver="bridge", created="")
            driver = cast(Any, SimpleNamespace(interface=f"br-{name}")) if name == "lan" else None
            self.roster.by_name[name] = LiveNetwork(record, driver)
        self.written: list[Balance] = []
        self.balancing = Balancing(self.roster, cast(HostPorts, self.ports), "table")
        self.balancing.balancer = cast(Any, SimpleNamespace(change=self.written.append))


@pytest.fixture
def house() -> House:
    return House()


def web(number: int = 8080, *targets: str) -> BalancedPort:
    return BalancedPort("tcp", number, 80, targets)


async def test_a_name_stands_for_the_virtual_address(house: House) -> None:
    service = VirtualService(("Web", "www"), "id-lan", "10.0.0.9", ("10.0.0.2",))
    gone = VirtualService(("other",), "id-nowhere", "10.9.0.9", ())
    unbridged = VirtualService(("third",), "id-host", "10.8.0.9", ())
    assert await house.balancing.apply([service, gone, unbridged], [])
    lan = house.roster.by_name["lan"]
    assert lan.services == {"web": [ip_address("10.0.0.9")], "www": [ip_address("10.0.0.9")]}
    [virtual] = house.written[-1].addresses
    assert (virtual.interface, virtual.address, virtual.targets) == ("br-lan", "10.0.0.9", ("10.0.0.2",))
    assert await house.balancing.apply([], [])
    assert lan.services == {} and house.written[-1] == NOTHING


async def test_whether_ports_lead_to_other_hosts(house: House) -> None:
    here, there = "10.0.0.2", "10.0.0.3"
    for ports, sources, leads in (
        ([web(8080, here, there)], [(there, "10.0.0.9")], True),
        ([web(8080, here)], [(there, "10.0.0.9")], False),
        ([web(8080, here)], [], False),
        ([], [(there, "10.0.0.9")], False),
    ):
        await house.balancing.apply([], ports, sources)
        assert house.balancing.leads_elsewhere == leads


async def test_a_port_is_held_while_a_service_has_it(house: House) -> None:
    assert await house.balancing.apply([], [web(8080, "10.0.0.2"), web(9090)])
    assert await house.balancing.apply([], [web(8080, "10.0.0.3")])
    assert [port.host_port for port in house.ports.held] == [8080]
    assert house.written[-1].ports == (web(8080, "10.0.0.3"),)
    await house.balancing.apply([], [])
    assert house.ports.held == []


async def test_a_port_of_somebody_else_is_told_once_and_taken_when_it_is_free(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.ports.others.add(8080)
    for _ in range(3):
        assert not await house.balancing.apply([], [web(8080), web(9090)])
    assert house.written[-1].ports == (web(9090),)
    assert caplog.text.count("port 8080 of a service") == 1
    house.ports.others.clear()
    assert await house.balancing.apply([], [web(8080), web(9090)])
    house.ports.others.add(7070)
    assert not await house.balancing.apply([], [web(7070)])
    assert await house.balancing.apply([], []), "who does not want it any more does not wait for it"


async def test_nothing_stays(house: House) -> None:
    await house.balancing.apply([], [web()])
    await house.balancing.remove()
    assert house.written[-1] == NOTHING
