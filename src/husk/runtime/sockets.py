"""Listens on sockets that are mounted into containers, and has each connection served."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from husk.aio.listening import KEEP_FILE
from husk.aio.tasks import Tasks

log = logging.getLogger(__name__)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Listeners = Sequence[socket.socket]


@asynccontextmanager
async def serving(listeners: Listeners, serves: Sequence[Serve]) -> AsyncIterator[None]:
    """Serve connections to each listener while the block lasts; what is still open then, is cut off."""
    tasks = Tasks()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(tasks.cancel_all)
        for listener, serve in zip(listeners, serves, strict=True):
            # A listener of its own is closed with the server; the caller's stays the caller's.
            server = await asyncio.start_unix_server(_accepting(serve, tasks), sock=listener.dup(), **KEEP_FILE)
            stack.callback(server.close)
        yield


def _accepting(serve: Serve, tasks: Tasks) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.spawn(_serve(serve, reader, writer), "serve a socket of a container")

    return accept


async def _serve(serve: Serve, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await serve(reader, writer)
    except OSError as error:
        log.debug("a socket of a container: %s", error)
    finally:
        writer.close()
