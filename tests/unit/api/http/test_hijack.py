"""A connection that leaves HTTP: nothing of the input is lost, and each side ends by itself."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from husk.api.http.hijack import HijackedStream, hijack
from husk.api.http.request import Request
from husk.api.http.response import Answer, Unanswered, fields
from tests.unit.api.http.conftest import serving
from tests.unit.api.loops import on_both_loops, until

UPGRADE = b"POST /attach HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
PLAIN = b"POST /attach HTTP/1.1\r\nHost: x\r\n\r\n"


async def shout(stream: HijackedStream) -> None:
    """Say it all louder, and a last word when the input has ended."""
    while data := await stream.read():
        await stream.write(data.upper())
    await stream.write(b"!")
    await stream.finish()


async def handler(request: Request) -> Answer:
    if request.body is not None:
        assert await request.body.document(100) == b"{}"
    await shout(hijack(request, fields({"Content-Type": "raw"})))
    return Unanswered()


@on_both_loops
async def test_input_cut_at_every_byte_and_its_end(tmp_path: Path) -> None:
    for begin in (UPGRADE, PLAIN, PLAIN[:-2] + b"Content-Length: 2\r\n\r\n{}"):
        data = begin + b"input"
        for cut in (1, len(begin) // 2, *range(len(begin) - 4, len(data) + 1)):
            async with serving(handler, tmp_path) as connect, connect() as client:
                client.send(data[:cut])
                await client.writer.drain()
                client.send(data[cut:])
                client.end()
                head = await client.head()
                assert head.startswith(b"HTTP/1.1 101 UPGRADED\r\n" if begin is UPGRADE else b"HTTP/1.1 200 OK\r\n")
                assert b"Content-Type: raw\r\n" in head and (b"Upgrade: tcp\r\n" in head) is (begin is UPGRADE)
                assert await client.rest() == b"INPUT!"
            (tmp_path / "s").unlink(missing_ok=True)


@on_both_loops
async def test_a_body_that_nobody_reads_is_no_input_wherever_it_is_cut(tmp_path: Path) -> None:
    async def takes(request: Request) -> Answer:
        await shout(hijack(request, b""))
        return Unanswered()

    body = b'{"stream":true,"stdin":true}'
    length = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    for begin in (UPGRADE[:-2] + length, UPGRADE[:-2] + chunks, PLAIN[:-2] + length):
        data = begin + b"input"
        head = data.index(b"\r\n\r\n") + 4
        for cut in (head, head + 1, head + 10, len(begin) - 1, len(begin), len(begin) + 1, len(data)):
            async with serving(takes, tmp_path) as connect, connect() as client:
                client.send(data[:cut])
                await client.head()
                client.send(data[cut:])
                client.end()
                assert await client.rest() == b"INPUT!"
            (tmp_path / "s").unlink(missing_ok=True)


@on_both_loops
async def test_a_broken_body_ends_a_connection_that_was_taken_over(tmp_path: Path) -> None:
    async def takes(request: Request) -> Answer:
        await shout(hijack(request, b""))
        return Unanswered()

    async with serving(takes, tmp_path) as connect, connect() as client:
        client.send(UPGRADE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n")
        await client.head()
        client.send(b"no size\r\ninput")
        client.end()
        assert b"INPUT" not in await client.rest()


@on_both_loops
async def test_the_end_of_input_is_not_the_end_of_output_over_tcp_either(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def waits(request: Request) -> Answer:
        stream = hijack(request, b"")
        assert await stream.read() == b"in"
        assert await stream.read() == b""
        await gate.wait()
        await stream.write(b"out")
        await stream.finish()
        return Unanswered()

    async with serving(waits, tmp_path, tcp=True) as connect, connect() as client:
        client.send(UPGRADE)
        await client.head()
        client.send(b"in")
        client.end()
        asyncio.get_running_loop().call_later(0.05, gate.set)
        assert await client.rest() == b"out"


@on_both_loops
async def test_a_client_that_half_closed_and_then_leaves_is_noticed(tmp_path: Path) -> None:
    ends: list[str] = []

    async def waits(request: Request) -> Answer:
        stream = hijack(request, b"")
        assert await stream.read() == b""
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("ended")
            stream.abort()
        return Unanswered()

    async with serving(waits, tmp_path) as connect:
        async with connect() as client:
            client.send(UPGRADE)
            await client.head()
            client.end()
            await asyncio.sleep(0.02)
            assert not ends
        await until(lambda: ends)


@on_both_loops
async def test_a_client_that_sends_much_waits_for_its_reader(tmp_path: Path) -> None:
    gate = asyncio.Event()
    size = 8 << 20

    async def slow(request: Request) -> Answer:
        stream = hijack(request, b"")
        await gate.wait()
        total = 0
        while data := await stream.read():
            total += len(data)
        await stream.write(b"%d" % total)
        await stream.finish()
        return Unanswered()

    async with serving(slow, tmp_path) as connect, connect() as client:
        client.send(UPGRADE + bytes(size))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.writer.drain(), 0.2)
        gate.set()
        client.end()
        await client.head()
        assert await client.rest() == b"%d" % size


@on_both_loops
async def test_a_connection_whose_end_is_cut_short_is_closed_all_the_same(tmp_path: Path) -> None:
    async def said(request: Request) -> Answer:
        stream = hijack(request, b"")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stream.finish()
        return Unanswered()

    async with serving(said, tmp_path) as connect, connect() as client:
        client.send(UPGRADE)
        await client.head()
        assert await client.rest() == b""
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                client.send(b"more")
                await client.writer.drain()
                await asyncio.sleep(0.01)


class Busy:
    """A connection whose client gets its turn, and reads the head, only after many looks."""

    is_local, ended, gone, write_paused = True, False, False, False

    def __init__(self) -> None:
        self.looks = 0
        self.written: list[tuple[int, bytes]] = []

    def take(self, taker: object, head: bytes) -> bytes:
        return b""

    @property
    def unread_by_client(self) -> int:
        self.looks += 1
        return 200 if self.looks < 90 else 0

    def write_now(self, data: bytes) -> None:
        self.written.append((self.looks, data))


async def test_output_waits_for_a_client_on_a_busy_host_that_has_not_read_the_head_yet() -> None:
    """The Python SDK drops what comes in one piece with the head."""
    connection = Busy()
    stream = HijackedStream(cast(Request, SimpleNamespace(connection=connection)), b"")
    await stream.write(b"x")
    assert connection.written == [(90, b"x")]
