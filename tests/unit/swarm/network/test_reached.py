"""The containers of the tasks that others are led to, kept as records change."""

from collections.abc import Mapping
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from husk.engine.model.container import Container
from husk.engine.networks.sharing import Place
from husk.errors import NotFound
from husk.storage.state.store import StateStore
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.local_node import LocalNode
from husk.swarm.network.reached import ReachableTasks
from husk.swarm.spec.network_services import Elsewhere
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import ClusterRecord, News
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_task

NAMES = {"lan": "lan", "wan": "wan"}


class Room:
    def __init__(self, store: SqliteStore) -> None:
        self.records = SwarmRecords(store)
        for id in ("n1", "n2", "n3"):
            status = SimpleNamespace(addr=f"192.0.2.{id[1:]}")
            self.records.nodes[id] = cast(Any, SimpleNamespace(id=id, status=status))
        here = SimpleNamespace(node_id="n1")
        self.shared = OverlayAllocator(self.records, cast(LocalNode, here), lambda: None)
        self.containers: dict[str, Any] = {}
        self.reached = self.make()
        self.number = 0

    def make(self) -> ReachableTasks:
        return ReachableTasks(self.records, lambda: "n1", self.find)

    def find(self, reference: str) -> Container:
        if reference not in self.containers:
            raise NotFound(reference)
        return cast(Container, self.containers[reference])

    def put(self, network: str, address: str, node: str, task: str) -> None:
        self.number += 1
        place = Place(network=network, address=address, node=node, kind="endpoint", task=task)
        record = ClusterRecord("address", place.key, msgspec.json.encode(place), self.number)
        self.shared.take_in(News(self.number, False, (record,)))

    def drop(self, network: str, address: str) -> None:
        self.number += 1
        self.shared.take_in(News(self.number, False, (), (("address", f"{network}/{address}"),)))


@pytest.fixture
def room(state: StateStore) -> Room:
    return Room(SqliteStore(state))


def shown(reached: ReachableTasks) -> Mapping[str, Any]:
    def of(one: Any) -> Any:
        return msgspec.to_builtins(one) if isinstance(one, Elsewhere) else one

    return {id: sorted(map(of, found), key=str) for id, found in reached.by_service.items()}


def test_a_task_on_another_host_is_known_by_its_addresses(room: Room) -> None:
    task = but(make_task(1, node_id="n2"), id="t", status__state="running")
    room.records.learn(task)
    room.put("lan", "10.0.9.5", "n2", "t")
    room.put("lan", "fd00::5", "n2", "t")
    room.put("gone", "10.9.9.5", "n2", "t")
    assert room.reached.look(room.shared, NAMES) == {task.service_id}
    [one] = room.reached.of(task.service_id)
    assert isinstance(one, Elsewhere) and one.host == "192.0.2.2" and list(one.endpoints) == ["lan"]
    assert (one.endpoints["lan"].ip_address, one.endpoints["lan"].ip6_address) == ("10.0.9.5", "fd00::5")
    assert room.reached.look(room.shared, NAMES) == set()
    room.records.learn(but(task, status__state="failed"))
    assert room.reached.look(room.shared, NAMES) == {task.service_id} and not room.reached.of(task.service_id)


def test_this_nodes_own_are_looked_at_each_time(room: Room) -> None:
    """Their containers come to networks, and leave them, without a word."""
    task = but(make_task(1, node_id="n1"), id="t", status__state="running", status__container_id="c")
    room.records.learn(task)
    assert room.reached.look(None, NAMES) == set() and not room.reached.of(task.service_id)
    room.containers["c"] = SimpleNamespace(name="one")
    for _ in range(2):
        assert room.reached.look(None, NAMES) == {task.service_id}
        assert list(room.reached.of(task.service_id)) == [room.containers["c"]]
    del room.containers["c"]
    assert room.reached.look(None, NAMES) == {task.service_id} and not room.reached.of(task.service_id)


def test_what_is_kept_is_what_a_look_at_everything_gives(room: Room, chance: Random) -> None:
    room.containers = {"c1": "container 1", "c2": "container 2"}
    names, shared = dict(NAMES), room.shared
    for _ in range(200):
        task_id, node = chance.choice(("t1", "t2", "t3")), chance.choice(("n1", "n2", "n3"))
        network, address = chance.choice(("lan", "wan")), f"10.0.9.{chance.randrange(2, 6)}"
        match chance.randrange(7):
            case 0 | 1:
                state = cast(Any, chance.choice(("starting", "running", "running")))
                wanted = but(make_task(1, node_id=node), id=task_id, service_id=chance.choice(("s1", "s2")))
                container = chance.choice(("c1", "c2", "c3"))
                room.records.learn(but(wanted, status__state=state, status__container_id=container))
            case 2 if (known := room.records.tasks.pop(task_id, None)) is not None:
                room.records.index.drop(known)
            case 3:
                room.put(network, address, node, task_id)
            case 4:
                room.drop(network, address)
            case 5:
                other: Any = room.records.nodes[node]
                other.status.addr = f"192.0.2.{chance.randrange(9)}"
            case 6:
                names = {"lan": chance.choice(("lan", "other")), "wan": "wan"}
                shared = chance.choice((room.shared, room.shared, cast(Any, None)))
        room.reached.look(shared, names)
        fresh = room.make()
        fresh.look(shared, names)
        assert shown(room.reached) == shown(fresh)
        room.records.index.changed.unsubscribe(fresh._changed.add)
        fresh.look(None, names)  # and hears no more of addresses
