"""How does an archive that a client sends get past the HTTP parser? Its request's head is parsed, its body is held.

`docker cp` into a container sends all the files as one body. aiohttp would cut it into pieces and copy each of them
three times; instead the connection shows it a request without a body, and the handler gets the socket to pass on
(`handed_over`). On a connection that this was done with, nothing follows the answer.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from husk.storage.body import Upload, whole_body

if TYPE_CHECKING:
    from husk.api.streams import Connection

# Seconds that a client may take between the head of its request and the end of a small body.
_AT_ONCE = 0.01
_ARCHIVE = re.compile(rb"PUT (?:/v[0-9.]+)?/containers/[^/ ]+/archive\?[^ ]* HTTP/1\.1\r\n")
_FRAMING = re.compile(
    rb"\r\n(transfer-encoding|content-length|expect)[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)", re.IGNORECASE
)


class RequestWithHeldBody(NamedTuple):
    """A request whose body is held: its head as the parser shall see it, the body's first bytes, and its length."""

    head: bytes
    begun: bytes
    length: int | None


def request_with_held_body(data: bytes) -> RequestWithHeldBody | None:
    """None for the beginnings of all other requests, and where more than a look tells where the body ends."""
    end = data.find(b"\r\n\r\n")
    if end < 0 or not _ARCHIVE.match(data):
        return None
    framing = list(_FRAMING.finditer(data, 0, end + 2))
    if len(framing) != 1:
        return None
    (found,) = framing
    name, value = found[1].lower(), found[2]
    if name == b"transfer-encoding" and value.lower() == b"chunked":
        length = None
    elif name == b"content-length" and value.isdigit() and len(value) < 19:
        length = int(value)
    else:
        return None
    return RequestWithHeldBody(data[: found.start()] + data[found.end() : end + 4], data[end + 4 :], length)


class HeldBody:
    """The body of the request that a connection is busy with."""

    def __init__(self, connection: "Connection", length: int | None) -> None:
        self._connection = connection
        self._length = length
        self._consumed = False

    async def small(self, largest: int) -> bytes | None:
        """All of it, if it is small and comes at once. It can still be handed over."""
        if self._length is not None and self._length > largest:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_AT_ONCE):
                # In chunks it takes more bytes than it has.
                while len(begun := self._connection.begun_input()) <= 2 * largest:
                    if (whole := whole_body(begun, self._length)) is not None:
                        return whole
                    if not await self._connection.more_input():
                        break
        return None

    @contextlib.contextmanager
    def handed_over(self) -> Iterator[Upload]:
        """The caller's for as long as this lasts; `consumed` when all of it was read."""
        descriptor, begun = self._connection.let_go_of_input()
        try:
            yield Upload(descriptor, begun, self._length)
        finally:
            os.close(descriptor)

    def consumed(self) -> None:
        self._consumed = True

    async def answer(self, request: web.Request, response: web.StreamResponse) -> None:
        """Send the answer. A client that still sends must read it before the connection goes."""
        response.force_close()
        with contextlib.suppress(ConnectionError):
            await response.prepare(request)
            await response.write_eof()
        if self._consumed:
            return
        self._connection.take_input_back()
        await self._connection.finish()
