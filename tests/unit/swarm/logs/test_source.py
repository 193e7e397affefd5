import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from husk.engine.containers.service import Containers
from husk.engine.logs.read import Form
from husk.engine.logs.records import Columns, LogQuery
from husk.errors import NotFound
from husk.swarm.logs.source import LogSource
from husk.swarm.port.log_messages import Asked, read_piece
from tests.support.but import but
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
