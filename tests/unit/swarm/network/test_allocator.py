"""Networks and addresses that hosts share: two managers on one store never have the same address."""

import asyncio
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from husk.engine.model.network import Network
from husk.engine.networks.sharing import Occupant
from husk.errors import Conflict, Forbidden, HuskError, InvalidParameter, NotFound, Unavailable
from husk.network.endpoint import EndpointOptions
from husk.storage.state.store import StateStore
from husk.swarm.model.services import NetworkAttachment, Service, ServiceSpec
from husk.swarm.network.allocator import OverlayAllocator, world_of
from husk.swarm.network.local_node import LocalNode
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Delete, Listing, News, Put
from tests.support.but import but
from tests.support.overlay_places import every_place
from tests.support.tapped_store import TappedStore
from tests.support.waiting import soon

WEB = Occupant("endpoint", ("web",), "c", "t")


def lan(subnet: str = "10.0.9.0/29", **fields: str) -> Network:
    return Network(id="lan-id", name="lan", driver="overlay", created="", scope="swarm", vni=4097, subnet=subnet,
                   gateway="10.0.9.1", **fields)  # type: ignore[arg-type]  # fmt: skip


class Manager:
    """One of several on a store; it hears of the others when it is told to."""

    def __init__(self, store: TappedStore, node: str) -> None:
        self.store = store
        self.woken = 0
        cluster = cast(LocalNode, SimpleNamespace(node_id=node, active=True))
        self.records = SwarmRecords(store)
        self.records.shared = True
        self.networks = OverlayAllocator(self.records, cluster, self._wake, pause=0.001)

    def _wake(self) -> None:
        self.woken += 1

    async def hear(self) -> bool:
        listings = [await self.store.listing(kind) for kind in ("overlay", "address", "guard", "service")]
        records = tuple(record for listing in listings for record in listing.records)
        news = News(max(listing.revision for listing in listings), True, records)
        self.records.take_in(news)
        return self.networks.take_in(news)

    @property
    def addresses(self) -> set[str]:
        return {place.address for place in every_place(self.networks)}


@pytest.fixture
def managers(state: StateStore) -> tuple[Manager, Manager]:
    store = TappedStore(SqliteStore(state))
    return Manager(store, "one"), Manager(store, "two")


async def test_nobody_gets_an_address_twice(managers: tuple[Manager, Manager]) -> None:
    one, two = managers
    network = lan()
    await one.networks.add(network)
    assert await two.hear() and two.networks.networks["lan-id"].subnet == "10.0.9.0/29"
    # Five addresses are left besides the gateway's; neither hears of the other.
    taken = await asyncio.gather(*(m.networks.take(network, WEB) for m in (one, two, one, two, one)))
    found = [place.address for places in taken for place in places]
    assert sorted(found) == [f"10.0.9.{n}" for n in range(2, 7)]
    await one.hear()
    with pytest.raises(Unavailable, match="no available IPv4 addresses"):
        await one.networks.take(network, WEB)
    assert taken[0][0].mac == "02:42:0a:00:09:" + f"{int(taken[0][0].address.rpartition('.')[2]):02x}"
    await two.hear()
    assert one.addresses == two.addresses == set(found)
    assert not await two.hear()
    # All of eight: the gateway, both ends, and these.
    assert one.networks.usage(network) == {"10.0.9.0/29": (8, 0)}


async def test_an_address_that_was_asked_for(managers: tuple[Manager, Manager]) -> None:
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    options = EndpointOptions(address="10.0.9.5", mac="AA-BB-CC-00-11-22")
    async with one.networks.claimed(lan(), options, WEB) as claimed:
        assert claimed.address == "10.0.9.5" and one.networks.underway == {"lan-id/10.0.9.5"}
    assert not one.networks.underway and one.woken == 1
    (place,) = one.networks.of(lan())
    assert (place.mac, place.names, place.container, place.task) == ("aa:bb:cc:00:11:22", ("web",), "c", "t")
    for manager in managers:
        with pytest.raises(Forbidden, match="Address already in use"):
            await manager.networks.take(lan(), WEB, EndpointOptions(address="10.0.9.5"))
    with pytest.raises(Forbidden):
        await one.networks.take(lan(), WEB, EndpointOptions(address="10.0.9.1"))


@pytest.mark.parametrize("address", ["10.0.9.0", "10.0.9.7"])
async def test_the_networks_own_address_and_the_one_of_all_are_nobodys(
    managers: tuple[Manager, Manager], address: str
) -> None:
    one, _ = managers
    await one.networks.add(lan())
    with pytest.raises(InvalidParameter, match=f"no configured subnet contains IP address {address}"):
        await one.networks.take(lan(), WEB, EndpointOptions(address=address))
    assert not one.addresses and not one.networks.underway


