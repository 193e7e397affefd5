"""HTTP/1.1 from the client's side: one connection, requests one after the other, until one takes it over.

Knows how requests are written and answers are read; what they mean is said in `calls`.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import httptools

from husk.errors import Unavailable

if TYPE_CHECKING:
    import asyncio

_PIECE = 1 << 16
# A body: all of it, or its pieces as they come.
Content = bytes | AsyncIterable[bytes]
# Starts a task that sends a body while its answer is read.
Aside = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class Reader(Protocol):
    """The source of incoming bytes: as much of asyncio's `StreamReader` as is needed here."""

    async def read(self, n: int = -1, /) -> bytes: ...

    def at_eof(self) -> bool: ...


class Writer(Protocol):
    """The sink of outgoing bytes: as much of asyncio's `StreamWriter` as is needed here."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None: ...

    def can_write_eof(self) -> bool: ...

    def write_eof(self) -> None: ...

    def is_closing(self) -> bool: ...

    def close(self) -> None: ...


class Connection:
    """One connection to an engine."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self.reader = reader
        self.writer = writer

    @property
    def alive(self) -> bool:
        return not (self.writer.is_closing() or self.reader.at_eof())

    async def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        content: Content,
        aside: Aside | None = None,
    ) -> "Response":
        """Send a request; the answer as soon as its head is there. `aside` sends a body of several pieces meanwhile.

        ConnectionError where the other side closes the connection before it.
        """
        response = Response(self, method)
        try:
            self.writer.write(_head(method, target, headers, content))
            if isinstance(content, bytes):
                self.writer.write(content)
                await self.writer.drain()
            else:
                if aside is None:
                    raise RuntimeError("a body of several pieces needs an event loop")
                response.body_sent = aside(self._send_pieces(content))
                # An answer that came before the body had failed is all that its caller looks at.
                response.body_sent.add_done_callback(lambda sent: sent.cancelled() or sent.exception())
            await response.read_head()
        except BaseException:
            response.close()
            raise
        return response

    async def _send_pieces(self, content: AsyncIterable[bytes]) -> None:
        try:
            async for piece in content:
                if piece:
                    self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await self.writer.drain()
            self.writer.write(b"0\r\n\r\n")
            await self.writer.drain()
        except ConnectionError:
            return  # an answer that came before says why; if there is none, its reader says so
        except BaseException:
            self.close()  # half a body is never answered
            raise

    def close(self) -> None:
        self.writer.close()


# Makes a new connection; Unavailable says why it cannot.
Dial = Callable[[], Awaitable[Connection]]


def unreached(address: str, error: OSError) -> Unavailable:
    return Unavailable(
        f"cannot reach an engine at {address}: {error.strerror or error}. Is it running, and may you use it?"
    )


def _head(method: str, target: str, headers: Mapping[str, str], content: Content) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: husk", *(f"{name}: {value}" for name, value in headers.items())]
    if not isinstance(content, bytes):
        lines.append("Transfer-Encoding: chunked")
    elif content or method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


class Response:
    """An answer. Its body is read once: whole with `read`, in pieces with `pieces`, or both ways with `take_over`."""

    def __init__(self, connection: Connection, method: str) -> None:
        self._connection = connection
        self._has_no_body = method == "HEAD"
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._head_read = False
        self._upgraded = False
        self.complete = False
        self.keep_alive = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body_sent: asyncio.Task[None] | None = None

    # what the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status == 100:
            self.headers.clear()
            return
        self._head_read = True
        self.keep_alive = bool(self._parser.should_keep_alive())
        if self._has_no_body:
            self.complete, self.keep_alive = True, False

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if self.status != 100:
            self.complete = True

    # what callers ask

    async def read_head(self) -> None:
        while not self._head_read:
            if not await self._more():
                raise ConnectionResetError("the engine closed the connection without an answer")

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def next(self) -> bytes:
        """Return the part of the body that has come since, empty at its end. A cancelled call loses nothing of it."""
        while not self._pieces:
            if self.complete:
                return b""
            if not await self._more():
                raise Unavailable("the engine closed the connection in the middle of an answer")
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. The connection is closed when the caller leaves before its end."""
        try:
            while True:
                pieces, self._pieces = self._pieces, []
                for piece in pieces:
                    yield piece
                if self._pieces:
                    continue
                if self.complete:
                    return
                if not await self._more():
                    if self._ends_with_connection:
                        self.complete = True
                        continue
                    raise Unavailable("the engine closed the connection in the middle of an answer")
        finally:
            if not self.complete:
                self.close()

    @property
    def reusable(self) -> bool:
        """True if the connection can be used for another request."""
        sent = self.body_sent is None or self.body_sent.done()
        return self.complete and self.keep_alive and not self._upgraded and sent and self._connection.alive

    def take_over(self) -> tuple[bytes, Reader, Writer]:
        """From now on bytes travel as they are: those that are here, and both directions of the connection."""
        early, self._pieces = b"".join(self._pieces), []
        return early, self._connection.reader, self._connection.writer

    def close(self) -> None:
        if self.body_sent is not None:
            self.body_sent.cancel()
        self._connection.close()

    @property
    def _ends_with_connection(self) -> bool:
        return "content-length" not in self.headers and "chunked" not in self.headers.get("transfer-encoding", "")

    async def _more(self) -> bool:
        """Read some more; False when nothing more comes."""
        data = await self._connection.reader.read(_PIECE)
        if not data:
            if self.body_sent is not None and self.body_sent.done() and not self.body_sent.cancelled():
                self.body_sent.result()
            return False
        if self._upgraded:
            self._pieces.append(data)
            return True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgraded = True
            self._pieces.append(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self.close()
            raise Unavailable(f"the answer is not HTTP: {error}") from error
        return True
