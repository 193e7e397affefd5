"""A server of HTTP alone, on a Unix socket, with handlers that the test gives it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from husk.api.http.limits import HttpLimits
from husk.api.http.server import Handler, Http2Handler, Server


class Client:
    """A raw client: sends what it is told, reads as bytes come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def end(self) -> None:
        self.writer.write_eof()

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def answer(self) -> tuple[int, bytes]:
        """(status, body) of a whole answer with a length."""
        head = await self.head()
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return int(head.split()[1]), await self.reader.readexactly(int(length or b"0"))

    async def rest(self) -> bytes:
        return await self.reader.read()

    async def closed(self) -> bool:
        """Tell if the connection has ended, with nothing more on it."""
        with contextlib.suppress(ConnectionResetError):
            return await self.reader.read() == b""
        return True


@contextlib.asynccontextmanager
async def serving(
    handler: Handler,
    path: Path,
    limits: HttpLimits | None = None,
    *,
    tcp: bool = False,
    http2: Http2Handler | None = None,
) -> AsyncIterator[Callable[[], "contextlib.AbstractAsyncContextManager[Client]"]]:
    """Gives what connects one more client."""
    server = Server(handler, limits, http2=http2)
    loop = asyncio.get_running_loop()
    place = str(path / "s")
    if tcp:
        listening = await loop.create_server(server, "127.0.0.1", 0)
    else:
        listening = await loop.create_unix_server(server, place)

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[Client]:
        if tcp:
            reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname()[:2])
        else:
            reader, writer = await asyncio.open_unix_connection(place)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()

    try:
        async with asyncio.timeout(20):
            yield connect
    finally:
        listening.close()
        await server.close(1)
