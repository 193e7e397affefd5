"""A worker's networks: what it was told and what it was given, whichever comes first."""

import asyncio
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from husk.engine.model.network import Network
from husk.engine.networks.sharing import Occupant, Place
from husk.errors import NotFound, Unavailable
from husk.network.endpoint import EndpointOptions
from husk.swarm.model.node import Node
from husk.swarm.network.local_node import LocalNode
from husk.swarm.network.remote import PATIENCE, RemoteNetworks
from husk.swarm.network.server import AddressKeys, AddressReply, NetworkLookup
from husk.swarm.network.share import AddressRequest, TunnelKey
from husk.swarm.port.assignment_messages import KnownRecord, NetworkNews, decoded, encoded
from husk.swarm.port.faults import TooMany
from husk.swarm.state.no_store import NoStore
from husk.swarm.state.records import SwarmRecords
from tests.support.overlay_places import every_place
from tests.support.waiting import soon

LAN = Network(id="lan", name="lan", driver="overlay", created="", vni=4097, subnet="10.0.9.0/24")


def known(record: Network | Place) -> KnownRecord:
    kind, key = ("address", record.key) if isinstance(record, Place) else ("overlay", record.id)
    return KnownRecord(kind, key, msgspec.Raw(msgspec.json.encode(record)))


class FakeManager:
    def __init__(self) -> None:
        self.asked: list[AddressRequest] = []
        self.back: list[str] = []
        self.keys: list[TunnelKey] = []
        self.busy = False
        self.held = asyncio.Event()
        self.held.set()

    async def take(self, body: bytes) -> bytes:
        wish = decoded(body, AddressRequest)
        self.asked.append(wish)
        await self.held.wait()
        kind = "host" if wish.host else "endpoint"
        place = Place(network="lan", address=f"10.0.9.{len(self.asked)}", node="w", kind=kind)  # type: ignore[arg-type]
        return encoded(AddressReply(places=[place]))

    async def seek(self, body: bytes) -> bytes:
        sought = decoded(body, NetworkLookup).network
        if sought != "lan":
            raise NotFound(f"network {sought} not found")
        return encoded(NetworkLookup(network="lan"))

    async def announce(self, body: bytes) -> None:
        if self.busy:
            raise TooMany("a moment")
        self.keys.append(decoded(body, TunnelKey))

    async def give_back(self, body: bytes) -> None:
        self.back += decoded(body, AddressKeys).keys


class Room:
    def __init__(self, patience: float = PATIENCE) -> None:
        self.manager = FakeManager()
        self.woken = 0
        here = cast(LocalNode, SimpleNamespace(node_id="w"))
        self.records = SwarmRecords(NoStore())
        self.networks = RemoteNetworks(self.records, here, self._wake, self.manager, patience)
        self.networks.hear(NetworkNews(all=True, records=[known(LAN)]))

    def _wake(self) -> None:
        self.woken += 1

    @property
    def addresses(self) -> set[str]:
        return {place.address for place in every_place(self.networks)}


async def test_an_address_is_asked_for_and_given_back() -> None:
    room = Room()
    assert room.woken == 1 and list(room.networks.networks) == ["lan"]
    options = EndpointOptions(address="10.0.9.1", mac="02:00:00:00:00:01", ipv6=False)
    async with room.networks.claimed(LAN, options, Occupant("endpoint", ("web",), "c", "t")) as claimed:
        assert claimed.address == "10.0.9.1" and all(
            room.networks.is_underway(one) for one in every_place(room.networks)
        )
    [wish] = room.manager.asked
    assert (wish.names, wish.container, wish.task, wish.mac, wish.ipv6, wish.host) == (
        ("web",), "c", "t", "02:00:00:00:00:01", False, False,
    )  # fmt: skip
    [place] = every_place(room.networks)
    assert not room.networks.is_underway(place)
    await room.networks.give_back([])
    await room.networks.give_back([place])
    assert room.manager.back == ["lan/10.0.9.1"] and room.addresses == set()
    assert await room.networks.note(LAN, Occupant("service"), "10.0.9.9") and room.addresses == set()
    with pytest.raises(Unavailable, match="Worker nodes"):
        await room.networks.removing(LAN)


async def test_news_before_the_answer_and_the_answer_before_the_news() -> None:
    room = Room()
    room.manager.held.clear()
    taking = soon(room.networks.take(LAN, Occupant("host")))
    while not room.manager.asked:
        await asyncio.sleep(0)
    own = Place(network="lan", address="10.0.9.1", node="w", kind="host")
    room.networks.hear(NetworkNews(records=[known(own)]))
    assert room.networks.is_underway(own), "nobody gives it back meanwhile"
    room.manager.held.set()
    assert await taking == [own]
    # A manager that tells everything may not have heard of what another one has just given.
    [second] = await room.networks.take(LAN, Occupant("host"))
    room.networks.hear(NetworkNews(all=True, records=[known(LAN), known(own)]))
    assert room.addresses == {own.address, second.address}
    room.networks.hear(NetworkNews(records=[known(second)]))
    room.networks.hear(NetworkNews(all=True, records=[known(LAN)]))
    assert room.addresses == set()
    room.networks.hear(NetworkNews(gone=[("overlay", "lan")]))
    assert not room.networks.networks


async def test_a_network_that_is_sought_is_waited_for() -> None:
    room = Room()
    await room.networks.seek("lan")
    await room.networks.seek("unknown")
    room.networks.hear(NetworkNews(gone=[("overlay", "lan")]))
    seeking = soon(room.networks.seek("lan"))
    for _ in range(5):
        await asyncio.sleep(0)
    room.networks.hear(NetworkNews())
    await asyncio.sleep(0)
    assert not seeking.done()
    room.networks.hear(NetworkNews(records=[known(LAN)]))
    async with asyncio.timeout(5):
        await seeking


async def test_a_network_that_does_not_come_is_not_waited_for_without_end() -> None:
    room = Room(patience=0.01)
    room.networks.hear(NetworkNews(gone=[("overlay", "lan")]))
    await room.networks.seek("lan")


async def test_a_key_is_said_and_known_here_at_once() -> None:
    room, told = Room(), TunnelKey(key="mine", port=51820)
    nodes = room.records.nodes
    nodes["w"] = Node(id="w", version=1, created_at="", updated_at="")
    room.manager.busy = True
    with pytest.raises(TooMany):
        await room.networks.announce(told)
    assert nodes["w"].tunnel_key == "", "it has to be said again"
    room.manager.busy = False
    await room.networks.announce(told)
    assert room.manager.keys == [told] and (nodes["w"].tunnel_key, nodes["w"].tunnel_port) == ("mine", 51820)
