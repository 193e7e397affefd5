"""Carries a graph of operations out: each at most once, side by side where they do not need each other, from the cache
where it can.

    build = await Solver(executor, cache).solve(graph, edge, progress)

For what is wanted, the cache is asked first, from the sources up, and nothing is run for it (`_look_up`). What it does
not have is made (`_make`): first the inputs, then the operation itself. If another build makes the same at this moment,
both wait for one run; it is given up when nobody waits for it any more.

A result is known by the id of its record, and that id is what the keys of later operations are made of. So a result
that was found by the content of its inputs leads to the same later results as the one that it was made as.
"""

import asyncio
import itertools
import secrets
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from husk.engine.builder import cache_keys
from husk.engine.builder.cache_keys import Selection
from husk.engine.builder.graph import Graph, Vertex
from husk.engine.builder.operations import Build as Within
from husk.engine.builder.operations import Edge, Operation, Source
from husk.engine.builder.progress import Progress, Status
from husk.engine.builder.sessions import Session
from husk.errors import InvalidParameter
from husk.tasks import Tasks

_DEEPEST = 8


class Record(Struct, frozen=True):
    """A result that is there: its outputs are named by whoever made them, and so is what was made anew for it."""

    id: str
    outputs: list[str]
    made: list[str] = []
    description: str = ""
    type: str = "regular"


class Cache(Protocol):
    """What remembers records by keys. A record that is held is not thrown away."""

    async def find(self, key: str) -> Record | None: ...

    async def remember(self, keys: Sequence[str], record: Record) -> None: ...

    def hold(self, record: Record) -> None: ...

    def release(self, record: Record) -> None: ...

    async def save_uses(self, records: Sequence[Record]) -> None:
        """Remember beyond this daemon when these were used."""
        ...


class Watcher(Protocol):
    """Takes what an operation says while it runs, and asks on behalf of those who wait for it."""

    @property
    def session(self) -> Session | None: ...

    def log(self, data: bytes, *, stderr: bool = False) -> None: ...

    def status(self, status: Status) -> None: ...


class Executor(Protocol):
    """What does the work."""

    async def source_key(self, operation: Operation, watcher: Watcher) -> str:
        """What a source is right now: an image's digest, a commit, the digest of a context that was sent."""
        ...

    async def run(self, vertex: Vertex, inputs: Sequence[str], watcher: Watcher) -> Record:
        """Make the outputs of an operation; leave nothing behind if it fails or is cancelled."""
        ...

    async def content_digest(self, output: str, selections: Sequence[Selection]) -> str:
        """The digest of files in an output."""
        ...

    async def definition(self, body: Within, inputs: Sequence[str]) -> tuple[Graph, Edge]:
        """What a build within a build is to make."""
        ...


class Client(Struct, frozen=True, eq=False):
    """Who wants a build: whoever watches it, and whom to ask."""

    progress: Progress
    session: Session | None = None


class _Flight:
    """One run of an operation, and all builds that wait for it."""

    def __init__(self) -> None:
        self.task: asyncio.Task[Record] | None = None
        self.waiting = 0
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


