"""Notices that interfaces are deleted: the kernel tells everyone who listens."""

import contextlib
import ctypes
import errno
import socket
import struct

from husk.kernel.netlink import attributes, decode

_LINKS = 1
_DELETED = 17
_NAME = 3
_HEAD = struct.Struct("=BxHiII")
_RECEIVE = 1 << 16

_ATTACH_FILTER = 26
# Of each message the kernel looks at its type (two bytes, in the machine's order, at 4), and gives us the deletions: a
# host on which containers come and go has many others.
_LOAD_HALF, _JUMP_IF_EQUAL, _RETURN = 0x28, 0x15, 0x06
_PROGRAM = (
    (_LOAD_HALF, 0, 0, 4),
    (_JUMP_IF_EQUAL, 0, 1, socket.htons(_DELETED)),
    (_RETURN, 0, 0, 0xFFFFFFFF),
    (_RETURN, 0, 0, 0),
)


class LinkWatch:
    """A socket on which deletions of interfaces arrive; made in the namespace that is watched."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
        )
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in _PROGRAM))
        program = struct.pack("@HP", len(_PROGRAM), ctypes.addressof(code))
        self._socket.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
        self._socket.bind((0, _LINKS))

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def deleted(self) -> set[str] | None:
        """The interfaces that were deleted since the last call; None where nobody can tell. Does not block."""
        found: set[str] = set()
        known = True
        while True:
            try:
                found |= names(self._socket.recv(_RECEIVE))
            except BlockingIOError:
                return found if known else None
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                known = False  # more happened than fits into the socket


def names(data: bytes) -> set[str]:
    """The interfaces that these messages say are deleted. Pure."""
    found = set()
    with contextlib.suppress(ValueError, struct.error):
        for message in decode(data):
            # A bridge tells of its ports, too, in messages of the same type: those are there yet.
            if message.type == _DELETED and _HEAD.unpack_from(message.payload)[0] == socket.AF_UNSPEC:
                found.add(attributes(message.payload[_HEAD.size :]).get(_NAME, b"").rstrip(b"\0").decode())
    return found - {""}
