"""Only the removal of tables, chains and rules of our own tables is a removal."""

import struct

import pytest

from husk.kernel.netlink import Message, encode, text
from husk.kernel.nftwatch import removes


def message(kind: int, table: str, subsystem: int = 10) -> bytes:
    return encode(Message(subsystem << 8 | kind, 0, struct.pack("=BBH", 2, 0, 0) + text(1, table), "test"), 1)


@pytest.mark.parametrize("kind", [2, 5, 8])
def test_a_removal_from_one_of_the_tables(kind):
    assert removes(message(kind, "husk-lb"), {b"husk", b"husk-lb"})
    assert removes(message(kind, "husk"), {b"husk", b"husk-lb"})
    assert removes(message(0, "other") + message(kind, "husk"), {b"husk", b"husk-lb"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage that is no message at all",
        message(0, "husk"),
        message(6, "husk"),
        message(14, "husk"),
        message(2, "husk-1a2b3c"),
        message(2, "husk", subsystem=1),
    ],
)
def test_everything_else(data):
    assert not removes(data, {b"husk", b"husk-lb"})
