"""Addresses of services on the networks of one host, on a double of the driver."""

import asyncio
from typing import Any, cast

import pytest

from husk.engine.model.network import Network
from husk.engine.networks import service_addresses as module
from husk.engine.networks.live import KIND, LiveNetwork, Roster
from husk.engine.networks.service_addresses import ServiceAddresses
from husk.errors import SystemFault
from husk.storage.state.store import StateStore


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
    def __init__(self, state: StateStore, dropped: list[tuple[str, str]]) -> None:
        self.state, self.dropped, self.driver = state, dropped, FakeDriver()
        self.network = Network(
            id="n", name="lan", driver="bridge", created="", subnet="10.0.0.0/24", subnet6="fd00::/64"
        )
        roster = Roster()
        roster.by_name["lan"] = LiveNetwork(self.network, cast(Any, self.driver))
        self.addresses = ServiceAddresses(roster, state, asyncio.Lock())

    @property
    def recorded(self) -> list[str]:
        return self.state.records(KIND, Network)["n"].service_addresses


@pytest.fixture
def lan(state: StateStore, monkeypatch: pytest.MonkeyPatch) -> Lan:
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


async def test_of_two_kinds_the_one_that_was_there_is_not_lost(lan: Lan) -> None:
    lan.driver.full.add(6)
    with pytest.raises(SystemFault):
        await lan.addresses.take(lan.network)
    assert lan.network.service_addresses == ["10.0.0.100"], "whoever settles the services gives it back"
