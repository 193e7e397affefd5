from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from husk.errors import Conflict, InvalidParameter
from husk.storage.state.store import StateStore
from husk.swarm.manager.dispatcher.dispatcher import Dispatcher
from husk.swarm.manager.liveness import Liveness
from husk.swarm.manager.workers import LEFT, Workers, check
from husk.swarm.model.node import NodeDescription
from husk.version import CLUSTER_PROTOCOL
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import SwarmRoom


class Room(SwarmRoom):
    def __init__(self, directory: Path, state: StateStore) -> None:
        super().__init__(directory, state)
        self.alive = Mock(Liveness, beat=Mock(return_value=5), close=AsyncMock())
        self.dispatcher = Mock(Dispatcher)
        self.made: list[str] = []
        self.changed = 0
        self.real = Workers(
            own_id=lambda: "m",
            nodes=self.nodes,
            liveness=self._liveness,
            dispatcher=self.dispatcher,
            changed=self._hear,
            expected=lambda: self.made.append("expected"),
        )

    def _hear(self) -> None:
        self.changed += 1

    def _liveness(self) -> Liveness:
        self.made.append("liveness")
        return self.alive


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> Room:
    made = Room(tmp_path, state)
    await made.init()
    await made.store.save(worker("w", "beta"))
    return made


async def test_nobody_is_listened_for_before_there_may_be_workers(room: Room) -> None:
    await room.real.close()
    assert room.made == []
    room.real.expect()
    room.real.expect()
    assert room.made == ["liveness", "expected"]
    room.alive.start.assert_called_once_with("m")
    room.real.opened()
    room.dispatcher.wake.assert_called_once_with()
    await room.real.close(for_good=True)
    room.alive.close.assert_awaited_once_with(for_good=True)
    assert room.real.beat("w") == 5 and room.made.count("liveness") == 2


async def test_a_node_says_what_it_is_and_that_it_goes(room: Room) -> None:
    await room.real.describe("w", NodeDescription(hostname="gamma"))
    assert room.nodes.find("w").description.hostname == "gamma"
    room.real.beat("w")
    await room.real.leave("w")
    status = room.nodes.find("w").status
    assert (status.state, status.message) == ("down", LEFT) and room.changed == 2
    room.alive.forget.assert_called_once_with("w")


async def test_a_node_of_a_release_that_is_too_far_away_is_told_so(room: Room) -> None:
    newer = NodeDescription(hostname="gamma", engine_version="9.9", protocol=CLUSTER_PROTOCOL + 2)
    with pytest.raises(Conflict, match=r"this node \(Husk 9.9\) .* too far apart"):
        await room.real.describe("w", newer)
    assert room.nodes.find("w").description == newer, "docker node ls tells what it is"
    await room.real.describe("w", NodeDescription(protocol=CLUSTER_PROTOCOL + 1))


@pytest.mark.parametrize(
    "said",
    [
        NodeDescription(hostname="x" * 2000),
        NodeDescription(engine_labels={"a": "x" * 2000}),
        NodeDescription(plugins=[("Log", str(number)) for number in range(300)]),
        NodeDescription(generic={str(number): 1 for number in range(600)}),
        NodeDescription(engine_labels={str(number): "\0" * 1000 for number in range(200)}),
        NodeDescription(subnets=[f"10.{number // 256}.{number % 256}.0/24" for number in range(600)]),
    ],
)
async def test_a_node_cannot_say_too_much(room: Room, said: NodeDescription) -> None:
    before = room.nodes.find("w").description
    with pytest.raises(InvalidParameter, match="too much"):
        check(said)
    with pytest.raises(InvalidParameter, match="too much"):
        await room.real.describe("w", said)
    assert room.nodes.find("w").description == before


@pytest.mark.parametrize("number", [-1, 1 << 63, 10**30])
def test_a_node_has_amounts_that_clients_can_read(number: int) -> None:
    said = (
        NodeDescription(nano_cpus=number),
        NodeDescription(memory=number),
        NodeDescription(generic={"gpu": number}),
        NodeDescription(protocol=number),
    )
    for one in said:
        with pytest.raises(InvalidParameter, match="no such amounts"):
            check(one)
    check(NodeDescription(nano_cpus=(1 << 63) - 1, memory=0, generic={"gpu": 8}))
