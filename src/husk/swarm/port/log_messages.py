"""Messages between nodes about logs: which are asked for, and pieces of them. Pure.

A piece has the records of one task in columns, as they were read (`engine/logs/records.py`): what a client wants of
them is made by the manager that it talks to.
"""

from collections.abc import Collection
from itertools import compress

import msgspec
from msgspec import Struct

from husk.engine.logs.records import KINDS, Columns, LogQuery
from husk.errors import InvalidParameter


class Asked(Struct, kw_only=True, omit_defaults=True):
    """Logs of some tasks of one node. `name` is what the node brings them under; `times` whether they are needed.

    `queries` are those of the single tasks, where they differ: then `query` is for nodes that do not know of them.
    `begun` asks for a piece without a record for each task, with the node's time when the reading began.
    """

    name: str = ""
    node: str
    tasks: list[str]
    query: LogQuery
    times: bool = False
    queries: list[LogQuery] = []
    begun: bool = False

    def query_of(self, place: int) -> LogQuery:
        return self.queries[place] if place < len(self.queries) else self.query


class Piece(Struct, array_like=True, frozen=True):
    """`task` is the place of the task among those that were asked for. A time alone is when the reading began."""

    task: int
    kinds: list[bytes]
    data: list[bytes]
    times: list[bytes] | None = None


_encode = msgspec.msgpack.encode
_decode_piece = msgspec.msgpack.Decoder(Piece).decode


class AsPieces:
    """The form of a log that goes to another node (`engine/logs/read.Form`)."""

    def __init__(self, task: int, times: bool) -> None:
        self._task = task
        self.needs_times = times

    def encode(self, lines: Columns) -> bytes:
        if not lines.data:
            return b""
        return _encode(Piece(self._task, lines.kinds, lines.data, lines.times if self.needs_times else None))


def begun(task: int, time: bytes) -> bytes:
    return _encode(Piece(task, [], [], [time]))


def read_piece(body: bytes, tasks: Collection[object], times: bool) -> tuple[int, Columns]:
    """The task's place, and its records; InvalidParameter for what is none. The other node may be anybody's."""
    try:
        piece = _decode_piece(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParameter(f"this is no piece of a log: {error}") from None
    count = len(piece.data)
    expected = (count,) if count else (0, 1)
    whole = len(piece.kinds) == count and (not times or (piece.times is not None and len(piece.times) in expected))
    if not whole or not 0 <= piece.task < len(tasks):
        raise InvalidParameter("this is no piece of a log that was asked for")
    if not KINDS.keys() >= set(piece.kinds):
        return piece.task, _known(piece)
    return piece.task, Columns(piece.kinds, piece.data, piece.times)


def _known(piece: Piece) -> Columns:
    """Without records of kinds that only a newer release knows."""
    known = [kind in KINDS for kind in piece.kinds]
    times = list(compress(piece.times, known)) if piece.times is not None else None
    return Columns(list(compress(piece.kinds, known)), list(compress(piece.data, known)), times)
