"""Modes of Go's as the system has them."""

import os
import stat

import pytest

from husk.builder.store.sync import packets
from husk.builder.store.sync.modes import device, permissions, special_kind, system_mode
from husk.builder.store.sync.packets import Stat, SyncError


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
