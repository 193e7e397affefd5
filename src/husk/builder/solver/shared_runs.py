"""Runs of operations that several builds wait for at the same time: all of them hear what is said."""

import asyncio
from collections.abc import Collection

from husk.builder.graph.graph import Vertex
from husk.builder.graph.progress import Status
from husk.builder.solver.interfaces import Client, Record
from husk.builder.solver.sessions import Session


class Flight:
    """One run of an operation, and all builds that wait for it."""

    def __init__(self, granted: Collection[str] = ()) -> None:
        """`granted` is what the build that began it allows; the others have looked at what they allow themselves."""
        self.granted = granted
        self.task: asyncio.Task[Record] | None = None
        self.waiting = 0
        # Has the cache been told of what it has made?
        self.remembered = False
        self._watchers: list[tuple[Client, Vertex]] = []

    @property
    def session(self) -> Session | None:
        """One of those who still wait."""
        return next((client.session for client, _ in self._watchers if client.session), None)

    def watch(self, client: Client, vertex: Vertex) -> None:
        self._watchers.append((client, vertex))

    def leave(self, client: Client, vertex: Vertex) -> None:
        self._watchers.remove((client, vertex))

    def log(self, data: bytes, *, stderr: bool = False) -> None:
        for client, vertex in self._watchers:
            client.progress.log(vertex, data, stderr=stderr)

    def status(self, status: Status) -> None:
        for client, vertex in self._watchers:
            client.progress.status(vertex, status)
