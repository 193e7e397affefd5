"""Facts that the kernel knows of a Unix socket, asked through netlink (sock_diag)."""

import os
import socket
import struct

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 0x1
_ERROR = 2
_ALL_STATES = 0xFFFFFFFF
_SHOW_PEER = 0x4
_PEER = 2
_ANY_COOKIE = 0xFFFFFFFF

_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBHIIIII")
_ANSWERED = struct.Struct("=BBBBIII")
_ATTRIBUTE = struct.Struct("=HH")


def accepted(connection: socket.socket) -> bool | None:
    """Tell if the other side has accepted this connection: `connect` returns when it stands in the listener's queue.

    The end that waits in the queue has no inode until `accept` makes it somebody's file, and none again once it is
    closed. None where the kernel does not tell (it was built without `unix_diag`).
    """
    inode = os.fstat(connection.fileno()).st_ino
    asked = _ASKED.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, inode, _SHOW_PEER, _ANY_COOKIE, _ANY_COOKIE)
    message = _HEADER.pack(_HEADER.size + len(asked), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + asked
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_SOCK_DIAG) as netlink:
            netlink.sendto(message, (0, 0))
            # The kernel has queued its answer when the request is sent.
            answer = netlink.recv(4096)
    except OSError:
        return None
    return _has_peer(answer)


def _has_peer(answer: bytes) -> bool | None:
    length, kind, *_ = _HEADER.unpack_from(answer)
    if kind == _ERROR:
        return None
    offset = _HEADER.size + _ANSWERED.size
    while offset + _ATTRIBUTE.size <= length:
        size, attribute = _ATTRIBUTE.unpack_from(answer, offset)
        if attribute == _PEER:
            return bool(struct.unpack_from("=I", answer, offset + _ATTRIBUTE.size)[0])
        offset += max((size + 3) & ~3, _ATTRIBUTE.size)
    return None
