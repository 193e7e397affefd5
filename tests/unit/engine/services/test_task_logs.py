from pathlib import Path
from typing import cast

import pytest

from husk.engine.logs.read import AsRecords
from husk.engine.logs.records import Lines, LogQuery
from husk.engine.services.log_messages import AsPieces
from husk.errors import InvalidParameter, Unavailable
from husk.storage.state.store import StateStore

from .swarm_room import FakeBroker, SwarmRoom, spec, task
from .test_nodes import worker
from .test_service import made


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    room = SwarmRoom(tmp_path, state)
    await room.init()
    await room.store.save(worker("w", "beta"))
    return room


async def test_a_task_has_started_when_its_container_has(room: SwarmRoom) -> None:
    web = await made(room, spec())
    running, waiting = await room.run(web), task(web, slot=2, state="pending")
    logs = room.services.logs
    assert (logs.has_started(running), logs.has_started(waiting)) == (True, False)
    room.containers.find(running.status.container_id).state.status = "created"
    assert not logs.has_started(running)
    assert logs.has_started(task(web, slot=3, container_id="0123", node_id="w"))


async def test_logs_of_another_node_come_together(room: SwarmRoom) -> None:
    web = await made(room, spec())
    here = await room.run(web)
    there = [task(web, slot=slot, container_id=f"0{slot}", node_id="w") for slot in (2, 3)]
    broker = cast(FakeBroker, room.broker)
    form = AsPieces(1, True)
    broker.gives = [form.encode(Lines([b"stdout F"], [b"hello"], [b"now"]))]
    query = LogQuery(follow=True)
    own, other = room.services.logs.of([here, *there], query, lambda task: AsRecords())
    assert own[0] == [here] and other[0] == there
    [[record]] = [records async for records in other[1]]
    assert (record.data, record.timestamp) == (b"hello\n", b"now")
    [asked] = broker.asked
    assert (asked.node, asked.tasks, asked.query) == ("w", [one.id for one in there], query) and asked.times
    with pytest.raises(InvalidParameter, match="at least one stream"):
        room.services.logs.of(there, LogQuery(stdout=False, stderr=False), lambda task: AsRecords())


async def test_why_they_cannot_be_read_is_told_in_their_place(room: SwarmRoom) -> None:
    web = await made(room, spec())
    there = task(web, slot=2, container_id="02", node_id="w")

    async def said() -> bytes:
        [(_, log)] = room.services.logs.of([there], LogQuery(), lambda task: AsRecords())
        return b"".join([record.data async for records in log for record in records])

    broker = cast(FakeBroker, room.broker)
    broker.fails = Unavailable("no way")
    assert (await said()).endswith(b"from beta now, or not to the end: no way\n")
    broker.fails, broker.gives = None, [b"nonsense"]
    assert b"no piece of a log" in await said()
    await room.nodes.mark("w", "down", "")
    assert b"the node is down" in await said() and len(broker.asked) == 2
    there.node_id = "x"
    assert b"not in the swarm any more" in await said()
