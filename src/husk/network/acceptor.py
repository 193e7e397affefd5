"""Limits on the connections that containers, and those who call them, make the daemon hold.

Every connection costs descriptors, and a daemon without any left lets nobody in. So these come from a share of what the
process may open; and of whatever number is left, the last ones are kept for the operator: the kernel gives the lowest
free number, so a high one says that nearly all are taken, by whomever.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable

from husk.aio.tasks import Tasks
from husk.kernel import limits

log = logging.getLogger(__name__)

# How long to wait when the kernel gives no connection for want of descriptors or memory.
_PAUSE = 1.0
# The last part of the descriptors, and at least so many, are not for these connections.
_RESERVED_PART = 8
_LEAST_RESERVED = 64


class Quota:
    """Descriptors that may be held for others: `each` for one of them, `in_all` together."""

    def __init__(self, each: int, in_all: int) -> None:
        self._each = each
        self._in_all = in_all
        self._held: Counter[Hashable] = Counter()
        self._sum = 0

    @classmethod
    def share(cls, part: int, most: int, each_part: int, open_files: Callable[[], int] = limits.open_files) -> "Quota":
        """One `part`-th of the descriptors of this process, at most so many; to each one `each_part`-th of that."""
        in_all = min(most, max(open_files() // part, each_part))
        return cls(max(in_all // each_part, 2), in_all)

    def take(self, who: Hashable, count: int = 1) -> bool:
        """Take so many descriptors if there is room for them; False if there is none."""
        if self._held[who] + count > self._each or self._sum + count > self._in_all:
            return False
        self._held[who] += count
        self._sum += count
        return True

    def give_back(self, who: Hashable, count: int = 1) -> None:
        self._held[who] -= count
        self._sum -= count
        if not self._held[who]:
            del self._held[who]


def reserved(descriptor: int, open_files: Callable[[], int] = limits.open_files) -> bool:
    """Return True if a new descriptor is one of the last, which are kept for the operator."""
    most = open_files()
    return descriptor >= most - max(_LEAST_RESERVED, most // _RESERVED_PART)


class Acceptor:
    """A listening socket whose callers are let in while there is room, and sent away at once when there is none.

    The socket stays the caller's own. What is let in goes on when the acceptor is closed.
    """

    def __init__(
        self,
        listener: socket.socket,
        serve: Callable[[socket.socket], Coroutine[object, object, None]],
        tasks: Tasks,
        quota: Quota,
        who: Hashable,
        cost: int,
    ) -> None:
        """`cost` is how many descriptors one of them takes in all; `serve` closes the connection that it gets."""
        self._listener = listener
        self._serve = serve
        self._tasks = tasks
        self._quota = quota
        self._who = who
        self._cost = cost
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.TimerHandle | None = None
        self._open()

    def close(self) -> None:
        """Safe to call twice, before the socket is closed."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._loop.remove_reader(self._listener.fileno())

    def _open(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._answer)

    def _answer(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            log.warning("connections to %s wait: %s", self._who, error)
            self._loop.remove_reader(self._listener.fileno())
            self._waiting = self._loop.call_later(_PAUSE, self._open)
            return
        if reserved(connection.fileno()) or not self._quota.take(self._who, self._cost):
            connection.close()
            return
        connection.setblocking(False)
        self._tasks.spawn(self._let_in(connection), "serve a connection")

    async def _let_in(self, connection: socket.socket) -> None:
        try:
            await self._serve(connection)
        finally:
            connection.close()
            self._quota.give_back(self._who, self._cost)
