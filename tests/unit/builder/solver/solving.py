"""Doubles of what does the work of builds and of what remembers it, and graphs to solve with them."""

import asyncio
import itertools

from husk.aio.tasks import Tasks
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Exec, ExecMount, Files, Operation, ProcessSpec, Source
from husk.builder.graph.progress import Status
from husk.builder.solver.interfaces import Record
from husk.builder.store.file_actions import NONE, Copy, FileAction


class Memory:
    def __init__(self):
        self.records = {}
        self.held = []
        self.unnamed = []
        self.forgotten = []

    async def find(self, key):
        return self.records.get(key)

    def know(self, key):
        return self.records.get(key)

    def is_whole(self, record):
        return not record.absent

    async def remember(self, keys, record):
        for key in keys:
            self.records[key] = record

    async def release_unnamed(self, elements):
        named = {element for record in self.records.values() for element in record.made}
        self.unnamed += [element for element in elements if element not in named]

    async def forget(self, stack):
        self.forgotten.append(stack)

    def hold(self, record):
        self.held.append(record)

    def release(self, record):
        self.held.remove(record)

    def save_uses(self, records):
        self.used = list(records)


class Ahead:
    """A record of what is packed while files come."""

    def __init__(self, action, below):
        self.action = action
        self.below = below
        self.closed = False

    async def close(self):
        self.closed = True


class Worker:
    """Runs nothing: an operation is its name, an output the text of all that went into it."""

    def __init__(self):
        self.begun = []
        self.ran = []
        self.running = set()
        self.most = 0
        self.contents = {}
        self.sources = {}
        self.fail = set()
        self.gate = None
        self.cancelled = []
        self.aheads = []
        self.packing = []
        self.granted = {}
        self._ids = itertools.count()

    def begin_anew(self, vertices):
        self.begun.append([vertex.name for vertex in vertices])

    async def source_key(self, operation, watcher):
        await asyncio.sleep(0)
        source = operation.body
        if source.identifier.startswith("local://"):
            watcher.status(Status(id="transfer", current=1, total=1, done=True))
        return self.sources.get(source.identifier, source.identifier)

    async def run(self, vertex, inputs, watcher):
        self.ran.append(vertex.name)
        self.granted[vertex.name] = watcher.granted
        if vertex.ahead:
            self.packing.append((vertex.name, vertex.ahead))
        self.running.add(vertex.name)
        self.most = max(self.most, len(self.running))
        try:
            watcher.log(f"{vertex.name} runs\n".encode())
            if self.gate:
                await self.gate.wait()
            else:
                await asyncio.sleep(0)
            if vertex.name in self.fail:
                raise RuntimeError("exit code: 1")
        except asyncio.CancelledError:
            self.cancelled.append(vertex.name)
            raise
        finally:
            self.running.discard(vertex.name)
        return Record(f"record{next(self._ids)}", [f"{vertex.name}({','.join(inputs)})"])

    def ahead(self, action, below):
        self.aheads.append(Ahead(action, below))
        return self.aheads[-1]

    async def definition(self, body, inputs):
        """Another image, and a step on it; or the same again, without end."""
        graph = Graph()
        if body.attributes:
            base = source(graph, "again")
            return graph, graph.add(Operation(body, [base]), name="deeper")
        return graph, step(graph, "inner", source(graph, "inner image"))

    async def content_digest(self, output, selections):
        return self.contents.get(output, output) + str(selections)


class Watch:
    def __init__(self):
        self.told = []

    def started(self, vertex):
        self.told.append((vertex.name, "started"))

    def log(self, vertex, data, *, stderr):
        self.told.append((vertex.name, data.decode().strip()))

    def status(self, vertex, status):
        self.told.append((vertex.name, status.id))

    def ended(self, vertex, *, cached=False, error="", cancelled=False, outputs=()):
        self.told.append((vertex.name, "cached" if cached else "cancelled" if cancelled else error or "done"))

    def ends(self):
        return {name: what for name, what in self.told if what != "started" and not what.endswith("runs")}


def source(graph, name):
    return graph.add(Operation(Source(name)), name=name)


def step(graph, name, *inputs, **shown):
    mounts = [ExecMount(target=f"/{number or ''}", input=number) for number in range(len(inputs))]
    mounts[:1] = [ExecMount(target="/", input=0 if inputs else NONE, output=0)]
    return graph.add(Operation(Exec(process=ProcessSpec(args=[name]), mounts=mounts), list(inputs)), name=name, **shown)


def copy(graph, name, base, context, path="/a"):
    copied = Copy(source=path, destination=f"/{name}", contents_only=path == "/")
    action = FileAction(action=copied, input=0, second_input=1, output=0)
    return graph.add(Operation(Files([action]), [base, context]), name=name)


def chain(*names):
    graph = Graph()
    edge = source(graph, "image")
    for name in names:
        edge = step(graph, name, edge)
    return graph, edge


def never_ending(worker, name):
    """Let the step of this name have no end, and take some time to be ended; the event tells that it runs."""
    run, begun = worker.run, asyncio.Event()

    async def run_or_wait(vertex, inputs, watcher):
        if vertex.name != name:
            return await run(vertex, inputs, watcher)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await Tasks().to_its_end(_turns(8), "release")

    worker.run = run_or_wait
    return begun


async def _turns(count):
    for _ in range(count):
        await asyncio.sleep(0)
