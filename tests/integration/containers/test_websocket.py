"""Attaching over a WebSocket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.support.daemon import Daemon


@asynccontextmanager
async def socket(
    daemon: Daemon, name: str, query: str, version: str = "1.44"
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    connector = aiohttp.UnixConnector(str(daemon.socket_path))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.ws_connect(f"http://d/v{version}/containers/{name}/attach/ws?{query}") as connection,
    ):
        yield connection


async def read_until(connection: aiohttp.ClientWebSocketResponse, wanted: bytes) -> bytes:
    data = b""
    async with asyncio.timeout(20):
        while wanted not in data:
            message = await connection.receive()
            assert message.type is aiohttp.WSMsgType.BINARY, (message, data)
            data += message.data
    return data


async def test_a_conversation(daemon: Daemon):
    daemon.docker("run", "-di", "--name", "box", "busybox", "cat")
    async with socket(daemon, "box", "stream=1&stdin=1&stdout=1&stderr=1") as connection:
        await connection.send_bytes(b"hello\n")
        assert await read_until(connection, b"hello\n") == b"hello\n"
        await connection.send_str("text too\n")
        assert await read_until(connection, b"too\n") == b"text too\n"
    assert daemon.docker("inspect", "-f", "{{.State.Running}}", "box").stdout == "true\n"


async def test_a_terminal(daemon: Daemon):
    daemon.docker("run", "-dit", "--name", "box", "busybox", "sh")
    async with socket(daemon, "box", "stream=1&stdin=1&stdout=1") as connection:
        await connection.send_bytes(b"echo $((40+2))\n")
        await read_until(connection, b"42\r\n")
        await connection.send_bytes(b"\x10\x11")
        async with asyncio.timeout(20):
            while (await connection.receive()).type is aiohttp.WSMsgType.BINARY:
                pass
    assert daemon.docker("inspect", "-f", "{{.State.Running}}", "box").stdout == "true\n"


async def test_the_end_of_the_container_closes_it(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sh", "-c", "echo before; sleep 1; echo after")
    async with socket(daemon, "box", "stream=1&logs=1&stdout=1&stderr=1") as connection:
        data = await read_until(connection, b"after\n")
        assert data == b"before\nafter\n"
        async with asyncio.timeout(20):
            assert (await connection.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


def test_without_a_websocket_it_is_an_error(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    assert daemon.http("GET", "/containers/box/attach/ws?stream=1").status == 400
    assert daemon.http("GET", "/containers/nobody/attach/ws?stream=1").status == 404


async def test_a_client_from_before_1_28_gets_text(daemon: Daemon):
    daemon.docker("run", "-di", "--name", "box", "busybox", "cat")
    async with socket(daemon, "box", "stream=1", "1.27") as connection:
        await connection.send_str("old\n")
        message = await connection.receive(20)
        assert (message.type, message.data) == (aiohttp.WSMsgType.TEXT, "old\n")
