"""Notices that somebody else has removed rules, or elements of sets: the kernel tells everyone who listens.

Elements of our own come and go with every container. To look whether thousands of others are still there takes a
second, so what this process removes itself is left out: at its end, a transaction tells which thread has made it.
"""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterable

from husk.kernel.netlink import attributes, decode

_NETFILTER = 12
_NFTABLES_GROUP = 7
_NFTABLES = 10
# Of tables, chains, rules, sets, and elements of sets: also when a set is flushed.
_REMOVALS = frozenset((2, 5, 8, 11, 14))
# In all these messages the first attribute is the table's name.
_TABLE = 1
_END, _MAKER = 15, 2
_FAMILY = struct.Struct("=BBH")
_RECEIVE = 1 << 16


class RuleWatch:
    """A socket on which removals of tables, and of what is in them, arrive; made in the namespace that is watched."""

    def __init__(self, tables: Iterable[str]) -> None:
        self._transactions = Transactions(tables)
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, _NETFILTER
        )
        self._socket.bind((0, 1 << (_NFTABLES_GROUP - 1)))

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def removed(self) -> bool:
        """Tell if somebody else has removed something of the tables since the last call. Does not block."""
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
            for maker in self._transactions.feed(data):
                found = found or not _is_own(maker)


class Transactions:
    """Reads what the kernel tells of changes of rules. Pure."""

    def __init__(self, tables: Iterable[str]) -> None:
        self._tables = {table.encode() for table in tables}
        # Something was removed by a transaction whose end has not come yet.
        self._removing = False

    def feed(self, data: bytes) -> list[int]:
        """The threads whose transactions have removed something of the tables; 0 where the kernel does not say it."""
        makers = []
        with contextlib.suppress(ValueError):
            for message in decode(data):
                subsystem, kind = message.type >> 8, message.type & 0xFF
                if subsystem != _NFTABLES:
                    continue
                if kind in _REMOVALS:
                    name = attributes(message.payload[_FAMILY.size :]).get(_TABLE, b"")
                    self._removing = self._removing or name.rstrip(b"\0") in self._tables
                elif kind == _END:
                    if self._removing:
                        told = attributes(message.payload[_FAMILY.size :]).get(_MAKER, b"")
                        makers.append(int.from_bytes(told))
                    self._removing = False
        return makers


def _is_own(thread: int) -> bool:
    """Tell if it is a thread of this process. One that has ended, or that the kernel numbers otherwise because the
    process is in a namespace, is not known: then somebody looks in vain."""
    return os.path.exists(f"/proc/self/task/{thread}")
