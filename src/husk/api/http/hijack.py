"""A connection that is taken from HTTP: after `hijack` it carries the handler's bytes, both ways.

The end of the client's input is not the end of the connection: `echo hi | docker run -i` half-closes and waits for the
output. Input may follow the request at once; what came behind the head is the first of it. A body that the head
announces and the handler has not read is no input: dockerode sends the query of an attach as one, too.
"""

import asyncio
import contextlib
import time
from collections import deque

from husk.api.http.request import Request

_MOST_WAITING = 1 << 18
# A piece as large as this is given alone: to put it together with others would be a copy for nothing.
_ENOUGH = 1 << 15
# How many seconds a client may take to read the head of an answer before the stream follows anyway, and how often is
# looked. What waits meanwhile is not lost, so they are many: on a busy host a client may wait long for its turn.
_HEAD_PATIENCE = 10.0
_LOOK, _SELDOM = 0.001, 0.02


def hijack(request: Request, fields: bytes) -> "HijackedStream":
    """Answer as dockerd does, 101 to a client that asks to upgrade, else 200, and take the connection over."""
    if request.has("upgrade"):
        line = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
    else:
        line = b"HTTP/1.1 200 OK\r\n"
    return HijackedStream(request, line + fields + request.id_field + b"\r\n")


class HijackedStream:
    """A connection without HTTP: `read` until b"", `write` with back pressure, `finish` or `abort`."""

    def __init__(self, request: Request, head: bytes, first: bytes = b"", *, patient: bool = True) -> None:
        """`first` is input that was taken for something else. ConnectionResetError when the client has gone.

        Who is `patient` lets the client read the head before anything follows.
        """
        self._connection = connection = request.connection
        self._input: deque[bytes] = deque()
        self._size = 0
        self._ended = connection.ended
        self._readable = asyncio.Event()
        self._head_read = not patient
        if begun := first + connection.take(self, head):
            self.feed(begun)

    # what the connection calls

    def feed(self, data: bytes) -> None:
        self._input.append(data)
        self._size += len(data)
        self._readable.set()
        if self._size > _MOST_WAITING:
            self._connection.hold_input()

    def end_input(self) -> None:
        self._ended = True
        self._readable.set()

    # what its user calls

    async def read(self) -> bytes:
        """The next bytes of the client; b"" when it sends no more."""
        while not self._input:
            if self._ended:
                return b""
            self._readable.clear()
            await self._readable.wait()
        if len(self._input[0]) >= _ENOUGH:
            data = self._input.popleft()
        else:
            data = b"".join(self._input)
            self._input.clear()
        self._size -= len(data)
        if self._size <= _MOST_WAITING:
            self._connection.let_input_go_on()
        return data

    async def write(self, data: bytes) -> None:
        """ConnectionResetError when the client has gone."""
        if not self._head_read:
            await self._let_head_be_read()
        self._connection.write_now(data)
        if self._connection.write_paused:
            await self._connection.drained()

    async def _let_head_be_read(self) -> None:
        """Let the client read the head of the answer before the stream begins.

        The Python SDK (7.2) reads the head through a buffer that it then drops, with whatever came right behind it.
        """
        self._head_read = True
        if not self._connection.is_local:
            return
        deadline, pause = time.monotonic() + _HEAD_PATIENCE, _LOOK
        while not self._connection.gone and self._connection.unread_by_client:
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.1, _SELDOM)

    async def finish(self) -> None:
        """Everything is said: let the client read it all before the connection goes.

        Closing while bytes of the client are unread makes the kernel throw away what the client has not read yet.
        """
        try:
            if not self._ended and self._connection.end_output():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._connection.linger_time):
                        while await self.read():
                            pass
        finally:
            self._connection.close()

    def abort(self) -> None:
        self._connection.abort()
