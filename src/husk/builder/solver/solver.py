"""Carries a graph of operations out: each at most once, side by side where they do not need each other, from the cache
where it can.

    build = await Solver(executor, cache).solve(graph, edge, progress)

For what is wanted, the cache is asked first, from the sources up, and nothing is run for it (`_look_up`). What it does
not have is made (`_obtain`): first the inputs, then the operation itself. If another build makes the same at this
moment, both wait for one run; it is given up when nobody waits for it any more.

A record may be known and not be here: caches elsewhere have it, or its layers have gone. What was made from it can be
found all the same; only when its files are needed it is fetched, or made again (`_have`).

A result is known by the id of its record, and that id is what the keys of later operations are made of. So a result
that was found by the content of its inputs leads to the same later results as the one that it was made as.

The keys of one build's vertices: by which the cache finds what was made of them before (`cache_keys` says how).

Runs of operations that several builds wait for at the same time: all of them hear what is said.
"""

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import TypeVar

from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.graph import cache_keys, schemes
from husk.builder.graph.graph import Graph, Vertex, layered
from husk.builder.graph.operations import Edge, Source
from husk.builder.graph.operations import NestedBuild as Within
from husk.builder.graph.progress import Progress, Status, public_name
from husk.builder.solver import entitlements
from husk.builder.solver.interfaces import Cache, Client, Elsewhere, Executor, Record, Watcher
from husk.builder.solver.sessions import Session
from husk.builder.solver.source_policy import FREE, SourcePolicy, admitted
from husk.builder.solver.waiting_copies import WaitingCopies
from husk.errors import InvalidParameter
from husk.watch import Watch

T = TypeVar("T")

# Of builds within builds: how deep, and how many there may be in all.
_DEEPEST = 8
_MOST_WITHIN = 100
# So many lookups begin in one go.
_AT_ONCE = 200


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


class _Nest:
    """The depth of a build within others, and the number of those around and beside it."""

    def __init__(self, most: int, depth: int = 0, numbers: "itertools.count[int] | None" = None) -> None:
        self._most = most
        self._depth = depth
        self._numbers = numbers or itertools.count(1)

    def deeper(self) -> "_Nest":
        """The place of one more. InvalidParameter when there have been too many: each of them may have others."""
        if self._depth >= _DEEPEST:
            raise InvalidParameter(f"builds within builds: more than {_DEEPEST} deep")
        if next(self._numbers) > self._most:
            raise InvalidParameter(f"builds within a build: more than {self._most} of them")
        return _Nest(self._most, self._depth + 1, self._numbers)


