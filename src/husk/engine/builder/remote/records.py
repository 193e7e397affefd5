"""A cache that was fetched: which of its records fit an operation, and which layers their results have. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from husk.engine.builder.remote import config
from husk.engine.builder.remote.config import CacheConfig, CacheRecord
from husk.engine.builder.remote.op_digests import CONTENT, record_digest
from husk.engine.images.fetch import OpenBlob
from husk.registry.manifest import Descriptor

NOTHING: frozenset[int] = frozenset()


class RemoteLayer(Struct, frozen=True):
    """A layer that may be fetched; `created` in nanoseconds, None if nobody says."""

    descriptor: Descriptor
    diff_id: str
    created: int | None = None


class InputMatch(Struct, frozen=True):
    """What an input is known as: records with a selector, or digests of the files that matter."""

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
        return frozenset(number for number in numbers if self._fits(self._document.records[number], inputs))

    def result(self, numbers: frozenset[int]) -> list[RemoteLayer] | None:
        """The newest result of these records of which all layers can be had, base first."""
        records = [self._document.records[number] for number in sorted(numbers)]
        found = [
            (one.created, config.chain(self._document.layers, one.layer)) for rec in records for one in rec.results
        ]
        found += [(one.created, one.layers) for record in records for one in record.chains]
        for _, chain in sorted(found, reverse=True):
            layers = [self._layers.get(self._document.layers[number].blob) for number in chain]
            if layers and None not in layers:
                return [layer for layer in layers if layer]
        return None

    def _without_inputs(self, digest: str) -> list[int]:
        return [number for number in self._by_digest.get(digest, ()) if not self._document.records[number].inputs]

    def _fits(self, record: CacheRecord, inputs: Sequence[InputMatch]) -> bool:
        if len(record.inputs) != len(inputs):
            return False
        for choices, known in zip(record.inputs, inputs, strict=True):
            contents = [one for each in known.contents for one in self._without_inputs(record_digest(each, CONTENT))]
            if not any(
                (choice.link in known.records and choice.selector == known.selector)
                or (choice.link in contents and not choice.selector)
                for choice in choices
            ):
                return False
        return True
