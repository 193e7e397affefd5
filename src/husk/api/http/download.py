"""Bodies of answers that somebody else sends: into the client's own socket, between the head and the end."""

import asyncio
import contextlib
import os
from collections.abc import Iterator

from husk.api.http.request import Request


@contextlib.contextmanager
def lent_socket(request: Request) -> Iterator[int | None]:
    """A descriptor of the client's socket for whoever sends the body of the answer, in chunks; None if nobody can."""
    if not request.connection.is_local or not request.head.is_1_1 or request.head.is_head:
        yield None
        return
    descriptor = request.connection.duplicate()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def all_sent(request: Request) -> None:
    """Wait until nothing of the answer is left in this process, so that somebody else can send on."""
    pause = 0.0  # one turn of the loop, unless the client has not read its last answers
    while not request.gone:
        if not request.connection.unsent:
            return
        await asyncio.sleep(pause)
        pause = 0.001
    raise ConnectionResetError("the client has gone")
