"""A request's body on its way to the handler: as it comes, or with the socket itself.

What comes is kept as it is until somebody reads it, and the client has to wait when much of it is here. So a handler
can also hand the rest of the body to a worker that reads the client's socket itself (`handed_over`): a large archive
is then copied once on its way into a file. On a connection that this was done with nothing follows the answer. It is
worth it: 200 MB with a length took 3.1 s of a user's time and 0.23 s of the processor's on a busy machine, and 7.5 and
0.71 s through the daemon; in chunks 7.5 and 0.40 s beside 10.3 and 0.76 s (medians of five, alternating).
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

from husk.api.http.bodies import ChunkFraming, Framing, LengthFraming
from husk.api.http.channel import Channel
from husk.api.http.errors import BadRequest, BodyCutOff, BodyTooLarge
from husk.api.http.parser import RequestHead

# What may wait for a handler that reads a long body, before the client has to.
_MOST_WAITING = 1 << 20
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class HandedOver(NamedTuple):
    """A body for somebody who reads it from `socket`; `begun` is what was already read. No length: it is in chunks."""

    socket: int
    begun: bytes
    length: int | None


class UploadedBody:
    """The body of the request that a connection is busy with."""

    def __init__(self, connection: Channel, head: RequestHead) -> None:
        self._connection = connection
        self._framing: Framing = ChunkFraming() if head.chunked else LengthFraming(head.length)
        self._length = None if head.chunked else head.length
        self._raw: deque[bytes] = deque()
        self._pieces: deque[bytes] = deque()
        self._handed_back = False
        self._waiting = 0
        self._started = False
        # More has come than was taken apart at once.
        self._more = False
        self._cut_off = False
        self._arrived: asyncio.Event | None = None
        # The client waits for a word before it sends the body.
        self._expected = head.is_1_1 and head.expect == b"100-continue"
        self.with_worker = False
        # Nobody knows where it ends, or wants to.
        self.broken = False

    @property
    def ended(self) -> bool:
        """True once the last byte of the body was read."""
        return self._framing.ended

    @property
    def expected(self) -> bool:
        """True while the client waits to be asked for the body."""
        return self._expected

    # what the connection calls

    def feed(self, data: bytes) -> None:
        """Take data that has come; some of it may be behind the body."""
        self._raw.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_WAITING:
            self._connection.hold_input()
        self._wake()

    def cut_off(self) -> None:
        """No more will come."""
        self._cut_off = True
        self._wake()

    def discard(self) -> int:
        """Read what is here and forget it; says how much it was. BadRequest for what is no body, or much work."""
        size = self._waiting
        self._decode()
        if self._more:
            raise BadRequest("malformed body: too many chunks in what nobody reads")
        self._pieces.clear()
        self._waiting = 0
        return size

    # what the handler calls

    async def read(self, most: int) -> bytes:
        """The next bytes, `most` of them at most; b"" at the end. BodyCutOff, BadRequest."""
        if not self._pieces:
            await self._fill()
        return self._take(most)

    async def pieces(self, most: int) -> AsyncIterator[bytes]:
        while data := await self.read(most):
            yield data

    async def document(self, largest: int) -> bytes:
        """All of it. BodyTooLarge."""
        if (self._length or 0) > largest:
            self.broken = True
            raise BodyTooLarge
        found: list[bytes] = []
        size = 0
        while data := await self.read(largest + 1):
            found.append(data)
            size += len(data)
            if size > largest:
                self.broken = True
                raise BodyTooLarge
        return b"".join(found)

    @contextlib.contextmanager
    def handed_over(self) -> Iterator[HandedOver]:
        """The caller's for as long as this lasts, for somebody else to read."""
        assert not self._started
        self._ask()
        self.with_worker = True
        descriptor, begun = self._connection.lend_input(), b"".join(self._raw)
        self._raw.clear()
        self._waiting = 0
        try:
            yield HandedOver(descriptor, begun, self._length)
        finally:
            os.close(descriptor)

    def consumed(self) -> None:
        """Note that the worker to which the body was handed over has read all of it."""
        self.with_worker = True
        self._connection.body_ended(b"")

    # how

    async def _fill(self) -> None:
        """Until there is something to take, or the body has ended."""
        while True:
            if self._more:
                await asyncio.sleep(0)
            self._decode()
            if self._pieces or self._framing.ended:
                return
            if self._cut_off:
                raise BodyCutOff("the client left before it had sent all")
            self._ask()
            await self._wait()

    def _decode(self) -> None:
        """Take apart what has come: all of it, unless that were much work at once."""
        self._started = True
        self._more = False
        found: list[bytes] = []
        while self._raw and not self._framing.ended:
            try:
                rest = self._framing.feed(self._raw.popleft(), found)
            except BadRequest:
                self.broken = True
                raise
            if rest:
                self._raw.appendleft(rest)
                if not self._framing.ended:
                    self._more = True
                    break
        self._pieces.extend(found)
        if self._framing.ended and not self._handed_back:
            self._handed_back = True
            behind = b"".join(self._raw)
            self._raw.clear()
            self._connection.body_ended(behind)
        self._waiting = sum(map(len, self._pieces)) + sum(map(len, self._raw))

    def _take(self, most: int) -> bytes:
        found: list[bytes] = []
        left = most
        while self._pieces and left:
            piece = self._pieces.popleft()
            if len(piece) > left:
                self._pieces.appendleft(piece[left:])
                piece = piece[:left]
            found.append(piece)
            left -= len(piece)
        data = found[0] if len(found) == 1 else b"".join(found)
        self._waiting -= len(data)
        if self._waiting <= _MOST_WAITING // 2 and not self._cut_off:
            self._connection.let_input_go_on()
        return data

    def _ask(self) -> None:
        if self._expected:
            self._expected = False
            self._connection.write_now(_CONTINUE)

    async def _wait(self) -> None:
        if self._arrived is None:
            self._arrived = asyncio.Event()
        self._arrived.clear()
        await self._arrived.wait()

    def _wake(self) -> None:
        if self._arrived is not None:
            self._arrived.set()
