import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from husk.api.streams.framing import LogEncoder
from husk.engine.logs.read import AsRecords
from husk.engine.logs.records import STDERR, Columns, LogQuery
from husk.engine.model.clock import rfc3339
from husk.errors import HuskError, InvalidParameter, NotFound, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.logs.progress import LogProgress
from husk.swarm.logs.task_logs import note, told
from husk.swarm.model.services import Task
from husk.swarm.port.log_messages import Asked, AsPieces, begun
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_task
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import FakeBroker, SwarmRoom, spec, task
from tests.unit.swarm.test_control import made


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
    there = room.containers.find(running.status.container_id)
    room.containers.records[there.id] = but(there, state=replace(there.state, status="created"))
    assert not logs.has_started(running)
    assert logs.has_started(task(web, slot=3, container_id="0123", node_id="w"))


async def test_logs_of_another_node_come_together(room: SwarmRoom) -> None:
    web = await made(room, spec())
    here = await room.run(web)
    there = [task(web, slot=slot, container_id=f"0{slot}", node_id="w") for slot in (2, 3)]
    broker = cast(FakeBroker, room.broker)
    form = AsPieces(1, True)
    broker.gives = [form.encode(Columns([b"stdout F"], [b"hello"], [b"now"]))]
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
    there = but(there, node_id="x")
    assert b"not in the swarm any more" in await said()


class Breaking:
    """Gives one answer after the other; each breaks off, but for the last."""

    def __init__(self, room: SwarmRoom, *answers: list[bytes] | HuskError) -> None:
        self.answers, self.asked = list(answers), list[Asked]()
        cast(FakeBroker, room.broker).instead = self.pieces

    async def pieces(self, asked: Asked) -> AsyncGenerator[bytes]:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, HuskError):
            raise answer
        for piece in answer:
            yield piece
        if self.answers:
            raise Unavailable("the node broke off")


def line(place: int, moment: int, text: str) -> bytes:
    return AsPieces(place, True).encode(Columns([b"stdout F"], [text.encode()], [rfc3339(moment).encode()]))


async def followed(room: SwarmRoom, tasks: list[Task], tail: int | None = None) -> list[str]:
    [(_, log)] = room.services.logs.of(tasks, LogQuery(follow=True, tail=tail), lambda task: AsRecords())
    return [record.data.decode() async for records in log for record in records]


@pytest.fixture
async def there(room: SwarmRoom) -> list[Task]:
    """Two tasks of the other node."""
    web = await made(room, spec())
    tasks = [task(web, slot=slot, container_id=f"0{slot}", node_id="w") for slot in (2, 3)]
    await room.store.save(*tasks)
    return tasks


async def test_who_follows_goes_on_where_it_broke_off(room: SwarmRoom, there: list[Task]) -> None:
    broker = Breaking(
        room,
        [line(0, 1, "a"), line(0, 2, "b"), line(1, 5, "x")],
        NotFound("it is not heard"),
        [line(0, 2, "b"), line(0, 3, "c"), line(1, 5, "x"), line(1, 5, "y")],
        [line(0, 3, "c"), line(1, 6, "z")],
    )
    assert await followed(room, there, tail=10) == ["a\n", "b\n", "x\n", "c\n", "y\n", "z\n"]
    first, _, third, fourth = broker.asked
    assert first.query == LogQuery(follow=True, tail=10) and not first.queries and not first.begun
    assert [query.since_ns for query in third.queries] == [2, 5] and third.query == LogQuery(follow=True, since_ns=2)
    assert [query.since_ns for query in fourth.queries] == [3, 5]


async def test_who_wants_new_lines_alone_loses_none(room: SwarmRoom, there: list[Task]) -> None:
    broker = Breaking(room, [begun(0, rfc3339(7).encode())], [line(0, 8, "a")])
    assert await followed(room, there[:1], tail=0) == ["a\n"]
    assert broker.asked[0].begun and broker.asked[1].query == LogQuery(follow=True, since_ns=7)


async def test_what_cannot_be_read_at_first_is_told_and_read_later(room: SwarmRoom, there: list[Task]) -> None:
    Breaking(room, Unavailable("no way"), Unavailable("no way"), [line(0, 1, "a")])
    told, data = await followed(room, there[:1])
    assert told.endswith("no way\n") and data == "a\n"


async def test_it_ends_when_the_node_is_gone_or_the_task(room: SwarmRoom, there: list[Task]) -> None:
    class Leaving(Breaking):
        async def pieces(self, asked: Asked) -> AsyncGenerator[bytes]:
            async for piece in super().pieces(asked):
                yield piece
                await room.store.delete(room.store.nodes["w"])

    Leaving(room, [line(0, 1, "a")], [])
    data, told = await followed(room, there[:1])
    assert data == "a\n" and "not in the swarm any more" in told
    await room.store.save(worker("w", "beta"))
    await room.store.delete(*there)
    Breaking(room, [line(0, 1, "a")], [])
    data, told = await followed(room, there[:1])
    assert data == "a\n" and "broke off" in told


async def test_a_node_that_says_nonsense_is_not_asked_again(room: SwarmRoom, there: list[Task]) -> None:
    wrong = AsPieces(0, True).encode(Columns([b"stdout F"], [b"a"], [b"now"]))
    broker = Breaking(room, [wrong], [])
    data, told = await followed(room, there[:1])
    assert data == "a\n" and "invalid time" in told and len(broker.asked) == 1


async def test_pieces_are_taken_apart_beside_the_event_loop(
    room: SwarmRoom, there: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node may send large ones."""
    threads = list[int]()

    def noted(progress: LogProgress, lines: Columns) -> Columns:
        threads.append(threading.get_ident())
        return lines

    monkeypatch.setattr(LogProgress, "take", noted)
    Breaking(room, [line(0, 1, "a")])
    assert await followed(room, there[:1]) == ["a\n"]
    assert threads and threading.get_ident() not in threads


async def test_a_line_says_why_a_log_cannot_be_read() -> None:
    task = make_task(1)
    line = told([task], "beta", "the node is down")
    assert line.startswith("husk: the log of this task cannot be read from beta") and line.endswith("the node is down")
    assert "the logs of 2 tasks" in told([task, task], "beta", "")
    [[record]] = [records async for records in note([task], "beta", "the node is down", LogQuery(), AsRecords())]
    assert (record.stream, record.data) == (STDERR, line.encode() + b"\n")
    plain = LogEncoder(multiplexed=False, timestamps=False)
    assert [text async for text in note([task], "beta", "the node is down", LogQuery(), plain)] == [
        line.encode() + b"\n"
    ]
    none = LogQuery(stderr=False)
    assert [text async for text in note([task], "beta", "", none, plain)] == []
