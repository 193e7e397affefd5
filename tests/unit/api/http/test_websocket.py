"""WebSockets: messages both ways, in pieces too, and the ends of both sides."""

import asyncio
import os
from pathlib import Path

import aiohttp
import pytest

from husk.aio.tasks import Tasks
from husk.api.http import websocket
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, Unanswered
from husk.api.http.websocket import WebSocket
from tests.unit.api.http.conftest import serving
from tests.unit.api.loops import on_both_loops

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


async def echo(request: Request) -> Answer:
    """Sends back what comes; "end" ends it."""
    if not websocket.asked_for(request):
        return Response(400, b"no websocket")
    socket = WebSocket(request)
    async for message in socket:
        if message == "end":
            break
        await socket.send(message)
    await socket.close()
    return Unanswered()


def frame(opcode: int, payload: bytes, fin: bool = True) -> bytes:
    """A frame of a client: its payload is masked, here with zeros."""
    assert len(payload) < 126
    return bytes((opcode | (0x80 if fin else 0), 0x80 | len(payload))) + bytes(4) + payload


@on_both_loops
async def test_a_conversation_with_a_known_client(tmp_path: Path) -> None:
    async with serving(echo, tmp_path):
        connector = aiohttp.UnixConnector(str(tmp_path / "s"))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.ws_connect("http://x/ws") as client,
        ):
            await client.send_bytes(b"bytes")
            assert await client.receive_bytes() == b"bytes"
            await client.send_str("text ä")
            assert await client.receive_str() == "text ä"
            large = os.urandom(300_000)
            await client.send_bytes(large)
            assert await client.receive_bytes() == large
            await client.ping(b"there?")
            await client.send_str("end")
            assert (await client.receive()).type is aiohttp.WSMsgType.CLOSE


@on_both_loops
async def test_messages_cut_at_every_byte(tmp_path: Path) -> None:
    data = HANDSHAKE + frame(2, b"one") + frame(1, b"tw", fin=False) + frame(9, b"!") + frame(0, b"o")
    for cut in (len(HANDSHAKE), *range(1, len(data), 7), *range(len(HANDSHAKE) - 2, len(data))):
        async with serving(echo, tmp_path) as connect, connect() as client:
            client.send(data[:cut])
            await client.writer.drain()
            client.send(data[cut:])
            assert (await client.head()).startswith(b"HTTP/1.1 101 ")
            answers = await client.reader.readexactly(5 + 5 + 3)
            assert b"\x8a\x01!" in answers
            assert answers.replace(b"\x8a\x01!", b"") == b"\x82\x03one\x81\x03two"
        (tmp_path / "s").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /ws HTTP/1.1\r\nHost: x\r\n\r\n",
        HANDSHAKE.replace(b"13", b"12"),
        HANDSHAKE.replace(b"Sec-WebSocket-Key", b"X"),
        HANDSHAKE.replace(b"Upgrade: websocket", b"Upgrade: tcp"),
    ],
)
async def test_what_is_no_handshake_is_not_accepted(tmp_path: Path, head: bytes) -> None:
    async with serving(echo, tmp_path) as connect, connect() as client:
        client.send(head)
        assert await client.answer() == (400, b"no websocket")


@on_both_loops
async def test_a_client_that_closes_is_answered_and_one_that_leaves_is_let_go(tmp_path: Path) -> None:
    async with serving(echo, tmp_path) as connect:
        async with connect() as client:
            client.send(HANDSHAKE + frame(8, b"\x03\xe8"))
            await client.head()
            assert await client.reader.readexactly(4) == b"\x88\x02\x03\xe8"
            assert await client.closed()
        async with connect() as client:
            client.send(HANDSHAKE)
            await client.head()
            client.end()
            assert await client.closed()


@on_both_loops
async def test_others_have_their_turn_while_many_small_frames_are_read(tmp_path: Path) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with serving(echo, tmp_path) as connect, connect() as client:
        client.send(HANDSHAKE)
        await client.head()
        tasks = Tasks()
        tasks.spawn(count(), "count turns")
        client.send(frame(2, b"", fin=False) + frame(0, b"", fin=False) * 20_000 + frame(0, b"x"))
        assert await client.reader.readexactly(3) == b"\x82\x01x"
        await tasks.cancel_all()
        # Each frame has 6 bytes.
        assert turns > 6 * 20_000 // (8 << 10)
