"""One call of gRPC, as the side that calls and the side that is called see it.

    stream = connection.call("/moby.filesync.v1.FileSync/DiffCopy", {"dir-name": ["context"]})
    await stream.send(message); await stream.end()
    while (message := await stream.recv()) is not None: …

`recv` gives None when the peer says no more and all is well, and raises `GrpcError` when it is not. A peer may send a
window's worth more than what was received; `send` waits while a good part of what was said is not on its way. Whoever
passes messages on to another process need not cut them out: `recv_raw` and `send_raw` give and take the bytes of the
stream as they are. One direction of one stream is used in one of the two forms, not both.

Messages of gRPC in the bytes of a stream: each has a byte that says whether it is compressed, and its length.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from struct import Struct as Layout
from typing import Protocol

from husk.rpc.grpc.status import CANCELLED, RESOURCE_EXHAUSTED, UNAVAILABLE, UNIMPLEMENTED, GrpcError, outcome
from husk.rpc.http2 import errors
from husk.rpc.http2.core import Http2
from husk.rpc.http2.errors import StreamGone
from husk.rpc.http2.events import Headers

_HEAD = Layout(">BI")
HEAD_SIZE = _HEAD.size

# The largest message that is taken, as BuildKit has it.
LARGEST_MESSAGE = 16 << 20
# Pieces of an unfinished message that are smaller are put together: each costs some bytes beside its own.
# What may wait for the peer before `send` waits too.
_MOST_UNSENT = 1 << 18
# Pieces that are as large as this are not put together for whoever passes them on: that would be a copy for nothing.
_ENOUGH = 1 << 15

# Pieces that are smaller are put together as they come: each costs some hundred bytes beside its own.
_SMALL = 1 << 12

Metadata = Mapping[str, list[str]]
# Each call says them anew for itself; `grpc-…` is the protocol's own too.
_OF_THE_CALL = frozenset((b"content-type", b"te", b"user-agent"))


class Link(Protocol):
    """The connection, as its streams know it."""

    http: Http2
    # The largest message that is taken.
    largest: int

    def flush(self) -> None:
        """Let the bytes that are ready go out soon."""
        ...

    async def writable(self) -> None:
        """Wait while the transport takes nothing."""
        ...

    def hold(self, number: int, size: int) -> None:
        """So much of its peer is here for a stream now. GrpcError where that is too much for all streams together."""
        ...


class Stream:
    """Both directions of a call."""

    def __init__(self, link: Link, number: int, path: str, metadata: dict[str, list[str]] | None = None) -> None:
        self.path = path
        # Of the peer: what came with its request, or with its answer.
        self.metadata = metadata or {}
        self.trailers: Headers = []
        self._link = link
        self._number = number
        self._reader = MessageReader(link.largest)
        # What has come, and what each piece took of the window.
        self._raw: deque[tuple[bytes, int]] = deque()
        self._raw_size = 0
        # Of the messages that were cut out last, and of the one that is not whole.
        self._cut_size = 0
        self._messages: deque[bytes] = deque()
        self._credit = 0  # of what was no data: padding
        self._ended = False
        self._error: GrpcError | None = None
        self._closed = False
        self._changed = asyncio.Event()
        self._room = asyncio.Event()

    # --- receiving ---------------------------------------------------------------------------------------------------

    async def recv(self) -> bytes | None:
        """The next message; None at the end."""
        while not self._messages:
            if not await self._more():
                return None
            self._cut()
        return self._messages.popleft()

    async def recv_many(self) -> list[bytes]:
        """All messages that are here, at least one; none at the end."""
        while not self._messages:
            if not await self._more():
                return []
            self._cut()
        messages = list(self._messages)
        self._messages.clear()
        return messages

    async def recv_raw(self) -> bytes:
        """Some of the bytes that are here, each message behind its head of five bytes; b"" at the end."""
        if not await self._more():
            return b""
        return self._take_raw(_ENOUGH)

    async def _more(self) -> bool:
        """Wait for data; False at a good end."""
        while not self._raw:
            if self._error is not None:
                raise self._error
            if self._ended:
                if self._reader.waiting:
                    raise GrpcError(UNAVAILABLE, "the stream ended in the middle of a message")
                return False
            self._changed.clear()
            await self._changed.wait()
        return True

    def _take_raw(self, enough: int | None = None) -> bytes:
        """All that is here, or the first pieces that are `enough`."""
        pieces: list[bytes] = []
        size, credit, self._credit = 0, self._credit, 0
        while self._raw and (enough is None or size < enough):
            piece, cost = self._raw.popleft()
            pieces.append(piece)
            size += len(piece)
            credit += cost
        self._raw_size -= size
        self._link.http.acknowledge(self._number, credit)
        self._link.flush()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _cut(self) -> None:
        """Cut messages out of the data that is here."""
        try:
            self._messages.extend(self._reader.feed(self._take_raw()))
            # A message that was taken counts until the next one comes: its reader still has it.
            self._cut_size = self._reader.waiting + sum(map(len, self._messages))
            self._link.hold(self._number, self._cut_size + self._raw_size)
        except GrpcError as error:
            self._error = error
            self.cancel()
            raise

    # --- sending -----------------------------------------------------------------------------------------------------

    async def send(self, message: bytes) -> None:
        await self.send_raw(framed(message))

    async def send_raw(self, data: bytes) -> None:
        """GrpcError when the call has ended: what the peer said about it, or that nobody is there."""
        try:
            self._begin_answer()
            self._link.http.send(self._number, data)
        except StreamGone:
            raise self._gone() from None
        self._link.flush()
        while self._link.http.unsent(self._number) > _MOST_UNSENT:
            self._room.clear()
            await self._room.wait()
        await self._link.writable()
        if self._error is not None:
            raise self._error

    async def end(self) -> None:
        """Say that no more messages come from us."""
        try:
            self._link.http.end(self._number)
        except StreamGone:
            return
        self._link.flush()

    def cancel(self, code: int = errors.CANCEL) -> None:
        """End the call at once, whatever is under way. Nothing happens if it is over."""
        self._closed = True
        self._link.http.reset(self._number, code)
        self._link.flush()
        self.discard()
        self.fail(GrpcError(CANCELLED, "the call was cancelled"))

    def discard(self) -> None:
        """Forget what came and nobody reads any more: a stream with an error that was raised is kept by its traceback,
        until circles are looked for."""
        self._reader.drop()
        self._messages.clear()
        self._raw.clear()
        self._raw_size = 0

    def _begin_answer(self) -> None:
        """Send the headers that a server begins its answer with; a client sends none."""

    def _gone(self) -> GrpcError:
        return self._error or GrpcError(UNAVAILABLE, "the call has ended")

    # --- what the connection tells -----------------------------------------------------------------------------------

    def feed(self, data: bytes, credit: int) -> None:
        if not data:
            self._credit += credit
        elif self._raw and len(self._raw[-1][0]) + len(data) <= _SMALL:
            before, cost = self._raw.pop()
            self._raw.append((before + data, cost + credit))
        else:
            self._raw.append((data, credit))
        self._raw_size += len(data)
        self._changed.set()

    def finish(self) -> None:
        """The peer says no more."""
        self._ended = True
        self._changed.set()

    def fail(self, error: GrpcError) -> None:
        if self._error is None:
            self._error = error
        self._ended = True
        self._changed.set()
        self._room.set()

    def make_room(self) -> None:
        self._room.set()

    @property
    def over(self) -> bool:
        return self._ended or self._closed


class ClientStream(Stream):
    """A call of ours. Leaving its block ends it, whatever is still open."""

    async def __aenter__(self) -> "ClientStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._ended:
            self.cancel()

    def take_headers(self, headers: Headers) -> None:
        self.metadata = metadata_of(headers)

    def take_trailers(self, headers: Headers) -> None:
        self.trailers = headers
        error = outcome(headers)
        if error is None:
            self.finish()
        else:
            self.fail(error)


class ServerStream(Stream):
    """A call that a peer made."""

    def __init__(self, link: Link, number: int, path: str, metadata: dict[str, list[str]]) -> None:
        super().__init__(link, number, path, metadata)
        self._answered = False

    def feed(self, data: bytes, credit: int) -> None:
        """Take data of a caller; what nobody reads counts as well, for the number of calls is up to the caller."""
        super().feed(data, credit)
        try:
            self._link.hold(self._number, self._cut_size + self._raw_size)
        except GrpcError as error:
            self._error = error
            self.cancel()

    def _begin_answer(self) -> None:
        if not self._answered:
            self._answered = True
            answer = [(b":status", b"200"), (b"content-type", b"application/grpc")]
            self._link.http.send_headers(self._number, answer)

    def close(self, trailers: Headers) -> None:
        """End the call with these trailers; the peer hears them behind all that was sent."""
        self._closed = True
        try:
            if not self._answered:
                self._begin_answer()
            self._link.http.end(self._number, trailers)
        except StreamGone:
            return
        self._link.flush()


def metadata_of(headers: Headers) -> dict[str, list[str]]:
    """Collect what a peer's headers say besides the words of HTTP and gRPC; a name may be there several times."""
    metadata: dict[str, list[str]] = {}
    for name, value in headers:
        if not name.startswith((b":", b"grpc-")) and name not in _OF_THE_CALL:
            metadata.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return metadata


