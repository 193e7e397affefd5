"""How is a connection taken from HTTP? After `hijack` it carries the container's bytes, both ways.

aiohttp's own upgrade path closes a connection whose client half-closes it, but `echo hi | docker run -i` half-closes
and then waits for the output: end of input must not be end of output. So the connection gets a protocol of ours.
"""

import asyncio
import contextlib
import select
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_request import BaseRequest

T = TypeVar("T")

INPUT_LIMIT = 1 << 18
LINGER = 5.0


@contextlib.asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Iterate and let go: a client that leaves must not keep a log open or a listener waiting."""
    try:
        yield items
    finally:
        if (close := getattr(items, "aclose", None)) is not None:
            await close()


class Hijacked(web.StreamResponse):
    """What a handler returns when the connection is no longer aiohttp's to answer on."""

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


class Connection(asyncio.Protocol):
    """A client's connection after HTTP: `read` until b"", `write` with backpressure, `finish` or `abort`."""

    def __init__(self, transport: asyncio.Transport, previous: asyncio.Protocol, unread: bytes) -> None:
        self._transport = transport
        self._previous = previous
        self._input: deque[bytes] = deque([unread] if unread else [])
        self._size = len(unread)
        self._ended = False
        self._lost = False
        self._reading_paused = False
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._hangup: select.epoll | None = None

    async def read(self) -> bytes:
        """The next bytes of the client; b"" when it sends no more."""
        while not self._input:
            if self._ended:
                return b""
            self._readable.clear()
            await self._readable.wait()
        data = b"".join(self._input)
        self._input.clear()
        self._size = 0
        if self._reading_paused and not self._ended:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        if self._lost:
            raise ConnectionResetError("the client has gone")
        self._transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()
            if self._lost:
                raise ConnectionResetError("the client has gone")

    async def finish(self) -> None:
        """Everything is said: let the client read it all before the connection goes.

        Closing while bytes of the client are unread makes the kernel throw away what the client has not read yet.
        """
        if not self._lost and not self._ended and self._transport.can_write_eof():
            self._transport.write_eof()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while await self.read():
                        pass
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # what the transport calls

    def data_received(self, data: bytes) -> None:
        self._input.append(data)
        self._size += len(data)
        self._readable.set()
        if self._size > INPUT_LIMIT and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._ended = True
        self._readable.set()
        self._watch_hangup()
        return True

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = self._lost = True
        self._readable.set()
        self._writable.set()
        self._forget_hangup()
        # aiohttp counts its connections and cancels the handler of a lost one.
        self._previous.connection_lost(exc)

    def _watch_hangup(self) -> None:
        """After end of input the transport reads no more, so it would not see the client leave for good.

        An epoll with no events wanted reports only hang-up and error, and can itself be watched by the loop.
        """
        socket = self._transport.get_extra_info("socket")
        if socket is None or self._hangup is not None:
            return
        self._hangup = select.epoll()
        self._hangup.register(socket.fileno(), 0)
        asyncio.get_running_loop().add_reader(self._hangup.fileno(), self._hung_up)

    def _hung_up(self) -> None:
        self._forget_hangup()
        self.abort()

    def _forget_hangup(self) -> None:
        if self._hangup is not None:
            asyncio.get_running_loop().remove_reader(self._hangup.fileno())
            self._hangup.close()
            self._hangup = None


class _Tail:
    """Collects what aiohttp had read past the request: the first bytes of the new stream."""

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        return None


def hijack(request: web.Request, content_type: str, headers: Mapping[str, str]) -> Connection:
    """Answer (101 to a client that asks to upgrade, else 200) and take the connection over."""
    previous = request.protocol
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client has gone")
    tail = _Tail()
    previous.set_parser(tail)  # type: ignore[arg-type]  # aiohttp's way to hand over unread bytes; it names WebSocket only
    connection = Connection(transport, previous, tail.data)
    transport.set_protocol(connection)
    if "Upgrade" in request.headers:
        lines = ["HTTP/1.1 101 UPGRADED", "Connection: Upgrade", "Upgrade: tcp"]
    else:
        lines = ["HTTP/1.1 200 OK"]
    lines += [f"Content-Type: {content_type}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    transport.write("\r\n".join(lines).encode())
    return connection
