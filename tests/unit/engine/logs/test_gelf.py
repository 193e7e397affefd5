"""GELF documents, whole and in pieces."""

import json
import os
import zlib

from husk.engine.logs import gelf
from tests.unit.engine.logs.samples import HI, container


def test_gelf_documents() -> None:
    receiver = gelf.receiver(
        container("gelf", labels="a"), {"gelf-address": "udp://h:1", "gelf-compression-type": "zlib", "labels": "a"}
    )
    (packet,) = receiver.encode([HI])
    document = json.loads(zlib.decompress(packet))
    assert (document["short_message"], document["timestamp"], document["level"]) == ("hi", 1700000000.123, 6)
    assert document["_command"] == "sh -c true" and document["_a"] == "1" and document["_tag"] == "0123456789ab"


def test_gelf_pieces() -> None:
    data = os.urandom(5000)
    pieces = gelf.pieces(data, b"8 bytes!")
    assert [piece[:12] for piece in pieces] == [b"\x1e\x0f8 bytes!" + bytes((n, 4)) for n in range(4)]
    assert b"".join(piece[12:] for piece in pieces) == data and max(map(len, pieces)) <= 1420
    assert gelf.pieces(b"short", b"8 bytes!") == [b"short"]
