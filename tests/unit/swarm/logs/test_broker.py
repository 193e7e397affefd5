import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import pytest

from husk.engine.logs.records import LogQuery
from husk.errors import Conflict, HuskError, NotFound, Unavailable
from husk.swarm.logs.broker import BROKEN, MOST, NOT_HEARD, PATIENCE, LogBroker, askable
from husk.swarm.model.node import ManagerStatus, Node, NodeStatus
from husk.swarm.port.assignment_messages import decoded, encoded
from husk.swarm.port.log_messages import Asked
from tests.support.waiting import soon, until_async

ASKED = Asked(node="w", tasks=["t"], query=LogQuery(follow=True))


class Room:
    def __init__(self, *ways: "bytes | HuskError", patience: float = PATIENCE) -> None:
        self.ways = ways
        self.broker = LogBroker(self._own, lambda: "m", self._others, patience)

    async def _own(self, asked: Asked) -> AsyncGenerator[bytes]:
        yield b"own"

    def _others(self, asked: Asked) -> Iterable[AsyncGenerator[bytes]]:
        return [self._way(way) for way in self.ways]

    async def _way(self, way: "bytes | HuskError") -> AsyncGenerator[bytes]:
        if isinstance(way, HuskError):
            raise way
        yield way

    async def asked(self, node: str = "w") -> tuple[AsyncGenerator[bytes], AsyncGenerator[bytes], Asked]:
        """A node that listens, somebody who reads, and what the node is asked."""
        listening, reading = self.broker.wanted(node), self.broker.pieces(ASKED)
        hearing = soon(anext(listening))
        await asyncio.sleep(0)
        self.first = soon(anext(reading))
        return listening, reading, decoded(await hearing, Asked)


async def pieces_of(*pieces: bytes, then: HuskError | None = None, endless: bool = False) -> AsyncGenerator[bytes]:
    for piece in pieces:
        yield piece
    if then is not None:
        raise then
    if endless:
        await asyncio.Event().wait()


async def test_a_node_brings_what_it_is_asked_for() -> None:
    room = Room()
    listening, reading, asked = await room.asked()
    assert asked.tasks == ["t"] and asked.query == ASKED.query and len(asked.name) == 32
    with pytest.raises(NotFound):
        await room.broker.take("another", asked.name.encode(), pieces_of(b"false"))
    with pytest.raises(NotFound):
        await room.broker.take("w", b"\xff", pieces_of(b"false"))
    bringing = soon(room.broker.take("w", asked.name.encode(), pieces_of(b"1", b"2", b"3", b"4")))
    assert [await room.first] + [piece async for piece in reading] == [b"1", b"2", b"3", b"4"]
    await bringing
    await listening.aclose()
    with pytest.raises(Unavailable, match=NOT_HEARD):
        await anext(room.broker.pieces(ASKED))


async def test_a_reader_that_leaves_ends_the_nodes_call_and_a_slow_one_holds_it() -> None:
    room = Room()
    listening, reading, asked = await room.asked()
    sent = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x"

    bringing = soon(room.broker.take("w", asked.name.encode(), endless()))
    await room.first
    for _ in range(100):
        await asyncio.sleep(0)
    assert sent < 10
    with pytest.raises(Conflict):
        await room.broker.take("w", asked.name.encode(), pieces_of(b"twice"))
    await reading.aclose()
    async with asyncio.timeout(5):
        await bringing
    await listening.aclose()


@pytest.mark.parametrize("cancel", [2, 1, 0])
async def test_a_node_that_breaks_off_is_told(cancel: int) -> None:
    """Its call may be cancelled by the node, and once more with its connection."""
    room = Room()
    listening, reading, asked = await room.asked()
    pieces = pieces_of(b"1", b"2", b"3", b"4", endless=True) if cancel else pieces_of(b"1", then=Unavailable("gone"))
    bringing = soon(room.broker.take("w", asked.name.encode(), pieces))
    assert await room.first == b"1"
    for _ in range(cancel):
        bringing.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([bringing])
    came = list[bytes]()
    with pytest.raises(Unavailable, match=BROKEN):
        async with asyncio.timeout(5):
            async for piece in reading:
                came.append(piece)
    assert came == [b"2", b"3"][: len(came)], "nothing lacks in between"
    await listening.aclose()


async def test_a_node_that_does_not_begin() -> None:
    room = Room(patience=0.01)
    listening, _, _ = await room.asked()
    with pytest.raises(Unavailable, match="does not bring"):
        await room.first
    await listening.aclose()


async def test_so_many_at_once() -> None:
    room = Room()
    listening = room.broker.wanted("w")
    hearing = soon(anext(listening))
    await asyncio.sleep(0)
    many = [soon(anext(room.broker.pieces(ASKED))) for _ in range(MOST)]
    await hearing
    with pytest.raises(Unavailable, match="readers have logs"):
        await anext(room.broker.pieces(ASKED))
    for one in many:
        one.cancel()
    await asyncio.gather(*many, return_exceptions=True)
    await listening.aclose()


async def test_other_managers_are_asked_until_one_reaches_the_node() -> None:
    room = Room(NotFound("no"), Unavailable("away"), b"there", b"never")
    assert [piece async for piece in room.broker.pieces(ASKED)] == [b"there"]
    for ways, words in (((), NOT_HEARD), ((NotFound("no"),), NOT_HEARD), ((Unavailable("away"),), "away")):
        with pytest.raises(Unavailable, match=words):
            await anext(Room(*ways).broker.pieces(ASKED))


async def test_another_manager_asks_for_what_is_reached_here_alone() -> None:
    room = Room(b"never")
    own = Asked(node="m", tasks=["t"], query=LogQuery())
    assert [piece async for piece in room.broker.read(encoded(own))] == [b"own"]
    with pytest.raises(NotFound):
        await anext(room.broker.read(encoded(ASKED)))
    listening = room.broker.wanted("w")
    hearing = soon(anext(listening))
    await asyncio.sleep(0)
    async with aclosing(room.broker.read(encoded(ASKED))) as reading:
        first = soon(anext(reading))
        name = decoded(await hearing, Asked).name.encode()
        await room.broker.take("w", name, pieces_of(b"1"))
        await until_async(first.done, "it is here")
        assert await first == b"1"
    await listening.aclose()


def node(id: str, manager: bool, state: str = "ready") -> Node:
    status = NodeStatus(state=state)
    told = ManagerStatus(addr=f"{id}:2377") if manager else None
    return Node(id=id, version=1, created_at="", updated_at="", status=status, manager=told)


def test_a_manager_is_asked_itself_and_for_a_worker_all_others_that_live() -> None:
    nodes = {one.id: one for one in (node("a", True), node("b", True), node("c", True, "down"), node("w", False))}
    assert [one.id for one in askable("b", nodes, "a")] == ["b"]
    assert [one.id for one in askable("w", nodes, "a")] == ["b"]
    assert [one.id for one in askable("gone", nodes, "b")] == ["a"]
