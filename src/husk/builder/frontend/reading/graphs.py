"""Graphs as pieces, one for each operation: from the process that has read them to the one that builds."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.operations import Operation


class _Piece(Struct, frozen=True, array_like=True):
    digest: str
    operation: Operation
    name: str
    description: dict[str, str]
    ignore_cache: bool
    group: str
    locations: list[Location]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Piece)


def pieces(graph: Graph) -> Iterator[bytes]:
    """Inputs come before what takes them."""
    for one in graph:
        shown = (one.name, one.description, one.ignore_cache, one.group, one.locations)
        yield _encoder.encode(_Piece(one.digest, one.operation, *shown))


def add(graph: Graph, piece: bytes) -> None:
    one = _decoder.decode(piece)
    graph.add_as(
        one.digest,
        one.operation,
        name=one.name,
        description=one.description,
        ignore_cache=one.ignore_cache,
        group=one.group,
        locations=one.locations,
    )
