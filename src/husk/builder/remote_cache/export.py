"""Puts together what a build knows of its vertices for a cache that goes elsewhere.

By `min` the cache has the layers of the result, by `max` those of all steps. Records that were found elsewhere and not
fetched go out as records alone, unless by `max`: then their layers are brought here first.

The document of a cache, written from the things that a build has made.

    chains = Chains()
    base = chains.source(digest)
    step = chains.operation(digest, 0, [[Link(base)]])
    chains.result(step, layers, created)
    document = chains.document()

The same record twice is one; layers that lie on the same ones are one, too.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from husk.builder.graph import stacks
from husk.builder.graph.graph import Vertex
from husk.builder.graph.op_digests import CONTENT, InputKey, op_key, record_digest
from husk.builder.graph.operations import Edge, Source
from husk.builder.remote_cache.config import CacheConfig, CacheInput, CacheLayer, CacheRecord, CacheResult
from husk.builder.remote_cache.lookup import outputs_of
from husk.builder.solver.interfaces import PortableExecutor, Record, Watcher
from husk.builder.solver.refs import Ref
from husk.builder.solver.solver import BuildRun
from husk.engine.model.clock import now_ns, shortest_rfc3339
from husk.errors import HuskError
from husk.registry.manifest import Descriptor

Describe = Callable[[str], Awaitable[Sequence[Descriptor] | None]]


class ChainLink(Struct, frozen=True):
    """A record that an input may come from."""

    record: int
    selector: str = ""


class Chains:
    def __init__(self) -> None:
        self._records: dict[tuple[str, tuple[tuple[ChainLink, ...], ...]], int] = {}
        self._results: dict[int, tuple[int, str]] = {}
        self._layers: dict[tuple[str, int], int] = {}
        self.descriptors: dict[str, Descriptor] = {}
        """The layers of all results, by digest."""

    def source(self, digest: str, output: int = 0) -> int:
        return self._record(record_digest(digest, output), [])

    def content(self, digest: str) -> int:
        """Files that look like this, wherever they come from."""
        return self._record(record_digest(digest, CONTENT), [])

    def operation(self, digest: str, output: int, inputs: Sequence[Sequence[ChainLink]]) -> int:
        return self._record(record_digest(digest, output), inputs)

    def result(self, record: int, layers: Sequence[Descriptor], created: str) -> None:
        """Set the layers of a record, base first."""
        top = -1
        for layer in layers:
            self.descriptors[layer.digest] = layer
            top = self._layers.setdefault((layer.digest, top), len(self._layers))
        if top != -1:
            self._results[record] = top, created

    def document(self) -> CacheConfig:
        records = []
        for (digest, inputs), number in self._records.items():
            result = self._results.get(number)
            records.append(
                CacheRecord(
                    results=[CacheResult(*result)] if result else [],
                    digest=digest,
                    inputs=[[CacheInput(link.selector, link.record) for link in links] for links in inputs],
                )
            )
        return CacheConfig([CacheLayer(*layer) for layer in self._layers], records)

    def _record(self, digest: str, inputs: Sequence[Sequence[ChainLink]]) -> int:
        key = digest, tuple(tuple(sorted(set(links), key=_order)) for links in inputs)
        return self._records.setdefault(key, len(self._records))


def _order(link: ChainLink) -> tuple[int, str]:
    return link.record, link.selector


"""The layers of a stack as they go out; None if they do not."""


class CacheFacts(Protocol):
    """The facts about records that our own cache tells."""

    def is_whole(self, record: Record) -> bool: ...

    def created(self, record: Record) -> int | None: ...


class Collector:
    """Goes through the graph of a ref, inputs first."""

    def __init__(self, executor: PortableExecutor, cache: CacheFacts, watcher: Watcher, chains: Chains) -> None:
        self._executor = executor
        self._cache = cache
        self._watcher = watcher
        self._chains = chains
        self._outputs: dict[tuple[str, int], list[int]] = {}

    async def collect(self, ref: Ref, describe: Describe, *, whole: bool) -> None:
        """`whole`: with the results of all steps, not those alone that the last one lies on."""
        build = await ref.build()
        if build is None or ref.edge is None:
            return
        final = await ref.stack()
        for vertex in ref.graph.needed_for(ref.edge):
            record = build.known(vertex.digest)
            for output in outputs_of(vertex):
                numbers = await self._add(build, vertex, output)
                self._outputs[vertex.digest, output] = numbers
                if not isinstance(vertex.operation.body, Source) and record and numbers:
                    await self._add_result(build, vertex, record, output, numbers[0], final, describe, whole)

    async def _add(self, build: BuildRun, vertex: Vertex, output: int) -> list[int]:
        if isinstance(vertex.operation.body, Source):
            digests = await self._executor.portable_source_keys(vertex.operation, self._watcher)
            return [self._chains.source(digest, output) for digest in digests]
        op = op_key(vertex.operation)
        if op is None:
            return []
        inputs = [
            await self._links(build, edge, key) for edge, key in zip(vertex.operation.inputs, op.inputs, strict=True)
        ]
        # An input without any name makes all above it nameless.
        return [self._chains.operation(op.digest, output, inputs)] if all(inputs) else []

    async def _links(self, build: BuildRun, edge: Edge, key: InputKey) -> list[ChainLink]:
        links = [ChainLink(number, key.selector) for number in self._outputs.get((edge.digest, edge.output), [])]
        record = build.known(edge.digest)
        if key.files is not None and record and self._cache.is_whole(record):
            try:
                digests = await self._executor.portable_digests(record.outputs[edge.output], key.files)
            except HuskError:
                return links
            links += [ChainLink(self._chains.content(digest)) for digest in digests]
        return links

    async def _add_result(
        self,
        build: BuildRun,
        vertex: Vertex,
        record: Record,
        output: int,
        number: int,
        final: str,
        describe: Describe,
        whole: bool,
    ) -> None:
        if whole and not self._cache.is_whole(record):
            await build.fetch(vertex, self._watcher)
        if not self._cache.is_whole(record) or output >= len(record.outputs):
            return
        stack = record.outputs[output]
        if not stack or not (whole or stacks.above(stack, final) is not None):
            return
        if layers := await describe(stack):
            created = self._cache.created(record)
            self._chains.result(number, layers, shortest_rfc3339(created if created is not None else now_ns()))
