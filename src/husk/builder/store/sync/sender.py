"""The messages of a file sync's sender: a tree out, as bytes, and the files of it that the receiver asks for.

    sender = Sender(tree)
    while not sender.ended:
        sender.feed(what came)
        send(sender.next())

The tree is told of in order: a directory before what is in it, names by their bytes. Files that were asked for go
first, so that the receiver has something to do.
"""

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import ERROR, FIN, HEAD_SIZE, REQUEST, Stat, SyncError


class Tree(Protocol):
    """The files that are sent."""

    def walk(self) -> Iterator[Stat]: ...

    def open(self, stat: Stat) -> Iterator[bytes]:
        """A plain file's data, in pieces; nothing if it cannot be read."""
        ...


class Sender:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._walk: Iterator[Stat] | None = tree.walk()
        self._told = 0
        self._files: dict[int, Stat] = {}
        self._wanted: deque[int] = deque()
        self._sending: tuple[int, Iterator[bytes]] | None = None
        self._rest = b""
        self._fin = False
        self.ended = False
        self.sent = 0

    @property
    def idle(self) -> bool:
        """True while there is nothing to say before something comes."""
        return self._walk is None and not self._wanted and self._sending is None and not self._fin

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        position = 0
        while len(data) - position >= HEAD_SIZE:
            start = position + HEAD_SIZE
            stop = start + packets.read_head(data, position)
            if stop > len(data):
                break
            position = stop
            self._packet(packets.read_packet(data[start:stop]))
        self._rest = data[position:]

    def next(self) -> bytes:
        """Some of what is to be said next; nothing if there is nothing now."""
        if self._sending is None and self._wanted:
            number = self._wanted.popleft()
            self._sending = (number, self._tree.open(self._files.pop(number)))
        if self._sending is not None:
            return self._data(*self._sending)
        if self._walk is not None:
            return self._stats(self._walk)
        if self._fin:
            self._fin = False
            self.ended = True
            return packets.fin()
        return b""

    def _packet(self, packet: packets.Packet) -> None:
        if packet.kind == REQUEST:
            if packet.id not in self._files or packet.id in self._wanted:
                raise SyncError(f"invalid file id {packet.id}")
            self._wanted.append(packet.id)
        elif packet.kind == FIN:
            self._fin = True
        elif packet.kind == ERROR:
            raise SyncError(f"error from receiver: {bytes(packet.data[:4096]).decode('utf-8', 'replace')}")
        else:
            raise SyncError(f"a packet of unexpected type {packet.kind}")

    def _data(self, number: int, pieces: Iterator[bytes]) -> bytes:
        piece = next(pieces, b"")
        if not piece:
            self._sending = None
        self.sent += len(piece)
        return packets.data_head(number, len(piece)) + piece

    def _stats(self, walk: Iterator[Stat]) -> bytes:
        stat = next(walk, None)
        if stat is None:
            self._walk = None
            return packets.end_of_stats()
        if not stat.mode & packets.MODE_KIND and not stat.link:
            self._files[self._told] = stat
        self._told += 1
        return packets.stat(stat)
