"""Only the deletion of an interface is one; that a port leaves its bridge is told in messages of the same type."""

import os
import socket
import struct

import pytest

from husk.kernel.linkwatch import LinkWatch, names
from husk.kernel.netlink import NetlinkMessage, encode, text


def message(kind: int, name: str, family: int = socket.AF_UNSPEC) -> bytes:
    return encode(NetlinkMessage(kind, 0, struct.pack("=BxHiII", family, 0, 7, 0, 0) + text(3, name), "test"), 1)


def test_deletions_are_told_by_name():
    assert names(message(17, "vx-1") + message(16, "vx-2") + message(17, "vx-3")) == {"vx-1", "vx-3"}


@pytest.mark.parametrize(
    "data", [b"", b"garbage that is no message at all", message(16, "vx-1"), message(17, "vx-1", socket.AF_BRIDGE)]
)
def test_everything_else(data):
    assert names(data) == set()


def test_a_watch_hears_nothing_where_nothing_happens():
    watch = LinkWatch()
    try:
        assert watch.deleted() == set()
        os.fstat(watch.fileno())
    finally:
        watch.close()
