"""Packets as bytes; what fsutil's own code writes is the reference (checked against real clients elsewhere)."""

import contextlib
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as some

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import (
    HEAD_SIZE,
    Packet,
    Stat,
    SyncError,
    device,
    permissions,
    special_kind,
    system_mode,
)

stats = some.builds(
    Stat,
    path=some.binary(max_size=300),
    mode=some.integers(0, 2**32 - 1),
    uid=some.integers(0, 2**32 - 1),
    gid=some.integers(0, 2**32 - 1),
    size=some.integers(-(2**63), 2**63 - 1),
    mtime=some.integers(-(2**63), 2**63 - 1),
    link=some.binary(max_size=300),
    major=some.integers(-(2**63), 2**63 - 1),
    minor=some.integers(-(2**63), 2**63 - 1),
    xattrs=some.lists(some.tuples(some.binary(max_size=20), some.binary(max_size=200)), max_size=3).map(tuple),
)


@given(stats)
def test_a_stat_is_read_as_it_was_written(stat):
    assert packets.read_stat(packets.write_stat(stat)) == stat


@given(stats)
def test_a_stat_in_a_packet(stat):
    framed = packets.stat(stat)
    assert packets.read_head(framed, 0) == len(framed) - HEAD_SIZE
    packet = packets.read_packet(framed[HEAD_SIZE:])
    assert packet.kind == packets.STAT
    assert packet.stat is not None
    assert packets.read_stat(packet.stat) == stat


def test_a_stat_as_fsutil_writes_it():
    # a/b, 0644, 1:2, 5 bytes, one nanosecond after 1970
    message = bytes.fromhex("0a03612f62 10a403 1801 2002 2805 3001".replace(" ", ""))
    assert packets.read_stat(message) == Stat(b"a/b", 0o644, 1, 2, 5, 1)
    assert packets.write_stat(Stat(b"a/b", 0o644, 1, 2, 5, 1)) == message


def test_fields_in_another_order_and_unknown_ones():
    message = b"\x28\x05" + b"\x7a\x02xx" + b"\x5d1234" + b"\x59" + bytes(8) + b"\x60\x80\x01" + b"\x0a\x01a"
    assert packets.read_stat(message) == Stat(b"a", size=5)


def test_the_last_of_two_fields_of_a_kind_counts():
    assert packets.read_stat(b"\x0a\x01a\x0a\x01b") == Stat(b"b")


@given(stats, some.data())
def test_a_stat_that_is_cut_off_anywhere_is_refused_or_another(stat, data):
    message = packets.write_stat(stat)
    cut = message[: data.draw(some.integers(0, len(message)))]
    with contextlib.suppress(SyncError):
        assert isinstance(packets.read_stat(cut), Stat)


@given(some.binary(max_size=200))
def test_whatever_comes_is_a_packet_or_refused(message):
    with contextlib.suppress(SyncError):
        packet = packets.read_packet(message)
        assert isinstance(packet, Packet)
        if packet.stat is not None:
            packets.read_stat(packet.stat)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\x08" + b"\xff" * 11, "no end"),
        (b"\x08", "ends too early"),
        (b"\x22\x05abc", "ends too early"),
        (b"\x23", "unknown form"),
        (b"\x5d12", "ends too early"),
    ],
)
def test_what_is_refused(message, reason):
    with pytest.raises(SyncError, match=reason):
        packets.read_packet(message)


def test_data():
    framed = packets.data_head(300, 3) + b"abc"
    assert packets.read_head(framed, 0) == len(framed) - HEAD_SIZE
    packet = packets.read_packet(framed[HEAD_SIZE:])
    assert (packet.kind, packet.id, bytes(packet.data)) == (packets.DATA, 300, b"abc")


@pytest.mark.parametrize(
    ("framed", "kind", "number"),
    [
        (packets.request(0), packets.REQUEST, 0),
        (packets.request(70000), packets.REQUEST, 70000),
        (packets.data_head(7, 0), packets.DATA, 7),
        (packets.fin(), packets.FIN, 0),
        (packets.error("no room"), packets.ERROR, 0),
        (packets.end_of_stats(), packets.STAT, 0),
    ],
)
def test_other_packets(framed, kind, number):
    packet = packets.read_packet(framed[HEAD_SIZE:])
    assert (packet.kind, packet.id, packet.stat) == (kind, number, None)


def test_heads_of_messages_that_are_compressed_or_too_large_are_refused():
    with pytest.raises(SyncError, match="compressed"):
        packets.read_head(b"\1\0\0\0\1", 0)
    with pytest.raises(SyncError, match="larger than"):
        packets.read_head(b"\0\x7f\0\0\1", 0)


@given(some.integers(0, 2**32 - 1), some.binary(max_size=300), some.binary(max_size=9), some.binary(max_size=9))
def test_data_is_found_where_it_is(number, data, before, behind):
    message = packets.data_head(number, len(data))[HEAD_SIZE:] + data
    end = len(before) + len(message)
    found = packets.read_data(before + message + behind, len(before), end)
    assert found is not None
    assert (found[0], (before + message)[found[1] :]) == (number, data)
    assert packets.read_packet(message)[2:] == (number, memoryview(data))


@given(some.binary(max_size=100), some.binary(max_size=20))
def test_what_is_not_usual_data_is_left_to_others(message, behind):
    message = packets.DATA_BEGINS + message
    with contextlib.suppress(SyncError):
        if (found := packets.read_data(message + behind, 0, len(message))) is not None:
            packet = packets.read_packet(message)
            assert (packet.kind, packet.id) == (packets.DATA, found[0])
            assert packet.data == message[found[1] :]


@given(some.integers(-(2**63), 2**63 - 1))
def test_times_of_any_length(time):
    assert packets.read_stat(packets.write_stat(Stat(b"a", mtime=time))).mtime == time


def test_permissions():
    assert permissions(packets.MODE_SETUID | packets.MODE_SETGID | packets.MODE_STICKY | 0o751) == 0o7751


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o644, stat.S_IFREG | 0o644),
        (packets.MODE_DIRECTORY | packets.MODE_STICKY | 0o777, stat.S_IFDIR | 0o1777),
        (packets.MODE_SYMLINK | 0o700, stat.S_IFLNK | 0o777),
        (packets.MODE_PIPE | 0o600, stat.S_IFIFO | 0o600),
        (packets.MODE_DEVICE | 0o660, stat.S_IFBLK | 0o660),
        (packets.MODE_DEVICE | packets.MODE_CHARACTER | 0o660, stat.S_IFCHR | 0o660),
    ],
)
def test_kinds(mode, expected):
    assert system_mode(Stat(b"x", mode, major=1, minor=3)) == expected


def test_devices():
    assert device(Stat(b"x", packets.MODE_DEVICE, major=8, minor=1)) == os.makedev(8, 1)
    assert device(Stat(b"x", packets.MODE_PIPE, major=8, minor=1)) == 0
    with pytest.raises(SyncError, match="device's number"):
        device(Stat(b"x", packets.MODE_DEVICE, major=-1))


@pytest.mark.parametrize(
    ("mode", "reason"),
    [(packets.MODE_SOCKET, "no known kind"), (packets.MODE_DEVICE | packets.MODE_CHARACTER, "whiteout")],
)
def test_what_cannot_be_made(mode, reason):
    with pytest.raises(SyncError, match=reason):
        special_kind(Stat(b"x", mode))
