"""Networks of the swarm on a worker; the host's own networks are doubles."""

from collections.abc import AsyncIterator
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import msgspec
import pytest

from husk.engine.model.events import Events
from husk.engine.model.network import Network
from husk.engine.networks.service import Networks
from husk.swarm.model.node import Node, NodeStatus
from husk.swarm.model.services import Task
from husk.swarm.network.remote import AddressCalls
from husk.swarm.network.worker import WorkerNetworks
from husk.swarm.port.assignment_messages import KnownRecord, NetworkNews
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_service, make_task


def record(kind: str, body: Any) -> KnownRecord:
    return KnownRecord(kind, body.id, msgspec.Raw(msgspec.json.encode(body)))


LAN = Network(id="lan", name="lan", driver="overlay", created="", vni=4097, subnet="10.0.9.0/24")


class Room:
    def __init__(self) -> None:
        self.networks = Mock()
        self.networks.listing.return_value = []
        self.networks.presence = Mock(here=[], alone=[], ingress=None, know=AsyncMock())
        self.networks.overlays.apply = AsyncMock()
        self.networks.overlays.public = None
        self.networks.balancing.apply = AsyncMock(return_value=True)
        self.events = Events()
        self.woken = 0
        self.tasks: list[Task] = []
        self.containers = Mock()
        self.real = WorkerNetworks(
            "w",
            cast(AddressCalls, Mock()),
            networks=cast(Networks, self.networks),
            containers=self.containers,
            events=self.events,
            own_tasks=lambda: self.tasks,
            woken=self._wake,
        )

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    yield Room()


async def test_nothing_is_touched_before_a_manager_has_told_all(room: Room) -> None:
    assert await room.real.settle()
    room.networks.balancing.apply.assert_not_awaited()
    room.real.hear(NetworkNews(all=True, more=True, records=[record("overlay", LAN)], data_path_port=5000))
    assert await room.real.settle()
    room.networks.balancing.apply.assert_not_awaited()
    # It broke off, and another one tells everything.
    room.real.hear(None)
    node = Node(id="w", version=0, created_at="", updated_at="", status=NodeStatus(state="ready", addr="192.0.2.2"))
    room.real.hear(NetworkNews(all=True, more=True, records=[record("overlay", LAN)], data_path_port=5000))
    room.real.hear(NetworkNews(all=True, records=[record("node", node)], data_path_port=5000))
    room.networks.presence.learn.assert_called_once()
    assert list(room.networks.presence.learn.call_args.args[0]) == ["lan"]
    assert room.woken == 1 and await room.real.settle()
    ((underlay, ways), _) = room.networks.overlays.apply.await_args
    assert (underlay.local, underlay.port, ways) == ("192.0.2.2", 5000, {})
    room.networks.balancing.apply.assert_awaited_once()
    room.events.publish("network", "disconnect", "lan", {})
    assert room.woken == 2


async def test_its_own_tasks_are_as_it_knows_them(room: Room) -> None:
    service, task = make_service(1), make_task(1, node_id="w")
    task = but(task, service_id=service.id, status__state="running", status__container_id="c")
    room.real.hear(NetworkNews(all=True, records=[record("service", service), record("task", task)]))
    await room.real.settle()
    room.containers.find.assert_called_with("c")
    room.containers.find.reset_mock()
    ending = make_task(1, node_id="w")
    ending = but(ending, id=task.id, desired_state="shutdown", status__state="running")
    room.tasks = [ending]
    await room.real.settle()
    room.containers.find.assert_not_called()


async def test_leaving(room: Room) -> None:
    room.real.hear(NetworkNews(all=True, records=[record("overlay", LAN)]))
    await room.real.leave()
    room.networks.presence.know.assert_awaited_with({})
    room.networks.share.assert_called_with(None)
    woken = room.woken
    room.events.publish("network", "disconnect", "lan", {})
    assert room.woken == woken
