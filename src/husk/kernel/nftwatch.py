"""Notices that somebody has removed rules: the kernel tells everyone who listens."""

import contextlib
import errno
import socket
import struct
from collections.abc import Container, Iterable

from husk.kernel.netlink import attributes, decode

_NETFILTER = 12
_NFTABLES_GROUP = 7
_NFTABLES = 10
_DEL_TABLE, _DEL_CHAIN, _DEL_RULE = 2, 5, 8
# In all three messages the first attribute is the table's name.
_TABLE = 1
_FAMILY = struct.Struct("=BBH")
_RECEIVE = 1 << 16


class RuleWatch:
    """A socket on which removals of tables, chains and rules arrive; made in the namespace that is watched."""

    def __init__(self, tables: Iterable[str]) -> None:
        self._tables = {table.encode() for table in tables}
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, _NETFILTER
        )
        self._socket.bind((0, 1 << (_NFTABLES_GROUP - 1)))

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def removed(self) -> bool:
        """Whether something of the tables was removed since the last call. Does not block."""
        found = False
        while True:
            try:
                data = self._socket.recv(_RECEIVE)
            except BlockingIOError:
                return found
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                # More happened than fits into the socket: perhaps that too.
                found = True
                continue
            found = removes(data, self._tables) or found


def removes(data: bytes, tables: Container[bytes]) -> bool:
    """Whether one of these messages tells of a removal from one of the tables."""
    with contextlib.suppress(ValueError):
        for message in decode(data):
            subsystem, kind = message.type >> 8, message.type & 0xFF
            if subsystem == _NFTABLES and kind in (_DEL_TABLE, _DEL_CHAIN, _DEL_RULE):
                name = attributes(message.payload[_FAMILY.size :]).get(_TABLE, b"")
                if name.rstrip(b"\0") in tables:
                    return True
    return False
