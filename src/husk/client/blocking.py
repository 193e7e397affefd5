"""Calls of a program that does one thing at a time: it waits in the kernel, and needs no event loop.

Loading asyncio takes longer than all else that a command like `husk ps` does. The client is the same: only the
connection below it waits for every byte, so that a coroutine of the client never has to stop on its way.

    with_nothing_else_to_do = run(work(Client(dial)))

What does two things at once (attach, exec, a body that is sent in pieces) needs the loop.
"""

import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

from husk.client.address import Address
from husk.client.http import Connection, Dial, unreached

T = TypeVar("T")

_UNIX = "unix://"


class Stream:
    """Both directions of a socket: the reader and the writer of a connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._ended = False

    async def read(self, n: int = -1, /) -> bytes:
        data = self._socket.recv(n)
        self._ended = not data
        return data

    def at_eof(self) -> bool:
        return self._ended

    def write(self, data: bytes, /) -> None:
        self._socket.sendall(data)

    async def drain(self) -> None:
        """All is sent already."""

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def is_closing(self) -> bool:
        return self._socket.fileno() < 0

    def close(self) -> None:
        self._socket.close()


def dialer(address: Address, timeout: float | None = None) -> Dial | None:
    """Return a function that connects to a Unix socket; None for all other addresses, which `husk.client.dial` is for.

    With a `timeout` every step that takes longer is a TimeoutError.
    """
    if not address.url.startswith(_UNIX):
        return None

    async def dial() -> Connection:
        reached = socket.socket(socket.AF_UNIX)
        reached.settimeout(timeout)
        try:
            reached.connect(address.url.removeprefix(_UNIX))
        except OSError as error:
            reached.close()
            raise unreached(address.url, error) from error
        stream = Stream(reached)
        return Connection(stream, stream)

    return dial


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end without a loop, and return its result; RuntimeError if it has to wait for a loop."""
    try:
        work.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    work.close()
    raise RuntimeError("this needs an event loop")
