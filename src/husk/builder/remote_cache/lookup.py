"""The findings of caches elsewhere for the vertices of a build: `husk.builder.solver.interfaces.Elsewhere`.

A vertex is asked for after its inputs. What was found for it are records of the caches, without anything being fetched;
with a result they make a record of ours whose layers are not here yet.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from husk.aio.tasks import Tasks
from husk.builder.graph import stacks
from husk.builder.graph.graph import Vertex
from husk.builder.graph.op_digests import OpKey, op_key
from husk.builder.graph.operations import Exec, Files, Source
from husk.builder.remote_cache.records import NOTHING, ImportedCache, InputMatch, RemoteLayer
from husk.builder.solver.execution import described
from husk.builder.solver.interfaces import PortableExecutor, Record, Watcher
from husk.builder.store.file_actions import NONE
from husk.engine.images.fetch import OpenBlob
from husk.engine.images.make import chain_ids
from husk.errors import HuskError

log = logging.getLogger(__name__)


class Loader(Protocol):
    """Brings layers here, for the cache of builds: `layers`."""

    async def load(self, layers: Sequence[RemoteLayer], blobs: OpenBlob, watcher: Watcher) -> None: ...


class _Found(Struct, frozen=True):
    """One output that can be fetched."""

    layers: list[RemoteLayer]
    blobs: OpenBlob

    @property
    def stack(self) -> str:
        return stacks.of_layers(chain_ids([layer.diff_id for layer in self.layers]))


class RemoteCaches:
    """The caches that one build imports. They are read when the first vertex is asked for."""

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[ImportedCache]]],
        executor: PortableExecutor,
        is_whole: Callable[[Record], bool],
        loader: Loader,
    ) -> None:
        self._read = read
        self._executor = executor
        self._is_whole = is_whole
        self._loader = loader
        self._tasks = Tasks()
        self._reading: asyncio.Task[Sequence[ImportedCache]] | None = None
        self._matches: dict[tuple[str, int], list[frozenset[int]]] = {}
        self._found: dict[str, list[_Found | None]] = {}

    async def close(self) -> None:
        await self._tasks.cancel_all()

    async def find(
        self, vertex: Vertex, records: Sequence[Record], key: str, known: Record | None, watcher: Watcher
    ) -> Record | None:
        caches = await self._caches()
        if not caches:
            return None
        outputs = outputs_of(vertex)
        for output in outputs:
            if not any(self._matches.get((vertex.digest, output), ())):
                self._matches[vertex.digest, output] = await self._match(vertex, output, records, watcher, caches)
        if not all(any(self._matches[vertex.digest, output]) for output in outputs):
            return None
        return self._record(vertex, outputs, known.id if known else _id_of(key), caches)

    async def fetch(self, record: Record, watcher: Watcher) -> bool:
        try:
            for found in self._found.get(record.id, []):
                if found is not None:
                    await self._loader.load(found.layers, found.blobs, watcher)
        except HuskError as error:
            # It can still be made.
            watcher.log(f"failed to load cache: {error.message}\n".encode(), stderr=True)
            return False
        return record.id in self._found

    async def _caches(self) -> Sequence[ImportedCache]:
        if self._reading is None:
            self._reading = self._tasks.spawn(_awaited(self._read), "read caches", awaited=True)
        return await asyncio.shield(self._reading)

    # --- records of theirs -------------------------------------------------------------------------------------------

    async def _match(
        self,
        vertex: Vertex,
        output: int,
        records: Sequence[Record],
        watcher: Watcher,
        caches: Sequence[ImportedCache],
    ) -> list[frozenset[int]]:
        if isinstance(vertex.operation.body, Source):
            digests = await self._executor.portable_source_keys(vertex.operation, watcher)
            return [cache.sources(digests, output) for cache in caches]
        op = op_key(vertex.operation)
        if op is None:
            return [NOTHING for _ in caches]
        contents: list[list[str]] = [[] for _ in records]
        found = self._ask(vertex, output, op, contents, caches)
        if not any(found) and (contents := await self._contents(vertex, op, records)):
            found = self._ask(vertex, output, op, contents, caches)
        return found

    def _ask(
        self, vertex: Vertex, output: int, op: OpKey, contents: Sequence[Sequence[str]], caches: Sequence[ImportedCache]
    ) -> list[frozenset[int]]:
        edges = vertex.operation.inputs
        answers = []
        for number, cache in enumerate(caches):
            inputs = [
                InputMatch(self._known(edge.digest, edge.output, number), key.selector, content)
                for edge, key, content in zip(edges, op.inputs, contents, strict=True)
            ]
            answers.append(cache.operations(op.digest, output, inputs))
        return answers

    def _known(self, digest: str, output: int, number: int) -> frozenset[int]:
        found = self._matches.get((digest, output))
        return found[number] if found else NOTHING

    async def _contents(self, vertex: Vertex, op: OpKey, records: Sequence[Record]) -> list[list[str]]:
        """The digests of what matters of inputs that are here; empty if that tells nothing."""
        contents = []
        for edge, key, record in zip(vertex.operation.inputs, op.inputs, records, strict=True):
            content: list[str] = []
            if key.files is not None and self._is_whole(record):
                try:
                    content = await self._executor.portable_digests(record.outputs[edge.output], key.files)
                except HuskError as error:
                    log.debug("no digest of files for a cache: %s", error.message)
            contents.append(content)
        return contents if any(contents) else []

    # --- records of ours ---------------------------------------------------------------------------------------------

    def _record(self, vertex: Vertex, outputs: Sequence[int], id: str, caches: Sequence[ImportedCache]) -> Record:
        results = [self._result(vertex.digest, output, caches) for output in range(max(outputs) + 1)]
        if any(results[output] is None for output in outputs):
            return Record(id, [], description=described(vertex), absent=True)
        self._found[id] = results
        stack = [found.stack if found else "" for found in results]
        elements = list(dict.fromkeys(element for one in stack for element in stacks.elements(one)))
        times = {
            element: layer.created
            for found, one in zip(results, stack, strict=True)
            if found
            for element, layer in zip(stacks.elements(one), found.layers, strict=True)
            if layer.created is not None
        }
        return Record(id, stack, elements, described(vertex), times=times)

    def _result(self, digest: str, output: int, caches: Sequence[ImportedCache]) -> _Found | None:
        for number, cache in enumerate(caches):
            known = self._known(digest, output, number)
            if known and (layers := cache.result(known)):
                return _Found(layers, cache.blobs)
        return None


def outputs_of(vertex: Vertex) -> list[int]:
    match vertex.operation.body:
        case Exec(mounts=mounts):
            return sorted({mount.output for mount in mounts if mount.output != NONE}) or [0]
        case Files(actions):
            return sorted({action.output for action in actions if action.output != NONE}) or [0]
        case _:
            return [0]


def _id_of(key: str) -> str:
    """The same for the same key, so that what was made from it is found again."""
    return hashlib.sha256(f"elsewhere {key}".encode()).hexdigest()[:25]


async def _awaited(read: Callable[[], Awaitable[Sequence[ImportedCache]]]) -> Sequence[ImportedCache]:
    return await read()
