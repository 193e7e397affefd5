"""Reads logs of other nodes' tasks: asks the node, if it listens to this manager, or another manager that can.

A worker is asked on the call on which it listens, and brings the log in another one (`husk.swarm.port.logs`). What it
brings is passed on as it is taken, so that a client that is slow holds the worker's reading, and one that leaves
ends it.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing

import msgspec

from husk.aio.tasks import Tasks
from husk.engine.containers.service import Containers
from husk.errors import Conflict, HuskError, NotFound, Unavailable
from husk.swarm import port
from husk.swarm.logs.source import LogSource
from husk.swarm.membership.certificates import NodeCertificates
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.node import Node
from husk.swarm.model.services import Task
from husk.swarm.port.assignment_messages import decoded, encoded
from husk.swarm.port.log_messages import Asked
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

# Logs that are read from one node at once: its connection is for other things, too.
MOST = 32
# How long a node may take to begin, in seconds.
PATIENCE = 10.0
NOT_HEARD = "the node is not connected to a manager"
BROKEN = "the node broke off"
TOO_MANY = f"{MOST} readers have logs of this node already: try again when one has ended"

Elsewhere = Callable[[Asked], Iterable[AsyncGenerator[bytes]]]


class LogBroker:
    def __init__(
        self,
        own: Callable[[Asked], AsyncGenerator[bytes]],
        own_id: Callable[[], str],
        others: Elsewhere,
        patience: float = PATIENCE,
    ):
        """`own` reads what this node has itself; `others` asks managers that may reach the node."""
        self._patience = patience
        self._own = own
        self._own_id = own_id
        self._others = others
        self._listening: dict[str, list[asyncio.Queue[bytes]]] = {}
        self._readings: dict[str, _Reading] = {}
        self._tasks = Tasks()

    # --- for clients of this manager

    async def pieces(self, asked: Asked) -> AsyncGenerator[bytes]:
        """Of a node that is not this one. Unavailable where nobody reaches it."""
        ways = [self._from_node(asked)] if asked.node in self._listening else self._others(asked)
        trouble: HuskError = Unavailable(NOT_HEARD)
        begun = False
        for way in ways:
            async with aclosing(way) as pieces:
                try:
                    async for piece in pieces:
                        begun = True
                        yield piece
                    return
                except (NotFound, Unavailable) as error:
                    if begun:
                        raise
                    # NotFound: the node is not heard there.
                    trouble = trouble if isinstance(error, NotFound) else error
        raise trouble

    async def _from_node(self, asked: Asked) -> AsyncGenerator[bytes]:
        if not (listeners := self._listening.get(asked.node)):
            raise NotFound(NOT_HEARD)
        if sum(reading.node == asked.node for reading in self._readings.values()) >= MOST:
            raise Unavailable(TOO_MANY)
        name = secrets.token_hex(16)
        reading = self._readings[name] = _Reading(asked.node)
        # The one that listens last: those before it may be gone without our knowledge.
        listeners[-1].put_nowait(encoded(msgspec.structs.replace(asked, name=name)))
        try:
            async with asyncio.timeout(self._patience):
                await reading.begun.wait()
            while (piece := await reading.pieces.get()) is not None:
                yield piece
            if reading.trouble:
                raise Unavailable(reading.trouble)
        except TimeoutError:
            raise Unavailable("the node does not bring its logs") from None
        finally:
            del self._readings[name]
            reading.over.set()

    # --- for nodes and other managers (`husk.swarm.port.logs.LogServicer`)

    async def wanted(self, node: str) -> AsyncGenerator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._listening.setdefault(node, []).append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listening[node].remove(queue)
            if not self._listening[node]:
                del self._listening[node]

    async def take(self, node: str, name: bytes, pieces: AsyncIterator[bytes]) -> None:
        reading = self._readings.get(name.decode(errors="replace"))
        if reading is None or reading.node != node:
            raise NotFound("nobody reads this log")
        if reading.begun.is_set():
            raise Conflict("this log is brought already")
        reading.begun.set()
        passing = self._tasks.spawn(reading.fill(pieces), "a log of another node", awaited=True)
        leaving = self._tasks.spawn(reading.over.wait(), "the reader of a log", awaited=True)
        try:
            await asyncio.wait([passing, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            passing.cancel()
            leaving.cancel()
            try:
                await asyncio.wait([passing, leaving])
            finally:
                # A call may be cancelled twice: by the node, and with its connection.
                whole = passing.done() and not passing.cancelled() and passing.exception() is None
                reading.end("" if whole else BROKEN)

    def read(self, body: bytes) -> AsyncGenerator[bytes]:
        asked = decoded(body, Asked)
        # Never asked of others: they would ask us.
        return self._own(asked) if asked.node == self._own_id() else self._from_node(asked)


class _Reading:
    """A log that is being read from a node: at most so much of it is here as its reader has not taken."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue(2)
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.trouble = ""

    async def fill(self, pieces: AsyncIterator[bytes]) -> None:
        async for piece in pieces:
            await self.pieces.put(piece)
        await self.pieces.put(None)

    def end(self, trouble: str) -> None:
        """Let the reader hear of an end that nobody has told it yet."""
        if not trouble or self.over.is_set():
            return
        self.trouble = trouble
        if self.pieces.full():
            # All of them: who goes on later asks for what is behind the last that it has got.
            while not self.pieces.empty():
                self.pieces.get_nowait()
        self.pieces.put_nowait(None)


def open_broker(
    nodes: Mapping[str, Node],
    cluster: Cluster,
    certificates: NodeCertificates,
    containers: Containers,
    find: Callable[[str], Task | None],
) -> LogBroker:
    """`find` gives a task of this node, and of no other."""

    async def ask(endpoint: HostPort, asked: Asked) -> AsyncGenerator[bytes]:
        async with aclosing(port.logs.read(endpoint, await certificates.identity(), encoded(asked))) as pieces:
            async for piece in pieces:
                yield piece

    def others(asked: Asked) -> Iterator[AsyncGenerator[bytes]]:
        for node in askable(asked.node, nodes, cluster.node_id):
            assert node.manager is not None
            yield ask(read_endpoint(node.manager.addr, MANAGER_PORT), asked)

    return LogBroker(LogSource(containers, find).read, lambda: cluster.node_id, others)


def askable(node_id: str, nodes: Mapping[str, Node], own_id: str) -> list[Node]:
    """The managers that may reach a node: itself, if it is one, or else all others that live. Pure."""
    node = nodes.get(node_id)
    if node is not None and node.manager is not None:
        return [node]
    return [
        other
        for other in nodes.values()
        if other.manager is not None and other.id != own_id and other.status.state != "down"
    ]
