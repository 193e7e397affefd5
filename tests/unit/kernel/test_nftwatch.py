"""Only what others remove of our own tables, and of chains, rules, sets and their elements in them, is a removal."""

import os
import socket
import struct
import threading

import pytest

from husk.kernel.netlink import NetlinkMessage, encode, text
from husk.kernel.nftwatch import RuleWatch, Transactions

TABLES = ("husk", "husk-lb")
HEAD = struct.pack("=BBH", 2, 0, 0)


def message(kind: int, table: str, subsystem: int = 10) -> bytes:
    return encode(NetlinkMessage(subsystem << 8 | kind, 0, HEAD + text(1, table), "test"), 1)


def end(maker: int) -> bytes:
    """The end of a transaction, and who has made it."""
    told = HEAD + struct.pack("=HHI", 8, 1, 7) + struct.pack("=HH", 8, 2) + maker.to_bytes(4)
    return encode(NetlinkMessage(10 << 8 | 15, 0, told, "test"), 1)


@pytest.mark.parametrize("kind", [2, 5, 8, 11, 14])
def test_a_removal_from_one_of_the_tables(kind):
    assert Transactions(TABLES).feed(message(kind, "husk-lb") + end(9)) == [9]
    assert Transactions(TABLES).feed(message(kind, "husk") + message(0, "husk") + end(9)) == [9]
    assert Transactions(TABLES).feed(message(0, "other") + message(kind, "husk") + end(9)) == [9]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage that is no message at all",
        message(0, "husk"),
        message(6, "husk"),
        message(12, "husk"),
        message(2, "husk-1a2b3c"),
        message(2, "husk", subsystem=1),
    ],
)
def test_everything_else(data):
    assert Transactions(TABLES).feed(data + end(9)) == []


def test_each_transaction_has_its_maker():
    transactions = Transactions(TABLES)
    assert transactions.feed(message(0, "husk") + end(7) + message(14, "husk") + message(14, "husk")) == []
    assert transactions.feed(end(8) + message(14, "other") + end(9)) == [8]
    assert transactions.feed(message(14, "husk") + encode(NetlinkMessage(10 << 8 | 15, 0, HEAD, "test"), 1)) == [0]


@pytest.fixture
def told() -> tuple[RuleWatch, socket.socket]:
    """A watch, and what the kernel writes to."""
    ours, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.setblocking(False)
    watch = RuleWatch(TABLES)
    watch._socket.close()
    watch._socket = ours
    return watch, kernel


def test_what_this_process_removes_does_not_count(told: tuple[RuleWatch, socket.socket]):
    watch, kernel = told
    kernel.send(message(14, "husk") + end(os.getpid()))
    kernel.send(message(14, "husk") + end(threading.get_native_id()))
    assert not watch.removed()
    kernel.send(message(14, "husk"))
    assert not watch.removed(), "its end has not come yet"
    kernel.send(end(1))
    assert watch.removed() and not watch.removed()
    kernel.send(message(14, "husk") + end(0))
    assert watch.removed(), "nobody knows whose it is"
    watch.close()
    kernel.close()
