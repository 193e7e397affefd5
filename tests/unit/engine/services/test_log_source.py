import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from husk.engine.containers.service import Containers
from husk.engine.logs.read import Form
from husk.engine.logs.records import Lines, LogQuery
from husk.engine.services.log_messages import Asked, read_piece
from husk.engine.services.log_source import LogSource
from husk.errors import NotFound

from .test_planner import make_task


class FakeContainers:
    def __init__(self) -> None:
        self.open = 0
        self.endless = False

    def logs(self, reference: str, query: LogQuery, form: Form[bytes]) -> AsyncGenerator[bytes]:
        if reference == "gone":
            raise NotFound("No such container: gone")
        return self._log(reference, form)

    async def _log(self, reference: str, form: Form[bytes]) -> AsyncGenerator[bytes]:
        self.open += 1
        try:
            yield form.encode(Lines([b"stdout F"], [reference.encode()]))
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.open -= 1


def source(containers: FakeContainers) -> LogSource:
    tasks = {}
    for slot, container in ((1, "one"), (2, "two"), (3, "gone")):
        tasks[container] = make_task(slot)
        tasks[container].status.container_id = container
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