async def test_two_managers_give_no_mac_out_twice(managers: tuple[Manager, Manager]) -> None:
    """Neither has heard of what the other gives to a node of its own."""
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    options = EndpointOptions(mac="02:00:00:00:00:05")
    first, second = (soon(manager.networks.take(lan(), WEB, options)) for manager in managers)
    (place,) = await first
    assert not second.done(), "it waits for what it has not heard of"
    await two.hear()
    with pytest.raises(Forbidden, match=f"in use on network lan: {place.address} has it"):
        await second
    assert not two.networks.underway
    await two.networks.take(lan(), WEB, EndpointOptions(mac="02:00:00:00:00:06"))
    await one.networks.give_back([place])
    await two.hear()
    await two.networks.take(lan(), WEB, options)


async def test_an_address_that_a_newer_release_has_taken_in_words_of_its_own_is_taken(
    managers: tuple[Manager, Manager], caplog: pytest.LogCaptureFixture
) -> None:
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    (place,) = await one.networks.take(lan(), WEB)
    newer = msgspec.json.encode(place).replace(b'"endpoint"', b'"tunnel"')
    one.networks.underway.clear()
    await one.networks.give_back([place])
    await one.store.commit(Put("address", place.key, newer))
    # One hears of it when it tries to take it, the other before.
    await two.hear()
    for manager in managers:
        assert (await manager.networks.take(lan(), WEB))[0].address != place.address
        with pytest.raises(Forbidden, match="Address already in use"):
            await manager.networks.take(lan(), WEB, EndpointOptions(address=place.address))
        manager.networks.underway.clear()
        await manager.networks.give_back(list(manager.networks.of(lan())))
        await manager.hear()
        with pytest.raises(Forbidden, match="has active endpoints"):
            await manager.networks.removing(lan())
    assert len([told for told in caplog.messages if "cannot be read" in told]) == 2, "once by each"
    await one.store.commit(Delete("address", place.key))
    for manager in managers:
        await manager.hear()
        taken = await manager.networks.take(lan(), WEB, EndpointOptions(address=place.address))
        manager.networks.underway.clear()
        await manager.networks.give_back(taken)
    await one.networks.removing(lan())


async def test_both_versions_of_ip_come_together(managers: tuple[Manager, Manager]) -> None:
    one, _ = managers
    network = lan(subnet6="fd00:9::/64", gateway6="fd00:9::1", ip_range="10.0.9.4/31", ip_range6="fd00:9::8/125")
    await one.networks.add(network)
    four, six = await one.networks.take(network, WEB)
    assert four.address in ("10.0.9.4", "10.0.9.5") and six.address.startswith("fd00:9::")
    (only,) = await one.networks.take(network, WEB, EndpointOptions(ipv6=False))
    assert ":" not in only.address


async def test_what_is_given_back_is_free_for_all(managers: tuple[Manager, Manager]) -> None:
    one, two = managers
    await one.networks.add(lan())
    (place,) = await one.networks.take(lan(), WEB)
    await two.hear()
    assert [(network.name, address) for network, address in two.networks.of_task("t")] == [
        ("lan", f"{place.address}/29")
    ]
    await one.networks.give_back([place])
    await one.networks.give_back([place])
    assert not one.networks.of_task("t") and not one.networks.tasks and not one.networks.places_of_task("t")
    assert one.addresses == set() and await two.hear() and two.addresses == set()
    # One that has changed hands meanwhile stays.
    (again,) = await two.networks.take(lan(), WEB, EndpointOptions(address=place.address))
    await one.networks.give_back([place])
    await two.hear()
    assert two.addresses == {again.address} == one.addresses


async def test_a_network_that_a_service_of_another_manager_comes_to_stays(managers: tuple[Manager, Manager]) -> None:
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    await two.networks.take(lan(), Occupant("service"))
    await one.hear()
    wanted = ServiceSpec(name="web", networks=[NetworkAttachment(target="lan-id")])
    service = Service(id="s", version=0, created_at="", updated_at="", spec=wanted)
    await two.records.save(service, alone="service")
    removing = asyncio.gather(one.networks.removing(lan()), return_exceptions=True)
    await asyncio.sleep(0)
    await one.hear()
    (refused,) = await removing
    assert isinstance(refused, Conflict) and "in use by service s" in refused.message
    assert one.networks.networks and one.addresses == two.addresses != set()


async def test_a_network_ends_for_all_when_nobody_is_on_it(managers: tuple[Manager, Manager]) -> None:
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    (place,) = await two.networks.take(lan(), WEB)
    await two.networks.take(lan(), Occupant("host"))
    await one.hear()
    with pytest.raises(Forbidden, match="has active endpoints"):
        await one.networks.removing(lan())
    await two.networks.give_back([place])
    await one.hear()
    await one.networks.removing(lan())
    assert not one.networks.networks and not one.addresses
    with pytest.raises(NotFound):
        await two.networks.take(lan(), WEB)
    await two.hear()
    assert not two.networks.networks and not two.networks.places


