"""The time that a client may take, and the number of clients that there may be."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from husk.api.http.limits import HttpLimits
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response
from tests.unit.api.http.conftest import serving
from tests.unit.api.http.test_server import NUMBERED_GET, at_once
from tests.unit.api.loops import on_both_loops, until


async def test_a_head_that_takes_too_long(tmp_path: Path) -> None:
    async with (
        serving(at_once, tmp_path, HttpLimits(head_time=0.5)) as connect,
        connect() as client,
        connect() as silent,
    ):
        client.send(NUMBERED_GET % 1)
        assert await client.answer() == (200, b"/1")
        client.send(b"GET / HTTP/1.1\r\n")
        assert (await client.answer())[0] == 408
        assert await client.closed()
        assert await silent.closed()


@pytest.mark.parametrize(
    "head", [b"X: " + b"a" * 300 + b"\r\n", b"A: 1\r\n" * 9, b"X: " + b"a" * 300], ids=["size", "lines", "no end"]
)
async def test_a_head_that_is_too_large(tmp_path: Path, head: bytes) -> None:
    limits = HttpLimits(head_size=200, head_lines=8)
    async with serving(at_once, tmp_path, limits) as connect, connect() as client:
        client.send(NUMBERED_GET % 1 + b"GET /2 HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n" + NUMBERED_GET % 3)
        assert await client.answer() == (200, b"/1")
        assert (await client.answer())[0] == 431
        assert await client.closed()


async def test_a_client_that_idles_too_long(tmp_path: Path) -> None:
    async with serving(at_once, tmp_path, HttpLimits(idle_time=0.5)) as connect, connect() as client:
        client.send(NUMBERED_GET % 1)
        assert await client.answer() == (200, b"/1")
        assert await client.closed()


async def test_a_client_that_waits_for_us_does_not_idle(tmp_path: Path) -> None:
    async def slow(request: Request) -> Answer:
        await asyncio.sleep(0.4)
        return Response(200, b"at last")

    async with serving(slow, tmp_path, HttpLimits(idle_time=0.05, head_time=0.05)) as connect, connect() as client:
        client.send(NUMBERED_GET % 1)
        assert await client.answer() == (200, b"at last")


async def test_connections_have_a_largest_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(at_once, tmp_path, HttpLimits(connections=2)) as connect:
        async with connect() as first, connect() as second:
            for client in (first, second):
                client.send(NUMBERED_GET % 1)
                assert await client.answer() == (200, b"/1")
            async with connect() as third:
                assert (await third.answer())[0] == 503
                assert await third.closed()
        assert "too many connections" in caplog.text

        async def served() -> bool:
            async with connect() as client:
                client.send(NUMBERED_GET % 4)
                return (await client.answer())[0] == 200

        while not await served():
            await asyncio.sleep(0.01)


async def test_an_address_has_a_largest_number_of_connections(tmp_path: Path) -> None:
    limits = HttpLimits(peer_connections=1)
    async with serving(at_once, tmp_path, limits, tcp=True) as connect, connect() as first:
        first.send(NUMBERED_GET % 1)
        assert await first.answer() == (200, b"/1")
        async with connect() as second:
            assert (await second.answer())[0] == 503


async def test_local_clients_have_room_that_others_do_not_take(tmp_path: Path) -> None:
    limits = HttpLimits().within(64)
    assert (limits.connections, limits.remote_connections) == (32, 28)
    async with serving(at_once, tmp_path, HttpLimits(remote_connections=0), tcp=True) as connect, connect() as client:
        assert (await client.answer())[0] == 503
    async with serving(at_once, tmp_path, HttpLimits(remote_connections=0)) as connect, connect() as client:
        client.send(NUMBERED_GET % 1)
        assert await client.answer() == (200, b"/1")


@on_both_loops
async def test_a_flood_of_those_who_are_turned_away_costs_few_descriptors(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with (
        serving(at_once, tmp_path, HttpLimits(connections=1)) as connect,
        connect() as first,
        AsyncExitStack() as all,
    ):
        first.send(NUMBERED_GET % 1)
        assert await first.answer() == (200, b"/1")
        before = descriptors()
        for _ in range(300):
            await all.enter_async_context(connect())
        last = await all.enter_async_context(connect())
        assert (await last.answer())[0] == 503
        # One of each is the client's.
        await until(lambda: descriptors() - before - 301 <= 64)
