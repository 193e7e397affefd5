"""Services on networks: which names and ports lead where, and what somebody else has already."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.engine.model.network import Network
from husk.engine.networks import balancing as module
from husk.engine.networks.balancing import Balancing, ServiceAddresses, VirtualService
from husk.engine.networks.live import KIND, LiveNetwork, Roster
from husk.errors import DiskFault, SystemFault
from husk.network.balance import NOTHING, Balance, BalancedPort
from husk.network.ports import HostPorts, PortRequest, PortTaken, PortTarget, PublishedPort
from tests.support.full_store import FullStore


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


class FakeDriver:
    interface = "br-lan"

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.full: set[int] = set()

    def take_address(self, version: int) -> str:
        if version in self.full:
            raise SystemFault("no address is left")
        self.taken.append("10.0.0.100" if version == 4 else "fd00::100")
        return self.taken[-1]

    def free_address(self, address: str) -> None:
        self.taken.remove(address)


class Lan:
    def __init__(self, state: FullStore, dropped: list[tuple[str, str]]) -> None:
        self.state, self.dropped, self.driver = state, dropped, FakeDriver()
        self.network = Network(
            id="n", name="lan", driver="bridge", created="", subnet="10.0.0.0/24", subnet6="fd00::/64"
        )
        roster = Roster()
        self.live = roster.by_name["lan"] = LiveNetwork(self.network, cast(Any, self.driver))
        self.addresses = ServiceAddresses(roster, state, asyncio.Lock())

    @property
    def known(self) -> Sequence[str]:
        return self.live.record.service_addresses

    @property
    def recorded(self) -> Sequence[str]:
        return self.state.records(KIND, Network)["n"].service_addresses


@pytest.fixture
def lan(state: FullStore, monkeypatch: pytest.MonkeyPatch) -> Lan:
    dropped: list[tuple[str, str]] = []
    monkeypatch.setattr(module, "drop_address", lambda *given: dropped.append(given))
    return Lan(state, dropped)


async def test_addresses_of_services_are_kept_in_the_record_until_they_go_back(lan: Lan) -> None:
    assert await lan.addresses.take(lan.network) == ["10.0.0.100/24", "fd00::100/64"]
    assert lan.recorded == ["10.0.0.100", "fd00::100"]
    await lan.addresses.give_back(lan.network, "10.0.0.100")
    await lan.addresses.give_back(lan.network, "10.0.0.100")
    assert (lan.recorded, lan.driver.taken) == (["fd00::100"], ["fd00::100"])
    assert lan.dropped == [("br-lan", "10.0.0.100")]


async def test_of_two_kinds_the_one_that_was_there_goes_back(lan: Lan) -> None:
    lan.driver.full.add(6)
    with pytest.raises(SystemFault):
        await lan.addresses.take(lan.network)
    assert lan.driver.taken == [] and lan.known == []


async def test_what_the_store_does_not_take_is_nobodys(lan: Lan) -> None:
    await lan.addresses.take(lan.network)
    before, lan.state.full = lan.live.record, True
    lan.driver.taken.clear()
    with pytest.raises(DiskFault):
        await lan.addresses.take(lan.network)
    assert lan.live.record is before and lan.driver.taken == []
    lan.state.full = False
    assert lan.recorded == list(before.service_addresses)
