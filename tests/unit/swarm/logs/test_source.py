import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from husk.engine.containers.service import Containers
from husk.engine.logs.read import Form
from husk.engine.logs.records import Columns, LogQuery
from husk.errors import NotFound, Unavailable
from husk.swarm.logs.source import LogSource, WorkerLogs
from husk.swarm.port.assignment_messages import encoded
from husk.swarm.port.log_messages import Asked, read_piece
from tests.support.but import but
from tests.support.waiting import until_async
from tests.unit.swarm.manager.test_planner import make_task


class FakeContainers:
    def __init__(self) -> None:
        self.open = 0
        self.endless = False
        self.queries: list[LogQuery] = []

    def logs(self, reference: str, query: LogQuery, form: Form[bytes]) -> AsyncGenerator[bytes]:
        if reference == "gone":
            raise NotFound("No such container: gone")
        self.queries.append(query)
        return self._log(reference, form)

    async def _log(self, reference: str, form: Form[bytes]) -> AsyncGenerator[bytes]:
        self.open += 1
        try:
            yield form.encode(Columns([b"stdout F"], [reference.encode()]))
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.open -= 1


def source(containers: FakeContainers) -> LogSource:
    tasks = {}
    for slot, container in ((1, "one"), (2, "two"), (3, "gone")):
        tasks[container] = make_task(slot)
        tasks[container] = but(tasks[container], status__container_id=container)
    return LogSource(cast(Containers, cast(Any, containers)), tasks.get)


ASKED = Asked(node="w", tasks=["another's", "one", "gone", "two"], query=LogQuery())


async def test_logs_of_own_tasks_as_they_come() -> None:
    containers = FakeContainers()
    pieces = [read_piece(piece, ASKED.tasks, False) async for piece in source(containers).read(ASKED)]
    assert sorted((place, lines.data) for place, lines in pieces) == [(1, [b"one"]), (3, [b"two"])]
    assert containers.open == 0
    nothing = Asked(node="w", tasks=["another's"], query=LogQuery())
    assert [piece async for piece in source(containers).read(nothing)] == []


async def test_who_leaves_closes_them() -> None:
    containers = FakeContainers()
    containers.endless = True
    async with aclosing(source(containers).read(ASKED)) as pieces:
        await anext(pieces)
        assert containers.open == 2
    assert containers.open == 0


async def test_each_is_read_as_it_is_asked_for_and_when_that_began_is_told_first() -> None:
    containers = FakeContainers()
    queries = [LogQuery(since_ns=number) for number in range(1, 5)]
    asked = Asked(node="w", tasks=ASKED.tasks, query=LogQuery(), queries=queries, begun=True)
    pieces = [read_piece(piece, asked.tasks, False) async for piece in source(containers).read(asked)]
    assert [(place, lines.data) for place, lines in pieces][:2] == [(1, []), (3, [])]
    told = [read_piece(piece, asked.tasks, True)[1].times async for piece in first(source(containers).read(asked), 2)]
    assert told[0] == told[1] and told[0] and told[0][0].startswith(b"20")
    assert containers.queries[:2] == [queries[1], queries[3]] and containers.open == 0


async def first(pieces: AsyncGenerator[bytes], count: int) -> AsyncGenerator[bytes]:
    async with aclosing(pieces):
        for _ in range(count):
            yield await anext(pieces)


class FakeCalls:
    def __init__(self) -> None:
        self.asked: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.sent: dict[bytes, list[bytes]] = {}

    async def wanted(self) -> AsyncGenerator[bytes]:
        while (body := await self.asked.get()) is not None:
            yield body
        raise Unavailable("the manager has gone")

    async def send(self, name: bytes, pieces: AsyncIterator[bytes]) -> None:
        async for piece in pieces:
            self.sent.setdefault(name, []).append(piece)
            if piece == b"last":
                raise Unavailable("nobody reads")


async def test_it_brings_what_is_asked_for_whichever_manager_asks() -> None:
    calls, open = FakeCalls(), 0

    async def read(asked: Asked) -> AsyncGenerator[bytes]:
        nonlocal open
        open += 1
        try:
            for piece in (*asked.tasks, "last", "never"):
                yield piece.encode()
        finally:
            open -= 1

    logs = WorkerLogs(calls, read)
    logs.start()
    logs.start()
    for name in ("1", "2"):
        calls.asked.put_nowait(encoded(Asked(name=name, node="w", tasks=[f"t{name}"], query=LogQuery())))
        calls.asked.put_nowait(None)
    await until_async(lambda: len(calls.sent) == 2 and not open, "both were sent")
    assert calls.sent == {b"1": [b"t1", b"last"], b"2": [b"t2", b"last"]}
    await logs.close()


async def test_what_is_closed_is_not_started_any_more() -> None:
    """All tasks may be told while the worker ends."""

    async def read(asked: Asked) -> AsyncGenerator[bytes]:
        yield b""

    logs = WorkerLogs(FakeCalls(), read)
    await logs.close()
    logs.start()
    assert logs._tasks.count == 0
