"""Ids of requests: in the answer, and in the log lines written for them."""

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response
from husk.watch import request_id
from tests.unit.api.http.conftest import serving
from tests.unit.api.http.test_server import NUMBERED_GET, mixed
from tests.unit.api.loops import on_both_loops


def id_of(head: bytes) -> bytes:
    return head.partition(b"X-Request-Id: ")[2].partition(b"\r\n")[0]


@on_both_loops
async def test_an_answer_has_the_id_that_its_handler_knew(tmp_path: Path) -> None:
    left = Tasks()
    answered = asyncio.Event()
    after: list[str] = []

    async def behind() -> None:
        await answered.wait()
        after.append(request_id())

    async def in_task_and_thread() -> bytes:
        return f"{request_id()} {await asyncio.to_thread(request_id)}".encode()

    async def handler(request: Request) -> Answer:
        left.spawn(behind(), "left behind")
        return Response(200, await left.spawn(in_task_and_thread(), "helps"))

    async with serving(handler, tmp_path) as connect, connect() as client:
        for _ in range(2):
            client.send(NUMBERED_GET % 1)
            id = id_of(await client.head())
            assert await client.reader.readexactly(2 * len(id) + 1) == id + b" " + id != b" "
        answered.set()
        await left.join()
        assert after == ["", ""]
        assert request_id() == ""


@on_both_loops
async def test_the_id_that_a_client_gives_is_answered(tmp_path: Path) -> None:
    async with serving(mixed, tmp_path) as connect, connect() as client:
        for number in range(4):
            for method in (b"GET", b"POST"):
                head = b"%b /%d HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nX-Request-Id: %b.%d\r\n\r\n"
                client.send(head % (method, number, method, number))
                assert id_of(await client.head()) == b"%b.%d" % (method, number)
                await client.reader.readexactly(2)


@on_both_loops
async def test_the_log_of_a_handler_that_fails_names_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    class Note(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            seen.append(request_id())
            return True

    async def fails_later(request: Request) -> Answer:
        raise ValueError("broken")

    def fails(request: Request) -> Answer | Coroutine[object, object, Answer]:
        if request.raw_path == b"/0":
            raise ValueError("broken")
        return fails_later(request)

    note = Note()
    log = logging.getLogger("husk.api.http.server")
    log.addFilter(note)
    try:
        async with serving(fails, tmp_path) as connect:
            for number in range(2):
                async with connect() as client:
                    client.send(b"GET /%d HTTP/1.1\r\nHost: x\r\nX-Request-Id: broken-%d\r\n\r\n" % (number, number))
                    await client.rest()
    finally:
        log.removeFilter(note)
    assert [id for id in seen if id] == ["broken-0", "broken-1"]
