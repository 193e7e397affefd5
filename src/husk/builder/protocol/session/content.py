"""A client's blobs, by digest: an OCI layout on its disk, read for a build or written by it.

It is containerd's service for content; which of a client's stores is meant, a header says.
"""

import contextlib
from collections.abc import AsyncIterator

from husk.builder.protocol.messages.content import (
    ACTION_COMMIT,
    ACTION_STAT,
    ACTION_WRITE,
    InfoRequest,
    InfoResponse,
    ReadContentRequest,
    ReadContentResponse,
    WriteContentRequest,
)
from husk.builder.protocol.session.calls import SessionCalls, in_our_words
from husk.errors import InvalidParameter, NotFound
from husk.rpc.grpc.status import ALREADY_EXISTS, GrpcError
from husk.rpc.grpc.stream import ClientStream

_SERVICE = "/containerd.services.content.v1.Content"
_STORE = "buildkit-attachable-store-id"
# The client's gRPC takes no messages above 4 MiB.
_LARGEST_CHUNK = 1 << 20


class ClientContent:
    """One store of one client: `husk.builder.solver.sessions.ContentStore`."""

    def __init__(self, calls: SessionCalls, store: str) -> None:
        if not calls.serves(f"{_SERVICE}/Read"):
            raise NotFound("the client of this build offers no blobs")
        self._calls = calls
        self._metadata = {_STORE: [store]}

    async def size(self, digest: str, /) -> int:
        with in_our_words(f"blob {digest}"):
            answer = await self._calls.ask(f"{_SERVICE}/Info", InfoRequest(digest).encode(), self._metadata)
        info = InfoResponse.decode(answer).info
        if info is None:
            raise InvalidParameter(f"blob {digest}: the client does not say what it has")
        return info.size

    async def read(self, digest: str, /, offset: int = 0) -> AsyncIterator[bytes]:
        with in_our_words(f"blob {digest}"):
            stream = await self._calls.open(f"{_SERVICE}/Read", self._metadata)
            async with stream:
                await stream.send(ReadContentRequest(digest, offset).encode())
                await stream.end()
                while (message := await stream.recv()) is not None:
                    yield ReadContentResponse.decode(message).data

    async def write(self, digest: str, size: int, chunks: AsyncIterator[bytes], /) -> bool:
        try:
            stream = await self._calls.open(f"{_SERVICE}/Write", self._metadata)
            async with stream:
                await _Writing(stream, digest, size).write(chunks)
        except GrpcError as error:
            if error.code == ALREADY_EXISTS:
                return False
            with in_our_words(f"blob {digest}"):
                raise
        return True


class _Writing:
    """One blob on its way to the client. Each message is answered, so no more than one is under way."""

    def __init__(self, stream: ClientStream, digest: str, size: int) -> None:
        self._stream = stream
        self._digest = digest
        self._size = size
        self._offset = 0

    async def write(self, chunks: AsyncIterator[bytes]) -> None:
        """Write the blob over the part that an earlier writer left of it: data for the beginning means that."""
        await self._say(ACTION_STAT)  # a blob that is there already is known before anything is read for it
        async for chunk in chunks:
            for start in range(0, len(chunk), _LARGEST_CHUNK):
                piece = chunk[start : start + _LARGEST_CHUNK]
                await self._say(ACTION_WRITE, piece)
                self._offset += len(piece)
        await self._say(ACTION_COMMIT)
        with contextlib.suppress(GrpcError):
            await self._stream.end()

    async def _say(self, action: int, data: bytes = b"") -> None:
        request = WriteContentRequest(action, self._digest, self._size, self._digest, self._offset, data)
        with contextlib.suppress(GrpcError):  # why it took no message is what the answer says
            await self._stream.send(request.encode())
        if await self._stream.recv() is None:
            raise InvalidParameter(f"blob {self._digest}: the client stopped in the middle of it")