async def test_a_network_that_somebody_has_just_come_to_stays_though_nothing_was_heard_of_that(
    managers: tuple[Manager, Manager],
) -> None:
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    (place,) = await two.networks.take(lan(), WEB)
    with pytest.raises(Forbidden, match=r'active endpoints \(name:"web"\)'):
        await one.networks.removing(lan())
    assert one.networks.networks and one.addresses == {place.address}
    assert (await one.store.listing("overlay-closing")).records == (), "others may come again"


async def test_while_a_network_is_removed_nobody_comes_to_it(managers: tuple[Manager, Manager]) -> None:
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    listing, tried = one.store.on_listing, list[str]()

    async def listed(kind: str) -> Listing:
        if kind == "address" and not tried:
            with pytest.raises(Conflict, match="is being removed by another manager"):
                await two.networks.take(lan(), WEB)
            with pytest.raises(Conflict, match="is being removed by another manager"):
                await two.networks.removing(lan())
            tried.append("take")
        return await listing(kind)

    one.store.on_listing = listed
    await one.networks.removing(lan())
    assert tried == ["take"] and not one.networks.networks
    with pytest.raises(NotFound):
        await two.networks.take(lan(), WEB)
    assert (await one.store.listing("overlay-closing")).records == (), "it ends with that"


async def test_a_manager_that_was_away_too_long_amid_a_removal_removes_nothing(
    managers: tuple[Manager, Manager],
) -> None:
    """Its lease has ended, and somebody has come since."""
    one, two = managers
    await one.networks.add(lan())
    await two.hear()
    listing = one.store.on_listing

    async def listed(kind: str) -> Listing:
        found = await listing(kind)
        if kind == "address" and not two.addresses:
            await one.store.commit(Delete("overlay-closing", "lan-id"))
            await two.networks.take(lan(), WEB)
        return found

    one.store.on_listing = listed
    with pytest.raises(Conflict, match="overlay-closing lan-id"):
        await one.networks.removing(lan())
    assert (await listing("overlay")).records and (await listing("address")).records


async def test_a_network_of_one_manager_stays_while_somebody_is_about_to_come(
    managers: tuple[Manager, Manager],
) -> None:
    one, _ = managers
    one.records.shared = False
    await one.networks.add(lan())
    taking = soon(one.networks.take(lan(), WEB))
    await asyncio.sleep(0)
    with pytest.raises(Forbidden, match="active endpoints"):
        await one.networks.removing(lan())
    await taking
    assert one.networks.networks


async def test_two_cannot_make_a_network_at_once(managers: tuple[Manager, Manager]) -> None:
    one, two = managers
    await one.networks.add(lan())
    other = but(lan(), id="other-id")
    with pytest.raises(HuskError, match="guard overlay"):
        await two.networks.add(other)
    await two.hear()
    await two.networks.add(other)
    await two.networks.clear()
    await one.hear()
    assert not one.networks.networks


async def test_one_that_another_node_takes_through_us_and_one_that_was_there_before(
    managers: tuple[Manager, Manager], state: StateStore
) -> None:
    one, two = managers
    network = lan()
    await one.networks.add(network)
    (place,) = await one.networks.take(network, WEB, node="worker")
    assert place.node == "worker" and list(one.networks.on("worker")) == [place] and not list(one.networks.on("x"))
    assert await one.networks.note(network, WEB, "10.0.9.4", "02:00:00:00:00:01") and "10.0.9.4" in one.addresses
    assert await one.networks.note(network, WEB, "10.0.9.4")
    assert not await two.networks.note(network, WEB, "10.0.9.4") and two.addresses == {"10.0.9.4"}
    # The next daemon of a host that has its records alone.
    next_one = Manager(TappedStore(SqliteStore(state)), "one")
    again = next_one.networks
    again.load(SqliteStore(state))
    assert again.networks["lan-id"].vni == 4097 and {p.address for p in every_place(again)} == one.addresses
    assert world_of(next_one.records, again).networks is again.networks
    again.deaf()
    await again.clear()
    assert not again.networks and not list(every_place(again)) and not list(again.on("worker"))


async def test_nothing_is_written_while_the_records_are_moved(managers: tuple[Manager, Manager]) -> None:
    one, _ = managers
    network = lan()
    await one.networks.add(network)
    async with one.records.still():
        taking = soon(one.networks.take(network, WEB))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not taking.done() and one.addresses == set()
    assert len(await taking) == 1


async def test_addresses_of_one_interface_have_one_mac(managers: tuple[Manager, Manager]) -> None:
    network = msgspec.structs.replace(lan(), subnet6="fd00:9::/64", gateway6="fd00:9::1")
    await managers[0].networks.add(network)
    four, six = await managers[0].networks.take(network, WEB)
    assert ":" in six.address and four.mac == six.mac and four.mac.startswith("02:42:0a:00:09:")
