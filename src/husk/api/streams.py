"""How is a connection taken from HTTP? After `hijack` it carries the container's bytes, both ways.

aiohttp serves HTTP on it first, behind `Connection`, which passes everything on. Three things aiohttp does not do, and
docker's clients need, are done here:
- `echo hi | docker run -i` half-closes and waits for the output: the end of input is not the end of the connection.
- Input may follow the request at once; aiohttp's parser keeps such bytes only for upgrades to WebSocket.
- A client that half-closed may leave later; then its handler must end.
"""

import asyncio
import contextlib
import fcntl
import os
import select
import socket
import sys
import termios
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TypeVar, cast

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from husk.api.heads import is_unfinished, upgradable, without_repeats
from husk.api.uploads import HeldBody, request_with_held_body
from husk.errors import InvalidParameter

T = TypeVar("T")

INPUT_LIMIT = 1 << 18
LINGER = 5.0
# How many milliseconds a client may take to read the head of an answer before the stream follows anyway.
_HEAD_PATIENCE = 50


@contextlib.asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Iterate and let go: a client that leaves must not keep a log open or a listener waiting."""
    try:
        yield items
    finally:
        if (close := getattr(items, "aclose", None)) is not None:
            await close()


class Unanswered(web.StreamResponse):
    """What aiohttp gets when there is nothing for it to answer on: the connection was taken, or lost. It closes it."""

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


class Connection(asyncio.Protocol):
    """A client's connection. Once taken from HTTP: `read` until b"", `write` with backpressure, `finish` or `abort`."""

    def __init__(self, http: RequestHandler) -> None:
        self._http = http
        self._taken = False
        self._upgrading = False
        # The head of a request, as far as it has come.
        self._head = b""
        # The body of the last request that aiohttp has parsed the head of.
        self._body: StreamReader | None = None
        self.held_body: HeldBody | None = None
        self._input: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._lost = False
        self._reading_paused = False
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._hangup: select.epoll | None = None
        self._head_read = False

    def take(self) -> None:
        """From now on bytes are ours; those that came behind the request are the first of them."""
        # aiohttp's own way to hand over what it has read, typed for its WebSocket reader alone.
        self._http.set_parser(cast("web.WebSocketReader", _Tail(self)))  # type: ignore[name-defined]
        self._taken = True
        if self._head:
            # No head of another request, then: input.
            self.keep(self._head)
            self._head = b""

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

    def begun_input(self) -> bytes:
        """What has come and was not read yet; it stays."""
        if len(self._input) > 1:
            self._input = deque([b"".join(self._input)])
        return self._input[0] if self._input else b""

    async def more_input(self) -> bool:
        """Wait until more has come; False when the client sends no more."""
        if not self._ended:
            self._readable.clear()
            await self._readable.wait()
        return not self._ended

    def let_go_of_input(self) -> tuple[int, bytes]:
        """Read no more. (a descriptor of the socket for whoever reads on, and closes it; what was read before)"""
        if not self._reading_paused and not self._ended:
            self._reading_paused = True
            self._transport.pause_reading()
        begun = b"".join(self._input)
        self._input.clear()
        self._size = 0
        return self.duplicate(), begun

    def duplicate(self) -> int:
        """A descriptor of the socket. Ours goes when the client does, and its number may then be another client's."""
        assert self._socket is not None
        return os.dup(self._socket.fileno())

    def take_input_back(self) -> None:
        if self._reading_paused and not self._ended and not self._lost:
            self._reading_paused = False
            self._transport.resume_reading()

    async def write(self, data: bytes) -> None:
        if not self._head_read:
            await self._let_head_be_read()
        if self._lost:
            raise ConnectionResetError("the client has gone")
        self._transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()
            if self._lost:
                raise ConnectionResetError("the client has gone")

    async def _let_head_be_read(self) -> None:
        """Let the client read the head of the answer before the stream begins.

        The Python SDK (7.2) reads the head through a buffer that it then drops, with whatever came right behind it.
        """
        self._head_read = True
        if not self.is_local or self._socket is None:
            return
        for _ in range(_HEAD_PATIENCE):
            if self._lost or not _unread(self._socket.fileno()):
                return
            await asyncio.sleep(0.001)

    async def finish(self) -> None:
        """Everything is said: let the client read it all before the connection goes.

        Closing while bytes of the client are unread makes the kernel throw away what the client has not read yet.
        """
        if not self._lost and not self._ended and self._transport.can_write_eof():
            self._transport.write_eof()
            await self.drain()
        self._transport.close()

    async def drain(self) -> None:
        """Read what the client still sends, for a while, and forget it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while await self.read():
                    pass

    def abort(self) -> None:
        self._transport.abort()

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._http.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._taken or self.held_body is not None:
            self.keep(data)
            return
        if not self._begins_request:
            self._parse(data)
            return
        data, self._head = self._head + data, b""
        if is_unfinished(data):
            self._head = data
            return
        data = without_repeats(data)
        if self.is_local and (held := request_with_held_body(data)) is not None:
            self.held_body = HeldBody(self, held.length)
            self.keep(held.begun)
            self._parse(held.head)
        else:
            readable = upgradable(data)
            self._upgrading = readable is not data
            self._parse(readable)

    def _parse(self, data: bytes) -> None:
        self._http.data_received(data)
        if self._http._messages:
            self._body = self._http._messages[-1][1]

    @property
    def _begins_request(self) -> bool:
        """Is what comes next the beginning of a request, and no part of a body or input?

        A client that has read an answer may send its next request before aiohttp knows that the last one is done.
        """
        return not self._busy or (self._request_complete and not self._http._upgraded)

    def keep(self, data: bytes) -> None:
        self._input.append(data)
        self._size += len(data)
        self._readable.set()
        if self._size > INPUT_LIMIT and not self._reading_paused and not self._ended:
            self._reading_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._ended = True
        self._readable.set()
        if not self._taken:
            if not self._busy or not (self.is_local or self._upgrading) or not self._request_complete:
                return False  # over TCP a client that leaves looks like one that half-closes, and most leave
            self._http.close()  # after the answer that is under way
        self._watch_hangup()
        return True

    @property
    def _request_complete(self) -> bool:
        """Is the whole body of the last request here? What is missing at the end of input never comes."""
        return self._body is None or self._body.is_eof()

    def pause_writing(self) -> None:
        self._writable.clear()
        if not self._taken:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        self._writable.set()
        if not self._taken:
            self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = self._lost = True
        self._readable.set()
        self._writable.set()
        self._forget_hangup()
        # aiohttp counts its connections and cancels the handler of a lost one.
        self._http.connection_lost(exc)
        # It tells the body of a request that it still serves; work may go on that outlasts its request.
        if self._body is not None and not self._body.is_eof() and self._body.exception() is None:
            self._body.set_exception(ConnectionResetError("the client has gone"))

    @property
    def _busy(self) -> bool:
        """Is a request being served, or about to be? aiohttp has no public word for it; idle, it waits for one."""
        waiter = self._http._waiter
        return self._http._request_count > 0 and (waiter is None or waiter.done())

    @property
    def is_local(self) -> bool:
        return self._socket is not None and self._socket.family == socket.AF_UNIX

    @property
    def _socket(self) -> socket.socket | None:
        return cast("socket.socket | None", self._transport.get_extra_info("socket"))

    def _watch_hangup(self) -> None:
        """After the end of input the transport reads no more, so it would not see the client leave for good.

        An epoll with no events wanted reports only hang-up and error, and can itself be watched by the loop.
        """
        if self._socket is None or self._hangup is not None:
            return
        self._hangup = select.epoll()
        self._hangup.register(self._socket.fileno(), 0)
        asyncio.get_running_loop().add_reader(self._hangup.fileno(), self._hung_up)

    def _hung_up(self) -> None:
        self._forget_hangup()
        self.abort()

    def _forget_hangup(self) -> None:
        if self._hangup is not None:
            asyncio.get_running_loop().remove_reader(self._hangup.fileno())
            self._hangup.close()
            self._hangup = None


def _unread(fd: int) -> int:
    """How much of what was sent on a Unix socket its other end has not read (as the kernel accounts for it)."""
    return int.from_bytes(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


class _Tail:
    """What aiohttp gives unread bytes to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._connection.keep(data)
        return False, b""

    def feed_eof(self) -> None:
        return None


