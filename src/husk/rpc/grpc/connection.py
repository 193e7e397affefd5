"""All calls on one connection: bytes go between it and the core of HTTP/2, events to the streams that they are about.

    connection = Connection(stream, client=True)
    async with connection:                      # the bytes are read and written until the block is left
        answer = await connection.unary("/grpc.health.v1.Health/Check", b"")

A server gives a handler for each stream, which is cancelled when its client resets it or goes away.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, Self

from husk.aio.tasks import Tasks
from husk.rpc.grpc.status import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    INTERNAL,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    GrpcError,
    seconds,
    trailers,
)
from husk.rpc.grpc.stream import LARGEST_MESSAGE, ClientStream, Metadata, ServerStream, Stream, metadata_of
from husk.rpc.http2 import errors
from husk.rpc.http2.core import Http2, PeerLimits
from husk.rpc.http2.errors import StreamGone
from husk.rpc.http2.events import (
    ConnectionEnded,
    DataReceived,
    Event,
    GoingAway,
    Headers,
    HeadersReceived,
    PingAnswered,
    StreamReset,
    Writable,
)

log = logging.getLogger(__name__)

# Answers to frames of the peer that it does not read: from then on nothing of it is read.
_MOST_BACKLOG = 1 << 16
# How long a connection that has ended by itself may go on to let the peer read why, in seconds; longer than its
# transport does.
_PARTING = 10.0

Handler = Callable[[ServerStream], Awaitable[None]]


class Bytes(Protocol):
    """The connection below gRPC: one that left HTTP/1.1, or one that began with HTTP/2."""

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def finish(self) -> None: ...

    def abort(self) -> None: ...


class GrpcConnection:
    """One side of a connection. `handler` is what serves calls; without one we only call."""

    # From the beginning of a connection to the first word of the peer, in seconds.
    patience = 60.0

    def __init__(
        self,
        below: Bytes,
        *,
        client: bool = False,
        handler: Handler | None = None,
        limits: PeerLimits | None = None,
        largest: int = LARGEST_MESSAGE,
        most: int | None = None,
    ) -> None:
        """`largest` is for one message, `most` for what is here of the messages of all streams together."""
        self.http = Http2(client=client, limits=limits)
        self.largest = largest
        self._most = most
        self._held: dict[int, int] = {}
        self._held_in_all = 0
        self._below = below
        self._handler = handler
        self._streams: dict[int, Stream] = {}
        self._handling: dict[int, asyncio.Task[None]] = {}
        self._tasks = Tasks()
        self._running: asyncio.Task[None] | None = None
        self._to_write = asyncio.Event()
        self._written = asyncio.Event()
        self._written.set()
        self._slots = asyncio.Event()
        self._pings: dict[bytes, asyncio.Future[None]] = {}
        self._over = asyncio.Event()
        self._deadline: float | None = None
        self._reason = GrpcError(UNAVAILABLE, "the connection has ended")

    # --- its life ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._running = self._tasks.spawn(self._run(), "HTTP/2 connection")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def wait_closed(self) -> None:
        """Until the peer is gone, or we have left."""
        await self._over.wait()

    @property
    def closed(self) -> bool:
        return self._over.is_set()

    async def close(self) -> None:
        """Leave: what is under way ends."""
        if not self._over.is_set():
            self.http.leave()
            self._end()
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._write_all()
            self._below.abort()
        elif self._running is not None:
            # Ended by itself, it still lets the peer read why: not without end, as its transport has it.
            await asyncio.wait([self._running], timeout=_PARTING)
        await self._tasks.cancel_all()

    async def _run(self) -> None:
        writer = self._tasks.spawn(self._write(), "HTTP/2 output", awaited=True)
        try:
            data = await self._read_first()
            while data:
                for turn, events in enumerate(self.http.feed_in_turns(data)):
                    if turn:
                        await asyncio.sleep(0)
                    for event in events:
                        self._take(event)
                self.flush()
                if self.http.over:
                    break
                if self.http.backlog > _MOST_BACKLOG:
                    await self._written.wait()
                data = await (self._below.read() if self.http.settled else self._read_first())
        except (ConnectionError, TimeoutError):
            pass
        finally:
            self._end()
            writer.cancel()
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._write_all()
            await self._below.finish()

    async def _read_first(self) -> bytes:
        """A peer that does not begin is not waited for without end, however slowly it drips."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self.patience
        async with asyncio.timeout_at(self._deadline):
            return await self._below.read()

    def _end(self) -> None:
        """Everyone hears that the connection is over."""
        self._over.set()
        self.http.over = True
        for stream in self._streams.values():
            stream.fail(self._reason)
        for task in self._handling.values():
            task.cancel()
        for ping in self._pings.values():
            ping.cancel()
        self._streams.clear()
        self._slots.set()
        self._written.set()

    def hold(self, number: int, size: int) -> None:
        if self._most is None or number not in self._streams:
            return
        self._held_in_all += size - self._held.get(number, 0)
        self._held[number] = size
        if self._held_in_all > self._most:
            raise GrpcError(RESOURCE_EXHAUSTED, f"more than {self._most} bytes of messages at once")

    def _let_go(self, number: int) -> None:
        self._held_in_all -= self._held.pop(number, 0)

    # --- bytes -------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        self._to_write.set()

    async def writable(self) -> None:
        if not self._written.is_set():
            await self._written.wait()

    async def _write(self) -> None:
        try:
            while True:
                await self._to_write.wait()
                self._to_write.clear()
                self._written.clear()
                await self._write_all()
                self._written.set()
        except ConnectionError:
            self._below.abort()
            self._end()

    async def _write_all(self) -> None:
        if pieces := self.http.outgoing():
            moved = self.http.moved
            await self._below.write(b"".join(pieces))
            for number in moved:
                if (stream := self._streams.get(number)) is not None:
                    stream.make_room()

    # --- calling -----------------------------------------------------------------------------------------------------

    async def call(self, path: str, metadata: Metadata | None = None) -> ClientStream:
        """Begin a call; waits while as many are under way as the peer takes."""
        while not self.http.can_open:
            if self._over.is_set():
                raise self._reason
            self._slots.clear()
            await self._slots.wait()
        headers = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"localhost"),
            (b"content-type", b"application/grpc"),
            (b"user-agent", b"husk"),
            (b"te", b"trailers"),
        ]
        for name, values in (metadata or {}).items():
            headers.extend((name.lower().encode(), value.encode()) for value in values)
        try:
            number = self.http.open(headers)
        except StreamGone as error:
            raise GrpcError(UNAVAILABLE, str(error)) from None
        stream = ClientStream(self, number, path)
        self._streams[number] = stream
        self.flush()
        return stream

    async def unary(
        self, path: str, message: bytes, metadata: Metadata | None = None, timeout: float | None = None
    ) -> bytes:
        """One message there, one message back."""
        try:
            async with asyncio.timeout(timeout), await self.call(path, metadata) as stream:
                with contextlib.suppress(GrpcError):  # why it took no message is what the answer says
                    await stream.send(message)
                await stream.end()
                answer = await stream.recv()
                if answer is None:
                    raise GrpcError(INTERNAL, f"{path} was answered by nothing")
                if await stream.recv() is not None:
                    raise GrpcError(INTERNAL, f"{path} was answered by several messages")
                return answer
        except TimeoutError:
            raise GrpcError(DEADLINE_EXCEEDED, f"{path} was not answered within {timeout} seconds") from None

    async def ping(self) -> None:
        """Until the peer has answered."""
        future = asyncio.get_running_loop().create_future()
        data = self.http.ping()
        self._pings[data] = future
        self.flush()
        try:
            await future
        finally:
            self._pings.pop(data, None)

    # --- events ------------------------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event:
            case DataReceived(number, data, credit, ended):
                if stream := self._streams.get(number):
                    stream.feed(data, credit)
                    if ended:
                        self._ended_by_peer(number, stream)
            case HeadersReceived():
                self._take_headers(event)
            case StreamReset(number, code):
                self._reset(number, code)
            case Writable():
                self.flush()
            case GoingAway():
                self._slots.set()
            case PingAnswered(data):
                if (ping := self._pings.get(data)) and not ping.done():
                    ping.set_result(None)
            case ConnectionEnded(code, reason):
                log.debug("a peer broke the rules of HTTP/2 (%d): %s", code, reason)
                self._reason = GrpcError(UNAVAILABLE, reason)

    def _take_headers(self, event: HeadersReceived) -> None:
        stream = self._streams.get(event.stream)
        if not self.http.client and stream is None:
            self._accept(event)
        elif isinstance(stream, ClientStream):
            if event.ended:
                stream.take_trailers(event.headers)
                self._done(event.stream)
            else:
                stream.take_headers(event.headers)
        elif stream is not None and event.ended:
            stream.finish()

    def _ended_by_peer(self, number: int, stream: Stream) -> None:
        if isinstance(stream, ClientStream):
            stream.fail(GrpcError(INTERNAL, "the peer ended the call without saying how"))
            self._done(number)
        else:
            stream.finish()

    def _reset(self, number: int, code: int) -> None:
        if stream := self._streams.get(number):
            kind = CANCELLED if code == errors.CANCEL else UNAVAILABLE
            stream.fail(GrpcError(kind, f"the peer reset the call (HTTP/2 error {code})"))
            self._done(number)
        if task := self._handling.get(number):
            task.cancel()

    def _done(self, number: int) -> None:
        self._streams.pop(number, None)
        self._let_go(number)
        self._slots.set()

    # --- serving -----------------------------------------------------------------------------------------------------

    def _accept(self, event: HeadersReceived) -> None:
        said = dict(event.headers)
        if said.get(b":method") != b"POST" or not said.get(b"content-type", b"").startswith(b"application/grpc"):
            self._refuse(event.stream, [(b":status", b"415")])
            return
        path = said.get(b":path", b"").decode("latin-1")
        stream = ServerStream(self, event.stream, path, metadata_of(event.headers))
        self._streams[event.stream] = stream
        if event.ended:
            stream.finish()
        task = self._tasks.spawn(self._serve(stream, seconds(said.get(b"grpc-timeout", b""))), f"gRPC {path}")
        self._handling[event.stream] = task
        task.add_done_callback(lambda _: self._handled(event.stream, stream))

    def _handled(self, number: int, stream: Stream) -> None:
        self._handling.pop(number, None)
        self._streams.pop(number, None)
        self._let_go(number)
        stream.discard()

    def _refuse(self, number: int, headers: Headers) -> None:
        self.http.send_headers(number, headers)
        self.http.end(number)
        self.flush()

    async def _serve(self, stream: ServerStream, timeout: float | None) -> None:
        error: GrpcError | None = None
        try:
            if self._handler is None:
                raise GrpcError(UNIMPLEMENTED, "calls are not served here")
            async with asyncio.timeout(timeout):
                await self._handler(stream)
        except GrpcError as failure:
            error = failure
        except TimeoutError:
            error = GrpcError(DEADLINE_EXCEEDED, "the time for the call is over")
        except ConnectionError:
            error = GrpcError(UNAVAILABLE, "the connection has ended")
        except asyncio.CancelledError:
            stream.close(trailers(GrpcError(CANCELLED, "the call was cancelled")))
            raise
        except Exception as failure:
            log.exception("the call %s failed", stream.path)
            error = GrpcError(INTERNAL, f"internal error: {failure}")
        stream.close(trailers(error))
