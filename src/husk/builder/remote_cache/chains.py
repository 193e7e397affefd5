"""The document of a cache, written from the things that a build has made. Pure.

    chains = Chains()
    base = chains.source(digest)
    step = chains.operation(digest, 0, [[Link(base)]])
    chains.result(step, layers, created)
    document = chains.document()

The same record twice is one; layers that lie on the same ones are one, too.
"""

from collections.abc import Sequence

from msgspec import Struct

from husk.builder.graph.op_digests import CONTENT, record_digest
from husk.builder.remote_cache.config import CacheConfig, CacheInput, CacheLayer, CacheRecord, CacheResult
from husk.registry.manifest import Descriptor


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
