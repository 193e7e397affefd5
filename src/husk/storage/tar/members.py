"""Entries of an archive, made of files on disk: header and data, though somebody may be changing the file.

Large files need not pass through this process: where the archive goes into a pipe (`pipe_to`) or a socket
(`husk.storage.workers.pack`), the kernel hands their pages over.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from husk.storage.tar.entry import BLOCK, BLOCK_DEVICE, CHARACTER, DIRECTORY, FIFO, HARD_LINK, REGULAR, SYMLINK, padding
from husk.storage.tar.header import TarMember, any_header, file_header
from husk.storage.tar.whiteouts import is_overlay_xattr

BUFFER = 1 << 20
# From here on handing over pages is cheaper than copying, though what is buffered must be written first.
_LARGE = 1 << 17

# Without waiting: the file may have become a pipe that nobody writes to.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

HandOver = Callable[[int, int], int]
"""Sends the next bytes of an open file where the archive goes, at most so many: how many it has sent."""


class Output(Protocol):
    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


@contextlib.contextmanager
def tar_to(
    out: Output,
    only_xattrs: frozenset[str] | None = None,
    hand_over: HandOver | None = None,
    latest: int | None = None,
) -> Iterator["TarWriter"]:
    """A tar that goes to `out`, large files by `hand_over`; its end mark is written only if the block ends well.

    No entry has a time after `latest` (in seconds).
    """
    yield TarWriter(out, only_xattrs, hand_over, latest)
    out.write(bytes(2 * BLOCK))
    out.flush()


def pipe_to(pipe: int) -> HandOver:
    """Let the kernel move a file's pages into a pipe."""

    def hand_over(file: int, size: int) -> int:
        moved = 0
        # A file system that does not know how to do this says so at the first attempt.
        with contextlib.suppress(OSError):
            while moved < size and (count := os.splice(file, pipe, size - moved)):
                moved += count
        return moved

    return hand_over


class TarWriter:
    """Writes files to a tar, in the order in which they are added. A file with several names is written once.

    `tarfile.TarFile` would remember every entry; this holds one buffer, however large the tree is.
    """

    def __init__(
        self,
        out: Output,
        only_xattrs: frozenset[str] | None = None,
        hand_over: HandOver | None = None,
        latest: int | None = None,
    ) -> None:
        self._out = out
        self._latest = latest
        self._hand_over = hand_over
        self._only = only_xattrs
        self._first_names: dict[tuple[int, int], str] = {}

    def add_empty(self, name: str) -> None:
        """An empty file that is on no disk: a mark."""
        self._head(TarMember(name))

    def add_small(self, name: str, data: bytes, status: os.stat_result) -> bool:
        """Write a regular file without attributes that was read already; False, and nothing is written, if the header
        is no plain one."""
        mtime = int(status.st_mtime)
        if self._latest is not None and mtime > self._latest:
            mtime = self._latest
        head = file_header(name, status.st_mode, status.st_uid, status.st_gid, len(data), mtime)
        if head:
            self._out.write(b"%b%b%b" % (head, data, bytes(padding(len(data)))))
        return bool(head)

    def add_pieces(self, name: str, pieces: Iterable[bytes], status: os.stat_result) -> bool:
        """The same with data that comes in pieces; False if it is not as much as `status` says."""
        member = _described(name, status)
        member.size = status.st_size
        self._head(member)
        size = 0
        for piece in pieces:
            self._out.write(piece)
            size += len(piece)
        self._out.write(bytes(padding(size)))
        return size == status.st_size

    def add_directory(self, name: str, status: os.stat_result) -> None:
        """A directory with no more to tell about it than `status` has."""
        member = _described(name, status)
        member.kind = DIRECTORY
        self._head(member)

    def add(self, name: str, path: bytes, status: os.stat_result) -> None:
        """Write the file at `path` as `name`; nothing for a socket, which no archive holds, and what has vanished."""
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and self._add_plain(name, path, status):
            return
        member = self._member(name, path, status)
        if member is None:
            return
        file = (status.st_dev, status.st_ino)
        shared = status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)
        if shared and (first := self._first_names.get(file)) is not None:
            member.kind, member.link, member.size = HARD_LINK, first, 0
            member.pax = {}
        if member.kind != REGULAR:
            self._head(member)
        elif not self._file(member, path):
            return
        if shared:
            self._first_names.setdefault(file, name)

    def _add_plain(self, name: str, path: bytes, status: os.stat_result) -> bool:
        """Write a small file without attributes, which most are, at once; False if it is not one of those."""
        size = status.st_size
        if size >= _LARGE:
            return False
        try:
            fd = os.open(path, _READ)
        except OSError:
            return False
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode) or os.listxattr(fd):
                return False
            data = os.read(fd, size)
        except OSError:
            return False
        finally:
            os.close(fd)
        return len(data) == size and self.add_small(name, data, status)

    def _head(self, member: TarMember) -> None:
        if self._latest is not None:
            member.mtime = min(member.mtime, self._latest)
        self._out.write(any_header(member))

    def _member(self, name: str, path: bytes, status: os.stat_result) -> TarMember | None:
        member = _described(name, status)
        kind = stat.S_IFMT(status.st_mode)
        try:
            if kind == stat.S_IFREG:
                member.size = status.st_size
            elif kind == stat.S_IFDIR:
                member.kind = DIRECTORY
            elif kind == stat.S_IFLNK:
                member.kind, member.link = SYMLINK, os.fsdecode(os.readlink(path))
            elif kind == stat.S_IFIFO:
                member.kind = FIFO
            elif kind in (stat.S_IFCHR, stat.S_IFBLK):
                member.kind = CHARACTER if kind == stat.S_IFCHR else BLOCK_DEVICE
                member.major, member.minor = os.major(status.st_rdev), os.minor(status.st_rdev)
            else:
                return None
            member.pax = {
                f"SCHILY.xattr.{xattr}": os.getxattr(path, xattr, follow_symlinks=False).decode(
                    "utf-8", "surrogateescape"
                )
                for xattr in sorted(os.listxattr(path, follow_symlinks=False))
                if not is_overlay_xattr(xattr) and (self._only is None or xattr in self._only)
            }
        except OSError:
            return None
        return member

    def _file(self, member: TarMember, path: bytes) -> bool:
        """Write header and data; False when there is no such file any more."""
        try:
            fd = os.open(path, _READ)
        except OSError:
            return False
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return False
            self._head(member)
            left = member.size
            if left >= _LARGE and self._hand_over is not None:
                self._out.flush()
                left -= self._hand_over(fd, left)
            while left and (data := os.read(fd, min(left, BUFFER))):
                self._out.write(data)
                left -= len(data)
        finally:
            os.close(fd)
        # The header has promised a size; meanwhile somebody may have truncated the file.
        left += padding(member.size)
        while left:
            count = min(left, BUFFER)
            self._out.write(bytes(count))
            left -= count
        return True


def _described(name: str, status: os.stat_result) -> TarMember:
    mode, mtime = stat.S_IMODE(status.st_mode), int(status.st_mtime)
    return TarMember(name, mode=mode, uid=status.st_uid, gid=status.st_gid, mtime=mtime)
