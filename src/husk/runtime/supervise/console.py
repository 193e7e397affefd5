"""A connection to the streams of a container, which its monitor serves (see `conmon` for what it does with them)."""

import asyncio
import contextlib
import select
import socket
import time

from husk.kernel import unixdiag

# conmon reads at most 32 KiB of a message and drops the rest.
_INPUT_CHUNK = 16 * 1024
# One byte for the stream, up to 8 KiB of output.
_OUTPUT_CHUNK = 32 * 1024
_ACCEPT_SECONDS = 2.0


class Console:
    """A connection to a container's streams. One reader and one writer at a time."""

    def __init__(self, connection: socket.socket, closes_stdin: bool) -> None:
        self._connection = connection
        self._closes_stdin = closes_stdin
        self._reset = False
        self._closed = False

    async def accepted(self) -> None:
        """Wait until what is written is seen, for who has attached without that."""
        if not self._closed:
            await until_accepted(self._connection)

    async def read(self) -> tuple[int, bytes] | None:
        """The next piece of output with its stream (1 stdout, 2 stderr); None when the monitor has ended."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                message = await loop.sock_recv(self._connection, _OUTPUT_CHUNK)
            except ConnectionResetError:
                # Input that nobody read any more: the kernel tells it once, ahead of the output still in the queue.
                if self._reset:
                    return None
                self._reset = True
                continue
            if not message:
                return None
            # conmon numbers the pipes 1 stdin, 2 stdout, 3 stderr.
            return message[0] - 1, message[1:]

    async def write(self, data: bytes) -> None:
        """Send input; waits while the container does not read. Input to a container that has ended is dropped."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for start in range(0, len(data), _INPUT_CHUNK):
                if self._closed:
                    return
                await loop.sock_sendall(self._connection, data[start : start + _INPUT_CHUNK])

    def close_stdin(self) -> None:
        """The client has no more input: the container sees the end of file if it is set up so, else nothing happens."""
        if self._closes_stdin:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go of the container; a `write` that is still waiting ends without an error."""
        self._closed = True
        self._connection.close()


async def until_accepted(connection: socket.socket) -> None:
    """Wait until conmon has accepted a client: it sends output to those only, which a busy host delays.

    A monitor that is stuck takes no more than a moment of our time: the client stays in its queue, as it always did.
    The connection may be closed meanwhile, by a client that leaves.
    """

    started = time.monotonic()
    while connection.fileno() >= 0 and unixdiag.accepted(connection) is False and not _has_news(connection):
        waited = time.monotonic() - started
        if waited > _ACCEPT_SECONDS:
            return
        # conmon mostly needs a small part of a millisecond, which is what timers tick in.
        await asyncio.sleep(0 if waited < 0.001 else 0.001)


def _has_news(connection: socket.socket) -> bool:
    """Return True if there is output, or the end of it."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