class Solver:
    """All builds of an engine."""

    def __init__(
        self, executor: Executor, cache: Cache, watch: Watch | None = None, most_within: int = _MOST_WITHIN
    ) -> None:
        """`most_within` is how many builds there may be within one, in all."""
        self._most_within = most_within
        self.executor = executor
        self.cache = cache
        self.watch = watch or Watch()
        self._tasks = Tasks()
        self._flights: dict[str, Flight] = {}
        self._numbers = itertools.count()

    async def solve(
        self,
        graph: Graph,
        wanted: Edge,
        progress: Progress,
        session: Session | None = None,
        elsewhere: Elsewhere | None = None,
        granted: Collection[str] = (),
        policy: SourcePolicy = FREE,
        to_layers: bool = False,
        also: Sequence[Edge] = (),
    ) -> "BuildRun":
        """Make an edge, and `also` others. What was made or found for them is held until the build is closed.

        `granted` is what its steps may ask for (`entitlements`), `policy` says which sources it may
        have; with `to_layers` an image is going to be made of it.
        """
        client = Client(progress, session, elsewhere, granted, policy)
        return await self.solve_for(client, graph, wanted, _Nest(self._most_within), to_layers=to_layers, also=also)

    async def solve_for(
        self,
        client: Client,
        graph: Graph,
        wanted: Edge,
        nest: _Nest,
        *,
        to_layers: bool = False,
        also: Sequence[Edge] = (),
    ) -> "BuildRun":
        entitlements.check_graph(graph, client.granted)
        graph = await admitted(graph, [wanted, *also], client.policy)
        build = BuildRun(self, graph, client, next(self._numbers), nest)
        build.layered = layered(graph, wanted) if to_layers else frozenset()
        try:
            await build.solve(wanted, also)
        except BaseException:
            await build.close()
            raise
        return build

    @contextlib.asynccontextmanager
    async def run_once(self, key: str, vertex: Vertex, inputs: Sequence[str], client: Client) -> AsyncIterator[Record]:
        """Run an operation, or wait for somebody who does. What it has made stays for the block, in which the cache is
        told of it; after the last of those who wait, what is in no record goes."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight(client.granted)
            work = self._fly(key, flight, vertex, inputs)
            flight.task = self._tasks.spawn(work, f"build step {vertex.name or vertex.digest}", awaited=True)
        assert flight.task
        flight.waiting += 1
        flight.watch(client, vertex)
        try:
            try:
                record = await asyncio.shield(flight.task)
            finally:
                flight.leave(client, vertex)
            yield record
            flight.remembered = True
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.remembered:
                ending = self._land(key, flight, vertex)
                await self._tasks.to_its_end(ending, "end a step that nobody waits for")
            if not flight.waiting:
                flight.task = None  # its error knows this function by its traceback, and so would know itself

    async def _land(self, key: str, flight: Flight, vertex: Vertex) -> None:
        assert flight.task
        if not flight.task.done():
            # Who comes from now on needs a run of their own.
            self._flights.pop(key, None)
            flight.task.cancel()
            await asyncio.wait([flight.task])
        body = vertex.operation.body
        if isinstance(body, Source) and body.identifier.startswith(f"{schemes.GIVEN}://"):
            return  # it was there before, and belongs to whoever has given it
        if not flight.task.cancelled() and flight.task.exception() is None:
            await self.cache.release_unnamed(flight.task.result().made)

    async def _fly(self, key: str, flight: Flight, vertex: Vertex, inputs: Sequence[str]) -> Record:
        try:
            return await self.executor.run(vertex, inputs, flight)
        finally:
            if self._flights.get(key) is flight:
                del self._flights[key]


class BuildRun:
    """One build: what is known of its vertices so far."""

    def __init__(self, solver: Solver, graph: Graph, client: Client, number: int, nest: _Nest) -> None:
        self._nest = nest
        self._within: list[BuildRun] = []
        self._solver = solver
        self.graph = self._graph = graph
        self._client = client
        self._progress = client.progress
        self._number = number
        self._tasks = Tasks()
        self._lookups: dict[str, asyncio.Task[Record | None]] = {}
        self._obtained: dict[str, asyncio.Task[Record]] = {}
        self._had: dict[str, asyncio.Task[Record]] = {}
        self._held: list[Record] = []
        self._keys = VertexKeys(solver.executor, solver.cache)
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self.record: Record | None = None
        self.layered: frozenset[str] = frozenset()
        self._wanted = ""
        self._waiting = WaitingCopies(graph, solver.executor)

    async def solve(self, wanted: Edge, also: Sequence[Edge] = ()) -> None:
        self._wanted = wanted.digest
        needed = self._graph.needed_for(wanted, *also)
        self._solver.executor.begin_anew(needed)
        for number, vertex in enumerate(needed, 1):
            self._lookups[vertex.digest] = self._tasks.spawn(self._look_up(vertex), "build lookup", awaited=True)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)  # others have their turn between those of a large build
        self.record, *_ = await asyncio.gather(*(self._having(edge.digest) for edge in (wanted, *also)))
        for vertex in needed:
            # What was known and not needed.
            if vertex.digest not in self._ended and (record := self.known(vertex.digest)):
                self.ended(vertex, cached=True, outputs=record.outputs)

    async def close(self) -> None:
        """End what still runs, and let go of all results."""
        await self._tasks.cancel_all()
        await self._waiting.close()
        within, self._within = self._within, []
        for build in within:
            await build.close()
        held, self._held = self._held, []
        for record in held:
            self._solver.cache.release(record)
        self._solver.cache.save_uses(held)
        # Those that have failed know the build by their tracebacks: with such a circle all of it would stay in memory
        # until the collector of garbage goes through everything, which it does the later the more there is.
        for tasks in (self._lookups, self._obtained, self._had):
            tasks.clear()

    @property
    def session(self) -> Session | None:
        return self._client.session

    def known(self, digest: str) -> Record | None:
        """The record of a vertex; it may not be here."""
        for tasks in (self._had, self._obtained, self._lookups):
            if (task := tasks.get(digest)) and (record := _result(task)):
                return record
        return None

    async def fetch(self, vertex: Vertex, watcher: Watcher | None = None) -> None:
        """Bring the result of a vertex here if it was found elsewhere; the vertex is told of it, or the `watcher`."""
        record = self.known(vertex.digest)
        if record is None or self._client.elsewhere is None or self._solver.cache.is_whole(record):
            return
        if await self._client.elsewhere.fetch(record, watcher or _SourceWatcher(self, vertex)):
            await self._solver.cache.remember([], record)

    # --- vertices ----------------------------------------------------------------------------------------------------

    async def _look_up(self, vertex: Vertex) -> Record | None:
        """The record of a vertex if it can be had without running anything."""
        records = await _all(self._lookups[edge.digest] for edge in vertex.operation.inputs)
        found = [record for record in records if record]
        if vertex.ignore_cache or len(found) < len(records):
            return None
        with _Told(self, vertex):
            return await self._find(vertex, found, eager=False)

    def _obtaining(self, digest: str) -> asyncio.Task[Record]:
        if digest not in self._obtained:
            work = self._obtain(self._graph[digest])
            self._obtained[digest] = self._tasks.spawn(work, "build vertex", awaited=True)
        return self._obtained[digest]

    def _having(self, digest: str) -> asyncio.Task[Record]:
        if digest not in self._had:
            self._had[digest] = self._tasks.spawn(self._have(self._graph[digest]), "build result", awaited=True)
        return self._had[digest]

    async def _obtain(self, vertex: Vertex) -> Record:
        """A record, which may not be here; it is made if there is none."""
        record = await self._lookups[vertex.digest]
        if record:
            return record
        records = await self._inputs(vertex)
        with _Told(self, vertex):
            if not vertex.ignore_cache and (record := await self._find(vertex, records, eager=True)):
                if self._is_here(record):
                    await self._waiting.found(vertex)
                return record
            return await self._run(vertex, records)

    async def _have(self, vertex: Vertex) -> Record:
        """A record that is here: what is not is fetched, or else made again."""
        record = await self._obtaining(vertex.digest)
        if self._solver.cache.is_whole(record):
            return record
        with _Told(self, vertex):
            await self.fetch(vertex)
            if self._solver.cache.is_whole(record):
                self.ended(vertex, cached=True, outputs=record.outputs)
                return record
            await _all(self._having(edge.digest) for edge in vertex.operation.inputs)
            if self._is_here(record):  # what it lies on has come back
                self.ended(vertex, cached=True, outputs=record.outputs)
                return record
            return await self._run(vertex, await self._inputs(vertex), record.id)

    async def _inputs(self, vertex: Vertex) -> list[Record]:
        return await _all(self._obtaining(edge.digest) for edge in vertex.operation.inputs)

    async def _run(self, vertex: Vertex, records: Sequence[Record], id: str = "") -> Record:
        """`id` is that of a record which is made again: what was made from it stays as good as it was."""
        key = await self._keys.by_definition(vertex, records, _SourceWatcher(self, vertex))
        edges = vertex.operation.inputs
        records = await _all(self._having(edge.digest) for edge in edges)
        inputs = [record.outputs[edge.output] for record, edge in zip(records, edges, strict=True)]
        self.started(vertex)
        flight = f"{key} {self._number}" if vertex.ignore_cache else key
        async with contextlib.AsyncExitStack() as stack:
            with self._solver.watch.action("build-step", step=public_name(vertex)):
                if isinstance(vertex.operation.body, Within):
                    record = await self._solve_within(vertex.operation.body, vertex, inputs)
                else:
                    layered = vertex.digest in self.layered
                    ahead = self._waiting.ahead(vertex, self.layered, self._below)
                    followed = vertex.digest != self._wanted
                    to_run = structs.replace(vertex, layered=layered, ahead=ahead, followed=followed)
                    running = self._solver.run_once(flight, to_run, inputs, self._client)
                    record = await stack.enter_async_context(running)
            if id:
                record = structs.replace(record, id=id)
            self._hold(record)
            keys = [key]
            if content := await self._keys.by_content(vertex, records):
                keys.append(content)
            await self._solver.cache.remember(keys, record)
        self.ended(vertex, outputs=record.outputs)
        return record

    async def _below(self, edge: Edge | None) -> str | None:
        """The file system of an edge when it is known, if it is here."""
        if edge is None:
            return ""
        task = self._obtaining(edge.digest)
        await asyncio.wait([task])
        record = _result(task)
        return record.outputs[edge.output] if record and self._is_here(record) else None

    async def _solve_within(self, body: Within, vertex: Vertex, inputs: Sequence[str]) -> Record:
        """A build within this one: its results are held as long as those of this."""
        nest = self._nest.deeper()
        graph, edge = await self._solver.executor.definition(body, inputs)
        build = await self._solver.solve_for(self._client, graph, edge, nest)
        self._within.append(build)
        assert build.record
        return Record(secrets.token_hex(13)[:25], [build.record.outputs[edge.output]], [], vertex.name)

    async def _find(self, vertex: Vertex, records: Sequence[Record], *, eager: bool) -> Record | None:
        """Find the record of a vertex, in our cache or elsewhere; `eager`: bring inputs here whose content may tell."""
        key = await self._keys.by_definition(vertex, records, _SourceWatcher(self, vertex))
        found = await self._find_here(vertex, records, key)
        # Asked though we have it: what is found elsewhere for the next vertex depends on what was for this one.
        other = await self._find_elsewhere(vertex, records, key, found)
        if eager and not self._is_here(found) and (other is None or other.absent):
            records = await self._with_files(vertex)
            found = await self._find_here(vertex, records, key) or found
            other = await self._find_elsewhere(vertex, records, key, found) or other
        record = found if self._is_here(found) else other or found
        if record is None:
            return None
        self._hold(record)
        if record is other:
            content = await self._keys.by_content(vertex, records)
            await self._solver.cache.remember([key, content] if content else [key], record)
        if self._is_here(record):
            self.ended(vertex, cached=vertex.digest not in self._started, outputs=record.outputs)
        return record

    def _is_here(self, record: Record | None) -> bool:
        return record is not None and self._solver.cache.is_whole(record)

    async def _find_here(self, vertex: Vertex, records: Sequence[Record], key: str) -> Record | None:
        """Find the record that our own cache knows; its files need not be here."""
        cache = self._solver.cache
        if record := await cache.find(key):
            return record
        content = await self._keys.by_content(vertex, records)
        record = (await cache.find(content) if content else None) or cache.know(key) or cache.know(content)
        if record:
            await cache.remember([key], record)
        return record

    async def _with_files(self, vertex: Vertex) -> list[Record]:
        """The inputs, those here whose files matter."""
        chosen, edges = cache_keys.selections(vertex.operation), vertex.operation.inputs
        wanted = [self._having if number in chosen else self._obtaining for number in range(len(edges))]
        return await _all(work(edge.digest) for work, edge in zip(wanted, edges, strict=True))

    async def _find_elsewhere(
        self, vertex: Vertex, records: Sequence[Record], key: str, known: Record | None
    ) -> Record | None:
        elsewhere = self._client.elsewhere
        return await elsewhere.find(vertex, records, key, known, _SourceWatcher(self, vertex)) if elsewhere else None

    def _hold(self, record: Record) -> None:
        self._solver.cache.hold(record)
        self._held.append(record)

    # --- progress ----------------------------------------------------------------------------------------------------

    def started(self, vertex: Vertex) -> None:
        if vertex.digest not in self._started:
            self._started.add(vertex.digest)
            self._progress.started(vertex)

    def ended(
        self,
        vertex: Vertex,
        *,
        cached: bool = False,
        error: str = "",
        cancelled: bool = False,
        outputs: Sequence[str] = (),
    ) -> None:
        if vertex.digest not in self._ended:
            self.started(vertex)
            self._ended.add(vertex.digest)
            outcome = "cached" if cached else "cancelled" if cancelled else "failed" if error else "run"
            self._solver.watch.count("build-step", outcome=outcome)
            self._progress.ended(vertex, cached=cached, error=error, cancelled=cancelled, outputs=outputs)

    def said(self, vertex: Vertex) -> Progress:
        self.started(vertex)
        return self._progress

    def has_started(self, vertex: Vertex) -> bool:
        return vertex.digest in self._started


class _Told:
    """Tells how a vertex ended if it ended badly."""

    def __init__(self, build: BuildRun, vertex: Vertex) -> None:
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

    def __init__(self, build: BuildRun, vertex: Vertex) -> None:
        self._build = build
        self._vertex = vertex

    @property
    def session(self) -> Session | None:
        return self._build.session

    def log(self, data: bytes, *, stderr: bool = False) -> None:
        self._build.said(self._vertex).log(self._vertex, data, stderr=stderr)

    def status(self, status: Status) -> None:
        self._build.said(self._vertex).status(self._vertex, status)


async def _all(tasks: Iterable[asyncio.Task[T]]) -> list[T]:
    """Return the results of tasks that others wait for, too. Who is cancelled meanwhile does not cancel them: asyncio
    would cancel a chain of them by recursion, and a client's definition is longer than our stack is deep."""
    return await asyncio.gather(*map(asyncio.shield, tasks))


