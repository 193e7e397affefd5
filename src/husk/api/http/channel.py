"""The transport of one client: what is written, what is held back, and how it ends. Knows sockets, and no HTTP.

`Connection` is the one channel that speaks HTTP. What requests, bodies and streams may ask of it is declared here, so
that they need not know it.

Facts that the kernel tells about a socket and that Python has no word for.
"""

import asyncio
import contextlib
import fcntl
import os
import select
import socket
import struct
import sys
import termios
from collections.abc import Mapping
from typing import Protocol, cast

_CREDENTIALS = struct.Struct("3i")
# As much as a socket holds for its reader where a client may ask for 4 MiB, which the kernel doubles.
_PIECE, _MOST_REST = 1 << 16, 8 << 20


class Taker(Protocol):
    """The receiver of a client's bytes when they are no requests any more."""

    def feed(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...


class Channel(asyncio.Protocol):
    """The connection of one client."""

    # How long a client may read on after our last word.
    linger_time: float

    def __init__(self) -> None:
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._socket: socket.socket | None = None
        self._peer: str | None = None
        # Who is on the other side, where the socket is one of a pair of our own and does not tell; set by who made it.
        self.behind: Mapping[str, str] | None = None
        # Is it a Unix socket?
        self.is_local = False
        # Has the client left? Has it said that it sends no more?
        self.gone = False
        self.ended = False
        self.answer_begun = False
        self.write_paused = False
        self._writable: asyncio.Event | None = None
        self._reading_paused = False
        self._input_lent = False
        self._hangup: select.epoll | None = None

    # what one that speaks HTTP also does

    @property
    def busy(self) -> bool:
        """True while the client waits for us."""
        raise NotImplementedError

    @property
    def waiting(self) -> bool:
        """True while we wait for the client, for a request or the rest of one."""
        raise NotImplementedError

    def overdue(self, now: float) -> bool:
        """Tell if the client has kept us waiting for too long."""
        raise NotImplementedError

    def give_up_on(self) -> None:
        """End the connection of a client that is overdue."""
        raise NotImplementedError

    def finish(self) -> None:
        """Close it behind the answer that is under way, or now."""
        raise NotImplementedError

    def stamp(self) -> bytes:
        """Headers that no other answer has: the date, and the id of the request that is answered."""
        raise NotImplementedError

    def will_keep_alive(self) -> bool:
        """Tell if another request can follow the one that is served."""
        raise NotImplementedError

    def body_ended(self, behind: bytes) -> None:
        """The body of the request was read to its end; what came behind it is the next request's, or input."""
        raise NotImplementedError

    def take(self, taker: Taker, head: bytes) -> bytes:
        """Answer with that head and leave HTTP: from now on bytes are the taker's. Returns those that are here."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._socket = cast("socket.socket | None", transport.get_extra_info("socket"))
        self.is_local = self._socket is not None and self._socket.family == socket.AF_UNIX
        if not self.is_local and (name := transport.get_extra_info("peername")):
            self._peer = str(name[0])

    # output

    def pause_writing(self) -> None:
        self.write_paused = True
        if self._writable is not None:
            self._writable.clear()

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()

    def begin_answer(self, data: bytes) -> None:
        self.write_now(data)
        self.answer_begun = True

    def write_now(self, data: bytes) -> None:
        self._require_client()
        self._transport.write(data)

    def write_pieces(self, pieces: list[bytes]) -> None:
        self._require_client()
        self._transport.writelines(pieces)

    @property
    def left(self) -> bool:
        """True once the client has gone. A transport that has failed says so before the loop has told us: who writes
        without a pause would not hear of the loss, for the loop tells in pauses."""
        return self.gone or self._transport.is_closing()

    def _require_client(self) -> None:
        if self.left:
            raise ConnectionResetError("the client has gone")

    async def drained(self) -> None:
        """Wait until the client has read enough."""
        if self.write_paused and not self.gone:
            if self._writable is None:
                self._writable = asyncio.Event()
            await self._writable.wait()
        if self.gone:
            raise ConnectionResetError("the client has gone")

    @property
    def unsent(self) -> int:
        return 0 if self.gone else self._transport.get_write_buffer_size()

    @property
    def unread_by_client(self) -> int:
        """The amount of sent data that the client has not read; only a Unix socket tells, 0 elsewhere."""
        return unread(self._socket.fileno()) if self._socket is not None and not self.gone else 0

    # input

    def lend_input(self) -> int:
        """Read no more, for somebody else does; a descriptor for that."""
        descriptor = self.duplicate()
        self.hold_input()
        self._input_lent = True
        return descriptor

    def hold_input(self) -> None:
        if not self._reading_paused and not self.ended:
            self._reading_paused = True
            self._transport.pause_reading()

    def let_input_go_on(self) -> None:
        if self._reading_paused and not self.ended and not self._input_lent:
            self._reading_paused = False
            self._transport.resume_reading()

    def rest_of_input(self) -> bytes:
        """Read the input that the client had sent before it left, and that nobody has read: a write that fails ends the
        connection, whatever input waits behind. Over TCP that input is lost anyway."""
        if not self.is_local or self._socket is None or self._input_lent:
            return b""
        found = bytearray()
        with contextlib.suppress(OSError):
            # Where it was us who ended it, the client may be there and send on.
            while data := os.read(self._socket.fileno(), min(_PIECE, _MOST_REST - len(found))):
                found += data
        return bytes(found)

    # the socket

    @property
    def peer(self) -> str | None:
        """The address of a client over TCP."""
        return self._peer

    @property
    def credentials(self) -> tuple[int, int, int] | None:
        """(pid, uid, gid) of the process that connected to a Unix socket, as it was then."""
        if not self.is_local or self._socket is None or self.gone:
            return None
        try:
            told = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return None
        pid, uid, gid = _CREDENTIALS.unpack(told)
        return pid, uid, gid

    def duplicate(self) -> int:
        """A descriptor of the socket. Ours goes when the client does, and its number may then be another client's."""
        if self._socket is None or self.gone:
            raise ConnectionResetError("the client has gone")
        return os.dup(self._socket.fileno())

    def send_buffer(self, size: int) -> None:
        """Let the kernel hold more of what is sent."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    # ends

    def close(self) -> None:
        if not self.gone:
            self._transport.close()

    def abort(self) -> None:
        if not self.gone:
            self._transport.abort()

    def end_output(self) -> bool:
        """Say that nothing more comes; False when there is nobody to hear it."""
        if self.gone or not self._transport.can_write_eof():
            return False
        self._transport.write_eof()
        return True

    def watch_hangup(self) -> None:
        """After the end of input the transport reads no more, so it would not see the client leave for good.

        An epoll with no events wanted reports only hang-up and error, and can itself be watched by the loop.
        """
        if self._socket is None or self._hangup is not None:
            return
        self._hangup = select.epoll()
        self._hangup.register(self._socket.fileno(), 0)
        asyncio.get_running_loop().add_reader(self._hangup.fileno(), self._hung_up)

    def _hung_up(self) -> None:
        self.forget_hangup()
        self.abort()

    def forget_hangup(self) -> None:
        if self._hangup is not None:
            asyncio.get_running_loop().remove_reader(self._hangup.fileno())
            self._hangup.close()
            self._hangup = None


def unread(fd: int) -> int:
    """Return the amount sent on a Unix socket that its other end has not read (as the kernel accounts for it)."""
    return int.from_bytes(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
