"""The keys of one build's vertices: by which the cache finds what was made of them before (`cache_keys` says how)."""

from collections.abc import Sequence

from husk.builder.graph import cache_keys
from husk.builder.graph.graph import Vertex
from husk.builder.graph.operations import Source
from husk.builder.solver.interfaces import Cache, Executor, Record, Watcher


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