def framed(message: bytes) -> bytes:
    return _HEAD.pack(0, len(message)) + message


class MessageReader:
    """Bytes in any pieces → messages."""

    def __init__(self, largest: int = LARGEST_MESSAGE) -> None:
        self._largest = largest
        self._pieces: list[bytes] = []
        self._size = 0
        # How many bytes there have to be before looking at them again is worth it.
        self._wanted = HEAD_SIZE

    @property
    def waiting(self) -> int:
        """The number of bytes of an unfinished message that are kept."""
        return self._size

    def drop(self) -> None:
        """Forget the unfinished message, and the place in it: nothing can be read any more."""
        self._pieces.clear()
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """GrpcError for a message that is too large, or compressed."""
        self._size += len(data)
        if self._pieces or self._size < self._wanted:
            if self._pieces and len(self._pieces[-1]) + len(data) <= _SMALL:
                self._pieces[-1] += data
            else:
                self._pieces.append(data)
            if self._size < self._wanted:
                return []
            data = b"".join(self._pieces)
            self._pieces.clear()
        messages: list[bytes] = []
        position, size = 0, self._size
        self._wanted = HEAD_SIZE
        while size - position >= HEAD_SIZE:
            compressed, length = _HEAD.unpack_from(data, position)
            if compressed:
                raise GrpcError(UNIMPLEMENTED, "compressed messages are not taken")
            if length > self._largest:
                raise GrpcError(RESOURCE_EXHAUSTED, f"a message of {length} bytes: {self._largest} is the most")
            end = position + HEAD_SIZE + length
            if end > size:
                self._wanted = HEAD_SIZE + length
                break
            messages.append(data[position + HEAD_SIZE : end])
            position = end
        self._size = size - position
        if self._size:
            self._pieces.append(data[position:])
        return messages
