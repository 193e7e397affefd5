"""The decisions of a file sync's receiver: bytes of the sender's in, changes of a tree and bytes to the sender out.

The sender tells of its files in order: a directory before what is in it, names by their bytes. Beside that goes the
table of the last sync. As long as both say the same, byte for byte, nothing is looked at. Where they do not, what is in
the table alone is removed from the tree, what is new is made, and the data of plain files is asked for; all of it at
once and while the sender still tells of other files.

Nothing that exists is written to: a changed file is removed and made again. So a tree may share files with another.
"""

import os
from collections.abc import Iterator
from typing import Protocol

from husk.builder.store.space import HOLDS_ITSELF
from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import (
    DATA,
    DATA_BEGINS,
    ERROR,
    FIN,
    HEAD_SIZE,
    STAT,
    Stat,
    SyncError,
    device,
    system_mode,
)
from husk.builder.store.sync_table import NO_LOOK, Brief, SyncTable, look_digest, pack_brief
from husk.storage.tar.whiteouts import is_overlay_xattr

_LONGEST_PATH = 4096
# What is no file's name.
_NO_NAMES = frozenset((b"", b".", b".."))
# Of all that a client tells of its files; a million files are about a tenth of it.
_MOST_STATS = 1 << 30


class Tree(Protocol):
    """The files. Paths are relative, and their directory exists. All may raise OSError."""

    def is_directory(self, path: bytes) -> bool: ...

    def remove(self, paths: list[bytes]) -> None:
        """Remove what is there under these paths, a directory before what is in it."""
        ...

    def directory(self, stat: Stat, new: bool) -> None:
        """Make a directory, or change one."""
        ...

    def special(self, stat: Stat) -> None:
        """Make a link, a pipe or a device."""
        ...

    def expect(self, number: int, stat: Stat) -> None:
        """Be ready for the data of a plain file."""
        ...

    def data(self, number: int, data: memoryview) -> int | None:
        """Take data, of which nothing is kept; none is the end of the file, whose length is returned.

        KeyError if it is not expected.
        """
        ...

    def digest(self, number: int) -> bytes:
        """The digest of what came for a file that has ended (`file_digest.content_hash`)."""
        ...

    def finish(self, links: list[Stat]) -> None:
        """Make hard links, and set the times of directories."""
        ...


