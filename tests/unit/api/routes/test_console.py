"""Logs and attach: framing by kind of container, half-close, early bytes, detaching, backpressure."""

import asyncio
import contextlib
import fcntl
import sys
import termios
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp import ClientSession

from husk.api.edge.server import ApiEdge, serve
from husk.api.streams.framing import MULTIPLEXED_STREAM, RAW_STREAM, frame
from husk.engine.logs.records import LogQuery
from husk.engine.model.container_config import ContainerConfig
from tests.unit.api.fake_engine import FakeAttachment, FakeEngine, container
from tests.unit.api.loops import on_both_loops, until

if TYPE_CHECKING:
    from husk.composition import Engine

T = b"2026-01-02T03:04:05.000000006Z"


# logs


async def test_logs_ask_for_what_the_client_asked(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(container("web"))
    await client.get("/containers/web/logs?stdout=1&follow=true&tail=5&since=1.5&until=2")
    await client.get("/containers/web/logs?stderr=1&tail=all&follow=0&since=0")
    assert engine.containers.queries == [
        LogQuery(stdout=True, stderr=False, follow=True, tail=5, since_ns=1_500_000_000, until_ns=2_000_000_000),
        LogQuery(stdout=False, stderr=True, follow=False, tail=None, since_ns=0),
    ]


async def test_logs_need_a_stream(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(container("web"))
    response = await client.get("/containers/web/logs")
    assert response.status == 400
    assert (await response.json())["message"] == "Bad parameters: you must choose at least one stream"


@pytest.mark.parametrize(
    ("tty", "version", "content_type", "body"),
    [
        (True, "1.55", RAW_STREAM, T + b" hi\n"),
        (False, "1.55", MULTIPLEXED_STREAM, frame(1, T + b" hi\n")),
        (False, "1.41", RAW_STREAM, frame(1, T + b" hi\n")),
    ],
)
async def test_logs_are_framed_without_a_terminal(
    client: ClientSession, engine: FakeEngine, tty: bool, version: str, content_type: str, body: bytes
) -> None:
    engine.containers.add(container("web", config=ContainerConfig(image="busybox", tty=tty)))
    engine.containers.log = [T + b" stdout F hi\n"]
    response = await client.get(f"/v{version}/containers/web/logs?stdout=1&timestamps=1")
    assert response.headers["Content-Type"] == content_type
    assert await response.read() == body


# attach, over a real socket and by hand, because no client library shows these edges


class Line:
    """A client's end of a hijacked connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @staticmethod
    def head(query: str, upgrade: bool = True) -> bytes:
        headers = "Connection: Upgrade\r\nUpgrade: tcp\r\n" if upgrade else ""
        return f"POST /v1.50/containers/web/attach?{query} HTTP/1.1\r\nHost: docker\r\n{headers}\r\n".encode()

    async def request(self, query: str, *, upgrade: bool = True, early: bytes = b"") -> bytes:
        self.writer.write(self.head(query, upgrade) + early)
        return await self.reader.readuntil(b"\r\n\r\n")

    async def said(self, data: bytes) -> list[tuple[int, bytes]]:
        """All that comes back when this is all that goes in."""
        self.writer.write(data)
        self.writer.write_eof()
        return await self.frames()

    async def frames(self) -> list[tuple[int, bytes]]:
        found, data = [], await self.reader.read()
        while data:
            length = int.from_bytes(data[4:8])
            found.append((data[0], data[8 : 8 + length]))
            data = data[8 + length :]
        return found


@contextlib.asynccontextmanager
async def connected(socket: Path) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_unix_connection(str(socket))
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


async def seen_by_the_daemon(line: Line) -> None:
    """Wait until the other end has read what was sent."""
    descriptor = line.writer.get_extra_info("socket").fileno()
    await until(lambda: not int.from_bytes(fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)), sys.byteorder))


@contextlib.asynccontextmanager
async def attached(engine: FakeEngine, path: Path) -> AsyncIterator[Line]:
    socket = path / "husk.sock"
    app = ApiEdge(cast("Engine", engine))
    async with asyncio.timeout(10), serve(app, [f"unix://{socket}"], group=""), connected(socket) as line:
        yield line


def prepare(engine: FakeEngine, *, tty: bool = False, endless: bool = False) -> FakeAttachment:
    engine.containers.add(container("web"))
    engine.containers.attachment = FakeAttachment(tty, endless)
    return engine.containers.attachment


QUERY = "stream=1&stdin=1&stdout=1&stderr=1"


@on_both_loops
async def test_an_upgrade_is_answered_with_101_and_all_headers(engine: FakeEngine, tmp_path: Path) -> None:
    prepare(engine)
    async with attached(engine, tmp_path) as line:
        head = (await line.request("stream=1&stdout=1&logs=0")).decode()
        assert head.startswith("HTTP/1.1 101 UPGRADED\r\n")
        for header in (
            "Connection: Upgrade",
            "Upgrade: tcp",
            f"Content-Type: {MULTIPLEXED_STREAM}",
            "Api-Version: 1.55",
            "Ostype: linux",
        ):
            assert f"\r\n{header}\r\n" in head
    assert engine.containers.attached == {
        "stdin": False,
        "stdout": True,
        "stderr": False,
        "logs": False,
        "stream": True,
    }


@on_both_loops
async def test_without_upgrade_the_answer_is_200(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine)
    async with attached(engine, tmp_path) as line:
        assert (await line.request(QUERY, upgrade=False)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await line.said(b"hi") == [(1, b"hi"), (2, b"bye")]
    assert attachment.was_closed.is_set()


@on_both_loops
async def test_the_end_of_input_is_not_the_end_of_output(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine)
    async with attached(engine, tmp_path) as line:
        await line.request(QUERY)
        line.writer.write(b"hello")
        line.writer.write_eof()
        await attachment.stdin_closed.wait()
        assert await line.frames() == [(1, b"hello"), (2, b"bye")]
    assert attachment.received == b"hello"


@on_both_loops
async def test_bytes_that_come_with_the_request_are_not_lost(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine)
    early = b"x" * 300_000
    async with attached(engine, tmp_path) as line:
        await line.request(QUERY, early=early)
        assert b"".join(data for _, data in await line.said(b"later")) == early + b"later" + b"bye"
    assert attachment.received == early + b"later"


async def test_a_head_may_be_cut_at_any_byte_with_input_behind_it(engine: FakeEngine, tmp_path: Path) -> None:
    engine.containers.add(container("web"))
    socket = tmp_path / "husk.sock"
    async with serve(ApiEdge(cast("Engine", engine)), [f"unix://{socket}"], group=""):
        head = Line.head(QUERY)
        for cut in range(1, len(head)):
            engine.containers.attachment = attachment = FakeAttachment(tty=False, endless=False)
            async with asyncio.timeout(10), connected(socket) as line:
                line.writer.write(head[:cut])
                await seen_by_the_daemon(line)
                line.writer.write(head[cut:] + b"early")
                assert (await line.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 "), cut
                line.writer.write_eof()
                assert await line.frames() == [(1, b"early"), (2, b"bye")], cut
            assert attachment.received == b"early", cut


@on_both_loops
async def test_a_cut_head_behind_another_request_keeps_its_input(engine: FakeEngine, tmp_path: Path) -> None:
    prepare(engine)
    async with attached(engine, tmp_path) as line:
        head = line.head(QUERY)
        line.writer.write(b"GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n")
        assert (await line.reader.readuntil(b"\r\n\r\nOK")).startswith(b"HTTP/1.1 200 ")
        line.writer.write(head[:70])
        await seen_by_the_daemon(line)
        line.writer.write(head[70:] + b"early")
        assert (await line.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        line.writer.write_eof()
        assert await line.frames() == [(1, b"early"), (2, b"bye")]


async def test_what_is_no_http_is_refused_at_once(engine: FakeEngine, tmp_path: Path) -> None:
    async with attached(engine, tmp_path) as line:
        line.writer.write(b"HELLO\r\n")
        assert (await line.reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 400 ")


@on_both_loops
async def test_a_whole_conversation_may_come_at_once(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine)
    async with attached(engine, tmp_path) as line:
        line.writer.write(line.head(QUERY) + b"hello")
        line.writer.write_eof()
        assert (await line.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        assert await line.frames() == [(1, b"hello"), (2, b"bye")]
    assert attachment.was_closed.is_set()


@on_both_loops
async def test_a_refused_upgrade_ends_the_connection(engine: FakeEngine, tmp_path: Path) -> None:
    async with attached(engine, tmp_path) as line:
        assert (await line.request(QUERY)).startswith(b"HTTP/1.1 404 ")
        assert await line.reader.read() == b"No such container: web\r\n"


@on_both_loops
async def test_a_terminal_is_raw_and_can_be_left(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine, tty=True, endless=True)
    async with attached(engine, tmp_path) as line:
        assert f"Content-Type: {RAW_STREAM}\r\n".encode() in await line.request(QUERY)
        line.writer.write(b"ls\x10")
        assert await line.reader.readexactly(2) == b"ls"
        line.writer.write(b"\x11ignored")
        assert await line.reader.read() == b""
    assert attachment.was_detached
    assert attachment.received == b"ls"
    assert attachment.was_closed.is_set()


@on_both_loops
async def test_detach_keys_mean_nothing_without_a_terminal(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine)
    async with attached(engine, tmp_path) as line:
        await line.request(QUERY)
        assert await line.said(b"\x10\x11") == [(1, b"\x10\x11"), (2, b"bye")]
    assert not attachment.was_detached


async def test_wrong_detach_keys_are_refused_before_the_upgrade(client: ClientSession, engine: FakeEngine) -> None:
    prepare(engine, tty=True)
    response = await client.post("/containers/web/attach?detachKeys=ctrl-1")
    assert (response.status, await response.read()) == (400, b"Invalid detach keys (ctrl-1) provided\r\n")


async def test_an_unknown_container_is_a_plain_404(client: ClientSession) -> None:
    response = await client.post("/containers/nope/attach", headers={"Connection": "Upgrade", "Upgrade": "tcp"})
    assert (response.status, await response.read()) == (404, b"No such container: nope\r\n")


@on_both_loops
async def test_all_output_arrives_however_slow_the_client(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine, tty=True)
    async with attached(engine, tmp_path) as line:
        await line.request(QUERY)
        for _ in range(64):
            attachment.feed.put_nowait((1, b"y" * 65536))
        await asyncio.sleep(0.05)
        assert attachment.feed.qsize() > 0, "a client that does not read must hold the output back"
        attachment.feed.put_nowait(None)
        assert len(await line.reader.read()) == 64 * 65536
    assert attachment.was_closed.is_set()


@pytest.mark.parametrize("half_closed", [False, True])
@on_both_loops
async def test_a_client_that_leaves_lets_go_of_the_container(
    engine: FakeEngine, tmp_path: Path, half_closed: bool
) -> None:
    attachment = prepare(engine, endless=True)
    async with attached(engine, tmp_path) as line:
        await line.request(QUERY)
        if half_closed:
            line.writer.write_eof()
            await attachment.stdin_closed.wait()
        line.writer.close()
        await attachment.was_closed.wait() if half_closed else await attachment.stdin_closed.wait()
        await attachment.was_closed.wait()


@on_both_loops
async def test_shutting_down_ends_attachments(engine: FakeEngine, tmp_path: Path) -> None:
    attachment = prepare(engine, endless=True)
    async with attached(engine, tmp_path) as line:
        await line.request(QUERY)
    assert attachment.was_closed.is_set()
