"""The messages of a file sync's sender: a tree out, as bytes, and the files of it that the receiver asks for.

    sender = Sender(tree)
    while not sender.ended:
        sender.feed(what came)
        send(sender.next())

The tree is told of in order: a directory before what is in it, names by their bytes. Files that were asked for go
first, so that the receiver has something to do.
"""

import os
import stat as modes
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


# The client's gRPC takes no messages above 4 MiB.
_CHUNK = 1 << 18
_KINDS = {
    modes.S_IFDIR: packets.MODE_DIRECTORY,
    modes.S_IFLNK: packets.MODE_SYMLINK,
    modes.S_IFIFO: packets.MODE_PIPE,
    modes.S_IFBLK: packets.MODE_DEVICE,
    modes.S_IFCHR: packets.MODE_DEVICE | packets.MODE_CHARACTER,
}


class TreeReader:
    """See `sender.Tree`. All is told as if it lay in the directory `prefix`, if there is one, at the time `mtime`."""

    def __init__(self, prefix: str = "", mtime: int | None = None) -> None:
        self._prefix = os.fsencode(prefix)
        self._mtime = mtime
        self._first_names: dict[tuple[int, int], bytes] = {}

    def walk(self) -> Iterator[Stat]:
        above = b""
        if self._prefix:
            yield Stat(self._prefix, packets.MODE_DIRECTORY | 0o755, mtime=self._mtime or 0)
            above = self._prefix + b"/"
        # One list of names per directory on the way down, their last being the next.
        levels = [(b"", _names(b"."))]
        while levels:
            place, names = levels[-1]
            if not names:
                levels.pop()
                continue
            path = place + names.pop()
            status = os.lstat(path)
            yield self._stat(path, above + path, status)
            if modes.S_ISDIR(status.st_mode):
                levels.append((path + b"/", _names(path)))

    def open(self, stat: Stat) -> Iterator[bytes]:
        path = stat.path[len(self._prefix) + 1 :] if self._prefix else stat.path
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return  # a socket, which is told as an empty file
        try:
            while piece := os.read(descriptor, _CHUNK):
                yield piece
        finally:
            os.close(descriptor)

    def _stat(self, path: bytes, told: bytes, status: os.stat_result) -> Stat:
        kind = modes.S_IFMT(status.st_mode)
        stat = Stat(
            path=told,
            mode=to_go_mode(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            mtime=status.st_mtime_ns if self._mtime is None else self._mtime,
            xattrs=_xattrs(path),
        )
        if kind == modes.S_IFDIR:
            return stat
        if kind in (modes.S_IFBLK, modes.S_IFCHR):
            stat = stat._replace(major=os.major(status.st_rdev), minor=os.minor(status.st_rdev))
        elif kind == modes.S_IFLNK:
            return stat._replace(link=os.readlink(path), size=status.st_size)
        if status.st_nlink > 1:
            first = self._first_names.setdefault((status.st_dev, status.st_ino), told)
            if first != told:
                return stat._replace(link=first)
        return stat._replace(size=status.st_size)


def to_go_mode(mode: int) -> int:
    """The system's bits of a mode in Go's; a socket is told as a plain file."""
    bits = mode & 0o777 | _KINDS.get(modes.S_IFMT(mode), 0)
    if mode & modes.S_ISUID:
        bits |= packets.MODE_SETUID
    if mode & modes.S_ISGID:
        bits |= packets.MODE_SETGID
    if mode & modes.S_ISVTX:
        bits |= packets.MODE_STICKY
    return bits


def _names(path: bytes) -> list[bytes]:
    return sorted(os.listdir(path), reverse=True)


def _xattrs(path: bytes) -> tuple[tuple[bytes, bytes], ...]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return tuple((os.fsencode(name), os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))
    except OSError:
        return ()  # this file system has none
