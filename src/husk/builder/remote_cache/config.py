"""The document of a cache, as BuildKit writes it (`application/vnd.buildkit.cacheconfig.v0`). Pure.

Layers are numbered, each with the one that it lies on. Records are numbered too: a digest, for each input the records
that it may come from (one is enough), and the layers of the result. What somebody else has written is checked here:
numbers that lead nowhere and records that need themselves are refused.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from husk.errors import InvalidParameter
from husk.text.documents import MOST_VALUES, MalformedDocument, decode

MEDIA_TYPE = "application/vnd.buildkit.cacheconfig.v0"
LARGEST = 8 << 20
_MOST = 50_000
# Far more than builders write: what is looked for in a hostile cache must come to an end soon.
_MOST_IN_CHAIN = 500
_MOST_OF_RECORD = 1_000
_MOST_ALIKE = 1_000
_NEVER = "0001-01-01T00:00:00Z"

T = TypeVar("T")


class CacheLayer(Struct, frozen=True):
    blob: str = ""
    parent: int = 0  # -1: none; left out it is the first


class CacheResult(Struct, frozen=True, rename={"created": "createdAt"}):
    layer: int
    created: str = _NEVER


class ChainedResult(Struct, frozen=True, rename={"created": "createdAt"}):
    """A result whose layers do not lie on each other in the image that they are in."""

    layers: list[int]
    created: str = _NEVER


class CacheInput(Struct, frozen=True, omit_defaults=True):
    selector: str = ""
    link: int = -1


class CacheRecord(Struct, frozen=True, omit_defaults=True):
    results: list[CacheResult] = field(default_factory=list, name="layers")
    chains: list[ChainedResult] = []
    digest: str = ""
    inputs: list[list[CacheInput]] = []


class CacheConfig(Struct, frozen=True, omit_defaults=True):
    layers: list[CacheLayer] = []
    records: list[CacheRecord] = []


def read(data: bytes) -> CacheConfig:
    return checked(_decoded(data, CacheConfig))


def read_records(data: bytes) -> list[CacheRecord]:
    """The form within an image's configuration: its layers are those of the image."""
    return _decoded(data, list[CacheRecord])


def write(config: CacheConfig) -> bytes:
    return msgspec.json.encode(config)


def checked(config: CacheConfig) -> CacheConfig:
    if len(config.layers) > _MOST or len(config.records) > _MOST:
        raise InvalidParameter(f"invalid cache: more than {_MOST} layers or records")
    for number, layer in enumerate(config.layers):
        if not -1 <= layer.parent < len(config.layers) or layer.parent == number:
            raise InvalidParameter(f"invalid cache: layer {number} lies on {layer.parent}, which is none")
    _check_depths(config.layers)
    for number, record in enumerate(config.records):
        _check_record(number, record, config)
    if max(Counter(record.digest for record in config.records).values(), default=0) > _MOST_ALIKE:
        raise InvalidParameter(f"invalid cache: more than {_MOST_ALIKE} records of one operation")
    order(config.records)
    return config


def _check_depths(layers: Sequence[CacheLayer]) -> None:
    depths = {-1: 0}
    for number in range(len(layers)):
        way: list[int] = []
        while number not in depths:
            way.append(number)
            if len(way) > _MOST_IN_CHAIN:
                break
            number = layers[number].parent
        for depth, one in enumerate(reversed(way), depths.get(number, 0) + 1):
            depths[one] = depth
        if way and depths[way[0]] > _MOST_IN_CHAIN:
            what = f"layers lie on each other in a circle, or more than {_MOST_IN_CHAIN} deep"
            raise InvalidParameter(f"invalid cache: {what}")


def _check_record(number: int, record: CacheRecord, config: CacheConfig) -> None:
    for choices in record.inputs:
        if not choices:
            raise InvalidParameter(f"invalid cache: an input of record {number} is empty")
        if not all(0 <= choice.link < len(config.records) for choice in choices):
            raise InvalidParameter(f"invalid cache: record {number} has an input that is not there")
    results, links = len(record.results) + len(record.chains), sum(map(len, record.inputs))
    if results > _MOST_OF_RECORD or links > _MOST_OF_RECORD:
        raise InvalidParameter(f"invalid cache: record {number} has more than {_MOST_OF_RECORD} results or inputs")
    if any(len(chain.layers) > _MOST_IN_CHAIN for chain in record.chains):
        raise InvalidParameter(f"invalid cache: record {number} has a result of more than {_MOST_IN_CHAIN} layers")
    numbers = [result.layer for result in record.results] + [one for chain in record.chains for one in chain.layers]
    if not all(0 <= one < len(config.layers) for one in numbers):
        raise InvalidParameter(f"invalid cache: record {number} has a layer that is not there")


def order(records: Sequence[CacheRecord]) -> list[int]:
    """The numbers of records, inputs first."""
    found: list[int] = []
    state = [0] * len(records)  # 1: begun, 2: done
    for start in range(len(records)):
        waiting = [start]
        while waiting:
            number = waiting[-1]
            if state[number] == 2:
                waiting.pop()
                continue
            state[number] = 1
            below = [choice.link for choices in records[number].inputs for choice in choices]
            if missing := [one for one in below if state[one] != 2]:
                if any(state[one] == 1 for one in missing):
                    raise InvalidParameter("invalid cache: its records need each other in a circle")
                waiting.extend(missing)
            else:
                state[number] = 2
                found.append(number)
                waiting.pop()
    return found


def chain(layers: Sequence[CacheLayer], top: int) -> list[int]:
    """The numbers of a layer and all below it, base first, in a document that was checked."""
    found: list[int] = []
    while top != -1:
        found.append(top)
        top = layers[top].parent
    return found[::-1]


def _decoded(data: bytes, kind: type[T]) -> T:
    if len(data) > LARGEST:
        raise InvalidParameter(f"invalid cache: its document has more than {LARGEST} bytes")
    try:
        return decode(data, kind, most=MOST_VALUES)
    except MalformedDocument as error:
        raise InvalidParameter(f"invalid cache: {error}") from None
