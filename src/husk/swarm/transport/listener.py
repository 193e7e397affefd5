"""A socket that listens, and what is behind it is loaded when somebody knocks.

The manager of a swarm of one host listens for nodes that may never come: TLS, gRPC and certificates cost megabytes.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable

from husk.aio.tasks import Tasks

log = logging.getLogger(__name__)

Listener = socket.socket
# Seconds until somebody who knocks is heard again, when what is behind could not be opened.
PAUSE = 5.0
# Serves a socket that listens, from the first connection on. Where it fails, the next who knocks lets it try again.
Opening = Callable[[Listener], Awaitable[None]]


class LazyListener:
    def __init__(self, host: str, port: int, opening: Opening, pause: float = PAUSE) -> None:
        """OSError where another program has the port, or this host not the address."""
        self._opening, self._pause = opening, pause
        self._tasks = Tasks()
        self._listener = listen(host, port)
        self.address = self._listener.getsockname()
        self._waiting = False
        self._listen()

    def _listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._knocked)
        self._waiting = True

    def _knocked(self) -> None:
        self._forget()
        self._tasks.spawn(self._open(), "the cluster port opens")

    async def _open(self) -> None:
        try:
            await self._opening(self._listener)
        except Exception as error:
            log.warning("the cluster port cannot be opened: %s", error)
            await asyncio.sleep(self._pause)
            self._listen()

    def _forget(self) -> None:
        if self._waiting:
            self._waiting = False
            asyncio.get_running_loop().remove_reader(self._listener.fileno())

    async def close(self) -> None:
        """Safe to call twice."""
        with contextlib.suppress(ValueError):
            self._forget()
        await self._tasks.cancel_all()
        self._listener.close()


def listen(host: str, port: int) -> Listener:
    """OSError in the kernel's own words."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=host == "::")
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno) if error.errno else str(error)) from None
    made.setblocking(False)
    return made
