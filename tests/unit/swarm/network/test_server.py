"""A manager gives addresses to its workers: each its own, and nobody's twice."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from husk.engine.model.network import Network
from husk.errors import Forbidden, InvalidParameter, NotFound, Unavailable
from husk.network.wireguard.parties import text_of_key
from husk.storage.state.store import StateStore
from husk.swarm.model.node import Node
from husk.swarm.model.services import NetworkAttachment, Task, TaskSpec
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.local_node import LocalNode
from husk.swarm.network.server import MOST_OF_TASK, WHILE, AddressKeys, AddressReply, NetworkLookup, NetworkServer
from husk.swarm.network.share import AddressRequest, TunnelKey
from husk.swarm.port.assignment_messages import decoded, encoded
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from tests.support.but import but
from tests.support.overlay_places import every_place
from tests.unit.swarm.manager.test_planner import make_service, make_task


class Room:
    def __init__(self, state: StateStore) -> None:
        self.records = SwarmRecords(SqliteStore(state))
        here = cast(LocalNode, SimpleNamespace(node_id="m", active=True, data_path_port=4790))
        self.shared: OverlayAllocator | None = OverlayAllocator(self.records, here, lambda: None)
        self.changed = 0
        self.now = 0.0
        self.server = NetworkServer(self.records, here, lambda: self.shared, self._hear, lambda: self.now)
        self.lan = Network(id="lan", name="lan", driver="overlay", created="", vni=4097, subnet="10.0.9.0/24")
        service = make_service(1)
        service.spec.task_template = TaskSpec(networks=[NetworkAttachment(target="lan")])
        self.records.services[service.id] = service
        task = make_task(1, node_id="w")
        task = but(task, service_id=service.id, status__state="preparing")
        self.task = self.records.tasks[task.id] = task
        self.records.index.note(task)

    def lan_is(self, **fields: object) -> None:
        self.lan = but(self.lan, **fields)
        assert self.shared is not None
        self.shared.networks[self.lan.id] = self.lan

    def become(self, task: Task) -> None:
        self.task = task
        self.records.learn(task)

    def _hear(self) -> None:
        self.changed += 1

    async def take(self, node: str = "w", **fields: object) -> list[str]:
        wish = AddressRequest(network="lan", **fields)  # type: ignore[arg-type]
        return [place.key for place in decoded(await self.server.take(node, encoded(wish)), AddressReply).places]


@pytest.fixture
async def room(state: StateStore) -> Room:
    made = Room(state)
    assert made.shared is not None
    await made.shared.add(made.lan)
    return made


async def test_a_node_takes_addresses_and_gives_them_back(room: Room) -> None:
    [one] = await room.take(task=room.task.id, container="c1" * 32, names=("web",))
    [two] = await room.take(task=room.task.id, address="10.0.9.77")
    [own] = await room.take(host=True)
    assert await room.take(host=True) == [own], "one is enough"
    assert two == "lan/10.0.9.77" and len({one, two, own}) == 3 and room.changed == 3
    assert room.shared is not None and not room.shared.underway
    with pytest.raises(Forbidden, match="already in use"):
        await room.take(task=room.task.id, address="10.0.9.77")
    with pytest.raises(Forbidden, match="not the node's"):
        await room.server.give_back("x", encoded(AddressKeys(keys=[one])))
    share = room.server.share("w")
    assert share.data_path_port == 4790 and {key for kind, key in share.records if kind == "address"} == {one, two, own}
    assert {kind for kind, _ in room.server.share("x").records} <= {"node"}
    await room.server.give_back("w", encoded(AddressKeys(keys=[one, two, own, "lan/unknown", "what"])))
    assert not list(every_place(room.shared))


async def test_no_task_has_addresses_without_end(room: Room) -> None:
    for _ in range(MOST_OF_TASK):
        await room.take(task=room.task.id)
    with pytest.raises(Forbidden, match="16 such addresses"):
        await room.take(task=room.task.id)


async def test_no_limit_is_passed_by_asking_at_once(room: Room) -> None:
    asked = [room.take(task=room.task.id) for _ in range(MOST_OF_TASK + 4)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Forbidden)]
    assert len(refused) == 4 and room.shared is not None and len(list(every_place(room.shared))) == MOST_OF_TASK
    hosts = await asyncio.gather(*[room.take(host=True) for _ in range(3)])
    assert hosts[0] == hosts[1] == hosts[2]


async def test_a_node_leaves_addresses_for_others(room: Room) -> None:
    room.lan_is(attachable=True, subnet="10.0.9.0/26")
    for id in ("m", "w", "x"):
        await room.records.save(Node(id=id, version=0, created_at="", updated_at=""))
    taken = []
    with pytest.raises(Unavailable, match="last addresses of network lan are for other nodes"):
        for number in range(62):
            taken += await room.take(container=f"c{number:063}")
    assert len(taken) == 62 - 62 // 8
    await room.take(task=room.task.id), await room.take(task=room.task.id)
    with pytest.raises(Unavailable):
        await room.take(task=room.task.id)
    for number in range(3):
        await room.take("x", container=f"d{number:063}")


async def test_no_mac_is_chosen_that_leads_others_packets_astray(room: Room) -> None:
    room.lan_is(attachable=True)
    shared = room.shared
    assert shared is not None
    [own] = await room.take(container="c1" * 32, address="10.0.9.5", mac="02:00:00:00:00:05")
    await room.take(container="c2" * 32, mac="02-00-00-00-00-05")  # its own affair
    await room.take(container="c3" * 32, address="10.0.9.9", mac="02:42:0a:00:09:09")
    for mac, said in (
        ("02:00:00:00:00:05", "in use on network lan"),
        ("02:42:0a:00:09:05", "that of 10.0.9.5"),
        ("02:42:0a:00:09:01", "that of 10.0.9.1"),
        ("02:42:0A:00:09:C8", "that of 10.0.9.200"),
    ):
        with pytest.raises(Forbidden, match=said):
            await room.take("x", container="d1" * 32, mac=mac)
    for mac in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00"):
        with pytest.raises(InvalidParameter, match="no single endpoint"):
            await room.take("x", container="d1" * 32, mac=mac)
    await room.take("x", container="d1" * 32, mac="02:42:ac:11:00:05")  # of another subnet
    both = [room.take(node, container="e" * 64, mac="02:00:00:00:00:06") for node in ("w", "x")]
    refused = [one for one in await asyncio.gather(*both, return_exceptions=True) if isinstance(one, Forbidden)]
    assert len(refused) == 1
    await room.server.give_back("w", encoded(AddressKeys(keys=[own])))
    await shared.give_back(list(every_place(shared)))
    await room.take("x", container="d1" * 32, mac="02:00:00:00:00:05")
    await shared.give_back(list(every_place(shared)))
    await room.take("w", container="c1" * 32, mac="02:00:00:00:00:05")


async def test_what_is_not_its_own_is_refused(room: Room) -> None:
    with pytest.raises(Forbidden):
        await room.take("x", host=True)
    with pytest.raises(Forbidden):
        await room.take("x", task=room.task.id)
    assert room.changed == 0
    room.shared = None
    with pytest.raises(Unavailable):
        await room.take(host=True)
    await room.server.give_back("w", b"{}")
    assert room.server.share("w").records == {}


async def test_a_network_for_plain_containers_is_told_for_a_while_and_while_one_is_there(room: Room) -> None:
    def known() -> bool:
        return ("overlay", "lan") in room.server.share("x").records

    with pytest.raises(Forbidden, match="network lan not manually attachable"):
        await room.server.seek("x", encoded(NetworkLookup(network="lan")))
    room.lan_is(attachable=True)
    with pytest.raises(NotFound):
        await room.server.seek("x", encoded(NetworkLookup(network="")))
    assert not known()
    assert decoded(await room.server.seek("x", encoded(NetworkLookup(network="la"))), NetworkLookup).network == "lan"
    assert known() and ("overlay", "lan") not in room.server.share("y").records
    assert await room.take("x", host=True)
    room.now = WHILE + 1
    assert not known()
    [key] = await room.take("x", container="9f" * 32)
    assert known()
    await room.server.give_back("x", encoded(AddressKeys(keys=[key])))
    assert not known()
    room.shared = None
    with pytest.raises(NotFound):
        await room.server.seek("x", encoded(NetworkLookup(network="lan")))


async def test_something_may_be_new_when_anything_of_it_has_changed(room: Room) -> None:
    seen = [room.server.generation()]

    def changed() -> bool:
        seen.append(room.server.generation())
        return seen[-1] != seen[-2]

    assert not changed()
    [key] = await room.take(task=room.task.id)
    assert changed() and not changed()
    room.become(but(room.task, status__state="starting"))
    assert not changed(), "nobody is led to it yet"
    room.become(but(room.task, status__state="running"))
    assert changed() and not changed()
    room.become(but(room.task, desired_state="shutdown"))
    assert changed()
    await room.server.give_back("w", encoded(AddressKeys(keys=[key])))
    assert changed()
    room.lan_is(attachable=True)
    await room.server.seek("x", encoded(NetworkLookup(network="lan")))
    assert changed()
    heard, room.now = room.changed, WHILE / 2
    await room.server.seek("x", encoded(NetworkLookup(network="lan")))
    assert not changed() and room.changed == heard, "it knows, and for longer now"
    room.now += WHILE - 1
    assert ("overlay", "lan") in room.server.share("x").records
    room.now += 1
    await room.server.seek("x", encoded(NetworkLookup(network="lan")))
    assert changed(), "its time was over"
    service = next(iter(room.records.services.values()))
    room.records.learn(but(service, version=service.version + 1))
    assert changed() and not changed()


async def test_a_node_says_its_key(room: Room) -> None:
    for id in ("m", "w"):
        await room.records.save(Node(id=id, version=0, created_at="", updated_at=""))
    before, told = room.server.generation(), TunnelKey(key=text_of_key(b"1" * 32), port=51820)
    await room.server.announce("w", encoded(told))
    await room.server.announce("w", encoded(told))
    node = room.records.nodes["w"]
    assert (node.tunnel_key, node.tunnel_port) == (told.key, 51820)
    assert room.server.generation() != before and room.changed == 2
    with pytest.raises(Forbidden, match="another node's"):
        await room.server.announce("x", encoded(told))
    room.shared = None
    with pytest.raises(Unavailable):
        await room.server.announce("w", encoded(TunnelKey(key=text_of_key(b"2" * 32), port=1)))
