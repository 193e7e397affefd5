"""Graphs as pieces, one for each operation: from the process that has read them to the one that builds."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.operations import Exec, Files, Operation
from husk.builder.store.file_actions import Copy
from husk.text.encoded import encoded


class _Piece(Struct, frozen=True, array_like=True):
    digest: str
    operation: Operation
    name: str
    description: dict[str, str]
    ignore_cache: bool
    group: str
    locations: list[Location]


# What a text or a number takes beside what it is written in, and what a mount or an action does.
_EACH, _EACH_PART = 64, 1024

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Piece)


def pieces(graph: Graph) -> Iterator[bytes]:
    """Inputs come before what takes them."""
    for one in graph:
        shown = (one.name, one.description, one.ignore_cache, one.group, one.locations)
        yield encoded(_encoder, _Piece(one.digest, one.operation, *shown))


def add(graph: Graph, piece: bytes) -> int:
    """Add an operation to a graph, and return about how many bytes it takes."""
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
    weight = len(piece) + _EACH * _texts(one.operation) + _EACH_PART * _parts(one.operation)
    graph.weight += weight
    return weight


def _texts(operation: Operation) -> int:
    """Count the texts of an operation, where there may be thousands of them."""
    match operation.body:
        case Exec(process=process):
            return len(process.args) + len(process.env) + len(process.valid_exit_codes)
        case Files(actions):
            copies = [one.action for one in actions if isinstance(one.action, Copy)]
            return sum(len(copy.include) + len(copy.exclude) + len(copy.required) for copy in copies)
        case _:
            return 0


def _parts(operation: Operation) -> int:
    match operation.body:
        case Exec(process=process, mounts=mounts, secret_env=secret_env):
            return 1 + len(mounts) + len(secret_env) + len(process.ulimits) + len(process.extra_hosts)
        case Files(actions):
            return 1 + len(actions)
        case _:
            return 1