class Receiver:
    """One sync. `output` is what is to be sent; `complete` says that all is here, and `finish` may be called."""

    def __init__(self, tree: Tree, old: SyncTable, never: frozenset[bytes] = frozenset(), limit: int = 0) -> None:
        """`never` are directories that a tree only has if it holds itself (`own_place`). `limit` is how many bytes it
        may have more than before, 0 for any number."""
        self._tree = tree
        self._old = old
        self._never = never
        self._limit = limit
        self._came = 0
        self._next = 0  # what of the old table has not been met yet
        self.table = SyncTable()
        self.table.size, self.table.packed = old.size, old.packed
        self._told = 0
        self._rest = b""
        self._last_key: bytes | None = b""
        self._directories = {b""}
        self._made: set[bytes] = set()
        self._links: list[Stat] = []
        self._missing: dict[int, Stat] = {}
        self._stats_ended = False
        self._ended = False
        self._finished = False
        self.output = bytearray()
        # The bytes of all files that were told of and are not known; are they what has come?
        self.told_size = 0
        self.as_told = True

    @property
    def told(self) -> bool:
        """True when the sender has told of all its files."""
        return self._stats_ended

    @property
    def complete(self) -> bool:
        return self._stats_ended and not self._missing and not self._finished

    @property
    def ended(self) -> bool:
        """True when the sender has confirmed the end."""
        return self._ended

    def feed(self, data: bytes) -> None:
        position, end = self._complete(data) if self._rest else 0, len(data)
        view = memoryview(data)
        while end - position >= HEAD_SIZE:
            start = position + HEAD_SIZE
            stop = start + packets.read_head(data, position)
            if stop > end:
                break
            position = stop
            if not data.startswith(DATA_BEGINS, start) or not self._take_data(data, view, start, stop):
                self._packet(data[start:stop])
        if position < end:
            self._rest = data[position:]

    def _complete(self, data: bytes) -> int:
        """Take the message that had begun, if its end is in `data`; how much of that is done with.

        The rest is not copied for it.
        """
        begun = self._rest + data[: max(0, HEAD_SIZE - len(self._rest))]
        if len(begun) < HEAD_SIZE:
            self._rest = begun
            return len(data)
        missing = HEAD_SIZE + packets.read_head(begun, 0) - len(self._rest)
        if missing > len(data):
            self._rest += data
            return len(data)
        message, self._rest = self._rest + data[:missing], b""
        if not self._take_data(message, memoryview(message), HEAD_SIZE, len(message)):
            self._packet(message[HEAD_SIZE:])
        return missing

    def finish(self) -> None:
        """Everything is here: make what had to wait for it, and tell the sender."""
        self._finished = True
        self._tree.finish(self._links)
        if self.table.links:
            places = {path: place for place, path in enumerate(self.table.paths)}
            for path, first in self.table.links.items():
                # All names of a file look the same; that it has several is told beside.
                self.table.looks[places[path]] = self.table.looks[places[first]] if first in places else NO_LOOK
        self.output += packets.fin()

    def close(self) -> None:
        """The sender's stream has ended."""
        if not self._ended:
            raise SyncError("unexpected EOF")

    def _packet(self, message: bytes) -> None:
        if self._ended:
            return
        # An unchanged file, the case that must cost nothing; what it was compared with has been looked at before.
        if self._next < len(self._old.messages) and message == self._old.messages[self._next] and not self._stats_ended:
            self._unchanged(message)
            return
        packet = packets.read_packet(message)
        if packet.kind == DATA:
            self._data(packet.id, packet.data)
        elif packet.kind == STAT:
            if self._stats_ended:
                raise SyncError("a file was told of behind the end")
            if packet.stat is None:
                self._end_stats()
            else:
                self._stat(message, packets.read_stat(packet.stat))
        elif packet.kind == ERROR:
            raise SyncError(f"error from sender: {bytes(packet.data[:4096]).decode('utf-8', 'replace')}")
        elif packet.kind == FIN:
            if not self._finished:
                raise SyncError("the sender ended before it was asked to")
            self._ended = True
        else:
            raise SyncError(f"a packet of unknown type {packet.kind}")

    # --- files that the sender tells of ------------------------------------------------------------------------------

    def _unchanged(self, message: bytes) -> None:
        here = self._next
        old = self._old
        self.table.add(message, old.paths[here], old.looks[here], old.briefs[here], old.places[here])
        self._next = here + 1
        self._last_key = None
        if self._old.links and (first := self._old.links.get(path := self._old.paths[here])):
            self.table.links[path] = first
            if first in self._made:
                self._tree.remove([path])
                self._links.append(packets.read_stat(packets.read_packet(message).stat or b""))

    def _stat(self, message: bytes, stat: Stat) -> None:
        key = self._check(stat)
        self._told += len(message)
        if self._told > _MOST_STATS:
            raise SyncError("the directory has too many files")
        number = len(self.table)
        self.table.add(message, stat.path, NO_LOOK, brief_of(stat))
        is_directory = bool(stat.mode & packets.MODE_DIRECTORY)
        replaced = self._remove_before(key, is_directory)
        self._last_key = key
        kind = stat.mode & packets.MODE_KIND
        if is_directory:
            if stat.path in self._never:
                raise SyncError(HOLDS_ITSELF)
            self._directories.add(stat.path)
            self._tree.directory(stat, new=not replaced)
            self.table.looks[number] = look_of(stat)
        elif kind:
            self._tree.special(stat)
            self.table.looks[number] = look_of(stat)
        elif stat.link:
            if stat.link.replace(b"/", b"\0") >= key:
                raise SyncError(f"invalid link {_show(stat.path)} to unknown path: {_show(stat.link)}")
            self._links.append(stat)
            self.table.links[stat.path] = stat.link
        else:
            self._made.add(stat.path)
            self.told_size += stat.size
            self._tree.expect(number, stat)
            self._missing[number] = stat
            if stat.size:
                self.output += packets.request(number)
            else:
                self._data(number, memoryview(b""))

    def _check(self, stat: Stat) -> bytes:
        """Refuse what cannot be part of a tree; what paths are ordered by."""
        path = stat.path
        above, _, name = path.rpartition(b"/")
        if len(path) > _LONGEST_PATH:
            raise SyncError(f"path of {len(path)} bytes is too long: {_show(path[:64])}...")
        if name in _NO_NAMES or b"\0" in path or b"\0" in stat.link or path.startswith(b"/"):
            raise SyncError(f"invalid path: {_show(path)}")
        key = path.replace(b"/", b"\0")
        last = self._last_key
        if last is None:
            last = self.table.paths[-1].replace(b"/", b"\0")
        if key <= last:
            raise SyncError(f"changes out of order: {_show(path)} {_show(last.replace(bytes(1), b'/'))}")
        if above not in self._directories:
            # It may be one that has not changed; but then it has been told of.
            if not _NO_NAMES.isdisjoint(above.split(b"/")):
                raise SyncError(f"invalid path: {_show(path)}")
            rest = self._old.paths[self._next : self._next + 1]
            untold = rest and rest[0].replace(b"/", b"\0") <= above.replace(b"/", b"\0")
            if untold or not self._tree.is_directory(above):
                raise SyncError(f"changes out of order: {_show(path)} is in no directory")
            self._directories.add(above)
        return key

    def _remove_before(self, key: bytes, is_directory: bool) -> bool:
        """Remove what is in the tree before a new path, and under it; True for a directory that stays one."""
        paths, start = self._old.paths, self._next
        if start == len(paths):
            return False
        here = start
        while here < len(paths) and paths[here].replace(b"/", b"\0") < key:
            here += 1
        self._remove(start, here)
        start = here
        if here < len(paths) and paths[here].replace(b"/", b"\0") == key:
            here += 1
            if is_directory and self._tree.is_directory(paths[start]):
                self._next = here
                return True
            inside = key + b"\0"
            while here < len(paths) and paths[here].replace(b"/", b"\0").startswith(inside):
                here += 1
            self._remove(start, here)
        self._next = here
        return False

    def _remove(self, start: int, end: int) -> None:
        """Remove what a part of the old table tells of."""
        self._tree.remove(self._old.paths[start:end])
        for place in range(start, end):
            stat = packets.read_stat(packets.read_packet(self._old.messages[place]).stat or b"")
            if not stat.mode & packets.MODE_KIND and not stat.link:
                self.table.size -= stat.size
                self._came -= stat.size

    def _end_stats(self) -> None:
        self._stats_ended = True
        self._remove(self._next, len(self._old))

    # --- data --------------------------------------------------------------------------------------------------------

    def _take_data(self, data: bytes, view: memoryview, start: int, stop: int) -> bool:
        """Take a message that is data in the usual form; False if it is another one."""
        if self._ended or (found := packets.read_data(data, start, stop)) is None:
            return False
        self._data(found[0], view[found[1] : stop])
        return True

    def _data(self, number: int, data: memoryview) -> None:
        self._came += len(data)
        if self._limit and self._came > self._limit:
            raise SyncError("the directory is larger than what the disk has room for: no space left on device")
        try:
            length = self._tree.data(number, data)
        except KeyError:
            raise SyncError(f"invalid file request {number}") from None
        if length is None:
            return
        stat = self._missing.pop(number)
        self.table.size += length
        self.table.looks[number] = look_of(stat, self._tree.digest(number))
        if length != stat.size:
            # It changed while it was read: whatever it is next time, ask for it again.
            self.as_told = False
            stat = stat._replace(size=length)
            self.table.messages[number] = packets.stat(stat)[HEAD_SIZE:]
            self.table.briefs[number] = brief_of(stat)


