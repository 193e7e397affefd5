"""Builds as an engine's builder tells of them, in BuildKit's own protocol: the Engine API has no word for them.

The protocol is spoken on a connection of its own for each question, and both end together: `POST /grpc`, as
`docker buildx` does it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from husk.api.streams.closing import closing
from husk.builder.protocol.messages import control
from husk.client.client import Client
from husk.client.http import Reader, Writer
from husk.errors import HuskError, NotFound, NotImplementedYet, Unavailable
from husk.rpc.grpc import status
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import GrpcError
from husk.rpc.protobuf import Message

M = TypeVar("M", bound=Message)

_CONTROL = "/moby.buildkit.v1.Control"
_PIECE = 1 << 18
# Seconds. A build that is under way tells on and on: what it told until it is quiet for so long, or for so long at all.
_QUIET = 0.15
_LONGEST = 1.5


class BuildKit:
    """The builder of one engine."""

    def __init__(self, engine: Client) -> None:
        self._engine = engine

    async def builds(self) -> list[control.BuildHistoryRecord]:
        """All that are known, the newest first. NotImplementedYet where the engine has no such builder."""
        request = control.BuildHistoryRequest(early_exit=True)
        told = [each async for each in self._told("ListenBuildHistory", request, control.BuildHistoryEvent)]
        records = [each.record for each in told if each.record is not None and each.type != control.BUILD_DELETED]
        return sorted(records, key=lambda record: -(record.created_at.seconds if record.created_at else 0))

    async def build(self, ref: str) -> control.BuildHistoryRecord:
        request = control.BuildHistoryRequest(early_exit=True, ref=ref)
        async with closing(self._told("ListenBuildHistory", request, control.BuildHistoryEvent)) as told:
            async for each in told:
                if each.record is not None and each.record.ref == ref:
                    return each.record
        raise NotFound(f"no such build: {ref}")

    async def told_by(self, ref: str, *, ended: bool) -> list[control.StatusResponse]:
        """Collect the messages of a build: all of them where it has `ended`, else those until now."""
        request = control.StatusRequest(ref=ref)
        quiet = None if ended else _QUIET
        found: list[control.StatusResponse] = []
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(None if ended else _LONGEST),
                closing(self._told("Status", request, control.StatusResponse, quiet)) as told,
            ):
                async for each in told:
                    found.append(each)
        return found

    async def forget(self, ref: str) -> None:
        """Remove the record of a build that has ended."""
        request = control.UpdateBuildHistoryRequest(ref=ref, delete=True)
        async with self._connected() as connection:
            await connection.unary(f"{_CONTROL}/UpdateBuildHistory", request.encode())

    async def _told(self, name: str, request: Message, kind: type[M], quiet: float | None = None) -> AsyncIterator[M]:
        """The answers to one question, until there are no more, or none for so many seconds."""
        async with self._connected() as connection, await connection.call(f"{_CONTROL}/{name}") as stream:
            await stream.send(request.encode())
            await stream.end()
            while True:
                try:
                    async with asyncio.timeout(quiet):
                        message = await stream.recv()
                except TimeoutError:
                    return
                if message is None:
                    return
                yield kind.decode(message)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[GrpcConnection]:
        try:
            below = _Below(*await self._engine.upgrade("/grpc", "h2c"))
        except NotFound as error:
            raise NotImplementedYet("this engine tells nothing of its builds") from error
        try:
            async with GrpcConnection(below, client=True) as connection:
                yield connection
        except GrpcError as error:
            raise _ours(error) from error


class _Below:
    """The bytes of a connection that has left HTTP/1.1."""

    def __init__(self, early: bytes, reader: Reader, writer: Writer) -> None:
        self._early = early
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        early, self._early = self._early, b""
        return early or await self._reader.read(_PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def finish(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.close()


def _ours(error: GrpcError) -> HuskError:
    kinds: dict[int, type[HuskError]] = {
        status.NOT_FOUND: NotFound,
        status.UNIMPLEMENTED: NotImplementedYet,
        status.UNAVAILABLE: Unavailable,
    }
    return kinds.get(error.code, HuskError)(error.message)
