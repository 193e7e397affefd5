"""Both ends of a connection in one process, for tests of calls."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from husk.rpc.grpc.connection import GrpcConnection, Handler
from husk.rpc.http2.core import PeerLimits


class Pipe:
    """One end of a connection without sockets; `held` stops what it would give, and `cut` how much it gives at once."""

    def __init__(self, cut: int = 1 << 20) -> None:
        self.queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._cut = cut
        self._rest = b""
        self.other: Pipe
        self.finished = False

    async def read(self) -> bytes:
        data = self._rest or await self.queue.get()
        data, self._rest = data[: self._cut], data[self._cut :]
        return data

    async def write(self, data: bytes) -> None:
        if self.finished or self.other.finished:
            raise ConnectionResetError("gone")
        self.other.queue.put_nowait(data)
        await asyncio.sleep(0)

    async def finish(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.finished:
            self.finished = True
            self.other.queue.put_nowait(b"")
            self.queue.put_nowait(b"")


def pipes(cut: int = 1 << 20) -> tuple[Pipe, Pipe]:
    one, other = Pipe(cut), Pipe(cut)
    one.other, other.other = other, one
    return one, other


@asynccontextmanager
async def connected(
    handler: Handler, cut: int = 1 << 20, limits: PeerLimits | None = None
) -> AsyncIterator[tuple[GrpcConnection, GrpcConnection]]:
    """A client and the server that it is connected to."""
    one, other = pipes(cut)
    async with (
        GrpcConnection(one, client=True) as client,
        GrpcConnection(other, handler=handler, limits=limits) as server,
    ):
        yield client, server
