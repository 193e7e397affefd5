"""Addresses of services on the networks of one host, on a double of the driver."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from husk.engine.model.network import Network
from husk.engine.networks import service_addresses as module
from husk.engine.networks.live import KIND, LiveNetwork, Roster
from husk.engine.networks.service_addresses import ServiceAddresses
from husk.errors import DiskFault, SystemFault
from tests.support.full_store import FullStore


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