def look_of(stat: Stat, content: bytes = b"") -> bytes:
    """The digest of what a file looks like that was made as the client told; `content` is that of a plain one."""
    mode = system_mode(stat)
    if stat.mode & packets.MODE_SYMLINK:
        content = stat.link
    number = device(stat) if stat.mode & packets.MODE_DEVICE else 0
    xattrs = sorted(_told_xattrs(stat)) if stat.xattrs else []
    return look_digest(mode, stat.uid, stat.gid, number, content, xattrs)


def brief_of(stat: Stat) -> bytes:
    """Pack the facts that a copy needs of a file that was made as the client told."""
    mode = 0 if stat.xattrs or (stat.link and not stat.mode & packets.MODE_SYMLINK) else system_mode(stat)
    return pack_brief(Brief(mode, stat.uid, stat.gid, stat.size, stat.mtime))


def _told_xattrs(stat: Stat) -> Iterator[tuple[str, bytes]]:
    if stat.mode & packets.MODE_SYMLINK:
        return
    for name, value in stat.xattrs:
        key = os.fsdecode(name)
        if name and b"\0" not in name and not is_overlay_xattr(key):
            yield key, value


def _show(path: bytes) -> str:
    return '"' + path.decode("utf-8", "backslashreplace").replace("\0", "\\x00") + '"'