def _result(task: asyncio.Task[Record] | asyncio.Task[Record | None]) -> Record | None:
    return task.result() if task.done() and not task.cancelled() and not task.exception() else None


class VertexKeys:
    def __init__(self, executor: Executor, cache: Cache) -> None:
        self._executor = executor
        self._cache = cache
        self._sources: dict[str, str] = {}

    async def by_definition(self, vertex: Vertex, records: Sequence[Record], watcher: Watcher) -> str:
        """`records` are its inputs; the `watcher` hears what a source has to say."""
        operation = vertex.operation
        if not isinstance(operation.body, Source):
            return cache_keys.by_definition(operation, _names(vertex, records))
        # What it is for this build is asked once: it may be another thing a moment later.
        if vertex.digest not in self._sources:
            self._sources[vertex.digest] = await self._executor.source_key(operation, watcher)
        return cache_keys.by_definition(operation, [self._sources[vertex.digest]])

    async def by_content(self, vertex: Vertex, records: Sequence[Record]) -> str:
        """Empty if there is none, or if files that it is made of are not here."""
        selections = cache_keys.selections(vertex.operation)
        if not selections or not all(self._cache.is_whole(records[number]) for number in selections):
            return ""
        names = _names(vertex, records)
        for number, chosen in selections.items():
            output = records[number].outputs[vertex.operation.inputs[number].output]
            names[number] = await self._executor.content_digest(output, chosen)
        return cache_keys.by_content(vertex.operation, names)


def _names(vertex: Vertex, records: Sequence[Record]) -> list[str]:
    return [f"{record.id} {edge.output}" for record, edge in zip(records, vertex.operation.inputs, strict=True)]