def _connection(request: web.Request) -> Connection | None:
    protocol = request.transport.get_protocol() if request.transport is not None else None
    return protocol if isinstance(protocol, Connection) else None


async def body_of(request: web.Request, largest: int) -> AsyncIterator[bytes]:
    """The request's body as it arrives, in pieces of up to `largest` bytes; all of it, also if the client has left."""
    content = request.content
    try:
        while chunk := await content.read(largest):
            yield chunk
    except OSError:
        if not content.is_eof():
            raise InvalidParameter("unexpected EOF: the client left before it had sent all") from None
        # All of it had come; aiohttp only refuses to give out what it still has.
        while chunk := content._read_nowait(largest):
            yield chunk


def held_body(request: web.Request) -> HeldBody | None:
    """The body of this request, if it is one that aiohttp does not see."""
    connection = _connection(request)
    return connection.held_body if connection is not None else None


@contextlib.contextmanager
def outlet_of(request: web.Request) -> Iterator[int | None]:
    """A descriptor of the client's socket for whoever sends the body of the answer, in chunks; None if nobody can."""
    connection = _connection(request)
    if connection is None or not connection.is_local or request.version < HttpVersion11:
        yield None
        return
    descriptor = connection.duplicate()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def all_sent(request: web.Request) -> None:
    """Wait until nothing of the answer is left in this process, so that somebody else can send on."""
    pause = 0.0  # one turn of the loop, unless the client has not read its last answers
    while (transport := request.transport) is not None:
        if not transport.get_write_buffer_size():
            return
        await asyncio.sleep(pause)
        pause = 0.001
    raise ConnectionResetError("the client has gone")


def hijack(request: web.Request, content_type: str, headers: Mapping[str, str]) -> Connection:
    """Answer (101 to a client that asks to upgrade, else 200) and take the connection over."""
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client has gone")
    connection = transport.get_protocol()
    if not isinstance(connection, Connection):
        raise TypeError("the connection is not served by husk.api.server.serve")
    connection.take()
    if "Upgrade" in request.headers:
        lines = ["HTTP/1.1 101 UPGRADED", "Connection: Upgrade", "Upgrade: tcp"]
    else:
        lines = ["HTTP/1.1 200 OK"]
    lines += [f"Content-Type: {content_type}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    transport.write("\r\n".join(lines).encode())
    return connection
