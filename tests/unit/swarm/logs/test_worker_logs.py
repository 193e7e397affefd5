import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from husk.engine.logs.records import LogQuery
from husk.errors import Unavailable
from husk.swarm.logs.worker_logs import WorkerLogs
from husk.swarm.port.assignment_messages import encoded
from husk.swarm.port.log_messages import Asked
from tests.support.waiting import until_async


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
