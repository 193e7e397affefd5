import msgspec
import pytest

from husk.engine.logs.records import Columns, LogQuery
from husk.errors import InvalidParameter
from husk.swarm.port.log_messages import Asked, AsPieces, Piece, begun, read_piece

LINES = Columns([b"stdout F", b"stderr P"], [b"one", b"\xff"], [b"1", b"2"])


def test_lines_go_there_and_back() -> None:
    assert read_piece(AsPieces(1, True).encode(LINES), "ab", True) == (1, LINES)
    assert read_piece(AsPieces(0, False).encode(LINES), "ab", False) == (0, LINES._replace(times=None))
    assert AsPieces(0, False).encode(Columns([], [])) == b""


def test_each_task_may_have_a_query_of_its_own() -> None:
    common, own = LogQuery(tail=3), LogQuery(since_ns=7)
    assert Asked(node="w", tasks=["a"], query=common).query_of(0) == common
    asked = Asked(node="w", tasks=["a", "b"], query=common, queries=[own])
    assert [asked.query_of(place) for place in (0, 1)] == [own, common]


def test_when_a_reading_began() -> None:
    assert read_piece(begun(1, b"now"), "ab", True) == (1, Columns([], [], [b"now"]))


def test_records_of_kinds_that_only_a_newer_release_knows_are_left_out() -> None:
    newer = Piece(1, [b"stdout F", b"stdin F", b"stderr P"], [b"one", b"two", b"\xff"], [b"1", b"0", b"2"])
    assert read_piece(msgspec.msgpack.encode(newer), "ab", True) == (1, LINES)
    without = msgspec.structs.replace(newer, times=None)
    assert read_piece(msgspec.msgpack.encode(without), "ab", False) == (1, LINES._replace(times=None))


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense",
        msgspec.msgpack.encode(Piece(2, [b"stdout F"], [b"x"], [b"1"])),
        msgspec.msgpack.encode(Piece(-1, [b"stdout F"], [b"x"], [b"1"])),
        msgspec.msgpack.encode(Piece(0, [], [b"x"], [b"1"])),
        msgspec.msgpack.encode(Piece(0, [b"stdout F"], [b"x"], [])),
        msgspec.msgpack.encode(Piece(0, [b"stdout F"], [b"x"])),
        msgspec.msgpack.encode(Piece(0, [], [], [b"1", b"2"])),
    ],
)
def test_what_is_no_piece_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidParameter, match="no piece of a log"):
        read_piece(body, "ab", True)
