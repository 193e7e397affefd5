"""A cache that was fetched: which of its records fit an operation, and which layers their results have. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from husk.builder.graph.op_digests import CONTENT, record_digest
from husk.builder.remote_cache import config
from husk.builder.remote_cache.config import CacheConfig, CacheRecord
from husk.engine.images.fetch import OpenBlob
from husk.registry.manifest import Descriptor

NOTHING: frozenset[int] = frozenset()
# Of results with the same name, the newest ones.
_MOST_TRIED = 100


class RemoteLayer(Struct, frozen=True):
    """A layer that may be fetched; `created` in nanoseconds, None if nobody says."""

    descriptor: Descriptor
    diff_id: str
    created: int | None = None


class InputMatch(Struct, frozen=True):
    """The names by which an input is known: records with a selector, or digests of the files that matter."""

    records: frozenset[int]
    selector: str = ""
    contents: Sequence[str] = ()


class ImportedCache:
    def __init__(self, document: CacheConfig, layers: Mapping[str, RemoteLayer], blobs: OpenBlob) -> None:
        """`layers` are those that can be had, by the digests of their blobs."""
        self._document = document
        self._layers = layers
        self.blobs = blobs
        self._by_digest: dict[str, list[int]] = {}
        for number, record in enumerate(document.records):
            self._by_digest.setdefault(record.digest, []).append(number)

    def sources(self, digests: Sequence[str], output: int = 0) -> frozenset[int]:
        """The records of a source that is known by these digests."""
        return frozenset(number for digest in digests for number in self._without_inputs(record_digest(digest, output)))

    def operations(self, digest: str, output: int, inputs: Sequence[InputMatch]) -> frozenset[int]:
        """The records of an operation: each of its inputs must be one that the record knows."""
        numbers = self._by_digest.get(record_digest(digest, output), ())
        contents = [self._contents(known) for known in inputs]
        return frozenset(number for number in numbers if _fits(self._document.records[number], inputs, contents))

    def result(self, numbers: frozenset[int]) -> list[RemoteLayer] | None:
        """The newest result of these records of which all layers can be had, base first."""
        records = [self._document.records[number] for number in sorted(numbers)]
        found: set[tuple[str, int, tuple[int, ...]]]
        found = {(one.created, one.layer, ()) for record in records for one in record.results}
        found |= {(one.created, -1, tuple(one.layers)) for record in records for one in record.chains}
        for _, top, layers in sorted(found, reverse=True)[:_MOST_TRIED]:
            numbers_of = layers or config.chain(self._document.layers, top)
            chain = [self._layers.get(self._document.layers[number].blob) for number in numbers_of]
            if chain and None not in chain:
                return [layer for layer in chain if layer]
        return None

    def _without_inputs(self, digest: str) -> list[int]:
        return [number for number in self._by_digest.get(digest, ()) if not self._document.records[number].inputs]

    def _contents(self, known: InputMatch) -> frozenset[int]:
        """The records of files that look like those of an input."""
        digests = [record_digest(each, CONTENT) for each in known.contents]
        return frozenset(number for digest in digests for number in self._without_inputs(digest))


def _fits(record: CacheRecord, inputs: Sequence[InputMatch], contents: Sequence[frozenset[int]]) -> bool:
    if len(record.inputs) != len(inputs):
        return False
    return all(
        any(
            (choice.link in known.records and choice.selector == known.selector)
            or (choice.link in alike and not choice.selector)
            for choice in choices
        )
        for choices, known, alike in zip(record.inputs, inputs, contents, strict=True)
    )