class Solver:
    """All builds of an engine."""

    def __init__(self, executor: Executor, cache: Cache) -> None:
        self.executor = executor
        self.cache = cache
        self._tasks = Tasks()
        self._flights: dict[str, _Flight] = {}
        self._numbers = itertools.count()

    async def solve(
        self, graph: Graph, wanted: Edge, progress: Progress, session: Session | None = None, depth: int = 0
    ) -> "Build":
        """Make an edge. What was made or found for it is held until the build is closed. `depth` counts the builds that
        it is within."""
        build = Build(self, graph, Client(progress, session), next(self._numbers), depth)
        try:
            await build.solve(wanted)
        except BaseException:
            await build.close()
            raise
        return build

    async def run_once(self, key: str, vertex: Vertex, inputs: Sequence[str], client: Client) -> Record:
        """Run an operation, or wait for somebody who does."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            work = self._fly(key, flight, vertex, inputs)
            flight.task = self._tasks.spawn(work, f"build step {vertex.name or vertex.digest}", awaited=True)
        assert flight.task
        flight.waiting += 1
        flight.watch(client, vertex)
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.leave(client, vertex)
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                # Who comes from now on needs a run of their own.
                self._flights.pop(key, None)
                flight.task.cancel()
                await asyncio.wait([flight.task])

    async def _fly(self, key: str, flight: _Flight, vertex: Vertex, inputs: Sequence[str]) -> Record:
        try:
            return await self.executor.run(vertex, inputs, flight)
        finally:
            if self._flights.get(key) is flight:
                del self._flights[key]


class Build:
    """One build: what is known of its vertices so far."""

    def __init__(self, solver: Solver, graph: Graph, client: Client, number: int, depth: int = 0) -> None:
        self._depth = depth
        self._within: list[Build] = []
        self._solver = solver
        self._graph = graph
        self._client = client
        self._progress = client.progress
        self._number = number
        self._tasks = Tasks()
        self._lookups: dict[str, asyncio.Task[Record | None]] = {}
        self._makings: dict[str, asyncio.Task[Record]] = {}
        self._held: list[Record] = []
        self._source_keys: dict[str, str] = {}
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self.record: Record | None = None

    async def solve(self, wanted: Edge) -> None:
        for vertex in self._graph.needed_for(wanted):
            self._lookups[vertex.digest] = self._tasks.spawn(self._look_up(vertex), "build lookup", awaited=True)
        self.record = await self._making(wanted.digest)

    async def close(self) -> None:
        """End what still runs, and let go of all results."""
        await self._tasks.cancel_all()
        within, self._within = self._within, []
        for build in within:
            await build.close()
        held, self._held = self._held, []
        for record in held:
            self._solver.cache.release(record)
        await self._solver.cache.save_uses(held)

    @property
    def session(self) -> Session | None:
        return self._client.session

    # --- vertices ----------------------------------------------------------------------------------------------------

    async def _look_up(self, vertex: Vertex) -> Record | None:
        """The record of a vertex if it can be had without running anything."""
        records = await asyncio.gather(*(self._lookups[edge.digest] for edge in vertex.operation.inputs))
        found = [record for record in records if record]
        if vertex.ignore_cache or len(found) < len(records):
            return None
        with _Told(self, vertex):
            return await self._find(vertex, found)

    def _making(self, digest: str) -> asyncio.Task[Record]:
        if digest not in self._makings:
            self._makings[digest] = self._tasks.spawn(self._make(self._graph[digest]), "build vertex", awaited=True)
        return self._makings[digest]

    async def _make(self, vertex: Vertex) -> Record:
        record = await self._lookups[vertex.digest]
        if record:
            return record
        edges = vertex.operation.inputs
        records = await asyncio.gather(*(self._making(edge.digest) for edge in edges))
        with _Told(self, vertex):
            if not vertex.ignore_cache and (record := await self._find(vertex, records)):
                return record
            return await self._run(vertex, records)

    async def _run(self, vertex: Vertex, records: Sequence[Record]) -> Record:
        key = await self._key(vertex, records)
        inputs = [record.outputs[edge.output] for record, edge in zip(records, vertex.operation.inputs, strict=True)]
        self.started(vertex)
        flight = f"{key} {self._number}" if vertex.ignore_cache else key
        if isinstance(vertex.operation.body, Within):
            record = await self._solve_within(vertex.operation.body, vertex, inputs)
        else:
            record = await self._solver.run_once(flight, vertex, inputs, self._client)
        self._hold(record)
        keys = [key]
        if content := await self._content_key(vertex, records):
            keys.append(content)
        await self._solver.cache.remember(keys, record)
        self.ended(vertex)
        return record

    async def _solve_within(self, body: Within, vertex: Vertex, inputs: Sequence[str]) -> Record:
        """A build within this one: its results are held as long as those of this."""
        if self._depth >= _DEEPEST:
            raise InvalidParameter(f"builds within builds: more than {_DEEPEST} of them")
        graph, edge = await self._solver.executor.definition(body, inputs)
        solving = self._solver.solve(graph, edge, self._progress, self.session, self._depth + 1)
        build = await solving
        self._within.append(build)
        assert build.record
        return Record(secrets.token_hex(13)[:25], [build.record.outputs[edge.output]], [], vertex.name)

    async def _find(self, vertex: Vertex, records: Sequence[Record]) -> Record | None:
        cache = self._solver.cache
        key = await self._key(vertex, records)
        if record := await cache.find(key):
            self._hold(record)
        elif (content := await self._content_key(vertex, records)) and (record := await cache.find(content)):
            self._hold(record)
            await cache.remember([key], record)
        if record:
            self.ended(vertex, cached=vertex.digest not in self._started)
        return record

    # --- keys --------------------------------------------------------------------------------------------------------

    async def _key(self, vertex: Vertex, records: Sequence[Record]) -> str:
        operation = vertex.operation
        if isinstance(operation.body, Source):
            # What it is for this build is asked once: it may be another thing a moment later.
            if vertex.digest not in self._source_keys:
                watcher = _SourceWatcher(self, vertex)
                self._source_keys[vertex.digest] = await self._solver.executor.source_key(operation, watcher)
            return cache_keys.by_definition(operation, [self._source_keys[vertex.digest]])
        return cache_keys.by_definition(operation, _names(vertex, records))

    async def _content_key(self, vertex: Vertex, records: Sequence[Record]) -> str:
        selections = cache_keys.selections(vertex.operation)
        if not selections:
            return ""
        names = _names(vertex, records)
        for number, chosen in selections.items():
            output = records[number].outputs[vertex.operation.inputs[number].output]
            names[number] = await self._solver.executor.content_digest(output, chosen)
        return cache_keys.by_content(vertex.operation, names)

    def _hold(self, record: Record) -> None:
        self._solver.cache.hold(record)
        self._held.append(record)

    # --- progress ----------------------------------------------------------------------------------------------------

    def started(self, vertex: Vertex) -> None:
        if vertex.digest not in self._started:
            self._started.add(vertex.digest)
            self._progress.started(vertex)

    def ended(self, vertex: Vertex, *, cached: bool = False, error: str = "", cancelled: bool = False) -> None:
        if vertex.digest not in self._ended:
            self.started(vertex)
            self._ended.add(vertex.digest)
            self._progress.ended(vertex, cached=cached, error=error, cancelled=cancelled)

    def said(self, vertex: Vertex) -> Progress:
        self.started(vertex)
        return self._progress

    def has_started(self, vertex: Vertex) -> bool:
        return vertex.digest in self._started


class _Told:
    """Tells how a vertex ended if it ended badly."""

    def __init__(self, build: Build, vertex: Vertex) -> None:
        self._build = build
        self._vertex = vertex

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if isinstance(error, asyncio.CancelledError):
            if self._build.has_started(self._vertex):
                self._build.ended(self._vertex, cancelled=True)
        elif error:
            self._build.ended(self._vertex, error=str(error) or type(error).__name__)


class _SourceWatcher:
    """A source that has something to say has begun."""

    def __init__(self, build: Build, vertex: Vertex) -> None:
        self._build = build
        self._vertex = vertex

    @property
    def session(self) -> Session | None:
        return self._build.session

    def log(self, data: bytes, *, stderr: bool = False) -> None:
        self._build.said(self._vertex).log(self._vertex, data, stderr=stderr)

    def status(self, status: Status) -> None:
        self._build.said(self._vertex).status(self._vertex, status)


def _names(vertex: Vertex, records: Sequence[Record]) -> list[str]:
    return [f"{record.id} {edge.output}" for record, edge in zip(records, vertex.operation.inputs, strict=True)]
