"""Many small files of a client's directory, copied into a new one, and written to a layer's tar on the way.

What they look like is in the table of the sync that brought them (`husk.builder.store.workers.told_files`), so that no
file is looked at, and is opened once for both. What is in the tar of a former copy is not even opened: copy and tar get
it from there. All places in the tar follow from the files' sizes: two processes share the work, a piece at a time, and
each writes the tar of what it has copied to where that belongs.
"""

import errno
import itertools
import mmap
import os
import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

from husk.builder.store.sync_table import NO_PLACE, Brief, Listed
from husk.builder.store.workers.file_data import copy_range
from husk.builder.store.workers.shared_work import share
from husk.kernel.trees import walk
from husk.storage.tar.entry import BLOCK, DIRECTORY, SYMLINK, padding
from husk.storage.tar.header import TarMember, any_header, file_header

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SECOND = 10**9
_KIND = 0o170000
_KINDS = frozenset((stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK))
_LONGEST_PATH = 4000
# What a plain header has room for: owners, bytes, and nanoseconds.
_MOST, _LARGEST, _LATEST = 8**7, 8**11, (8**11 - 1) * _SECOND
# What is larger than this is never in memory as a whole.
_LARGE = 1 << 20

Seen = Callable[[Brief], Brief]
"""The look of the copy of a file that looks like this."""

Former = bytes | mmap.mmap


class CopyMeasures(NamedTuple):
    """Measures by which a tree is copied in this way, and how."""

    #: From so many files on, and if they are no larger on the average, it is worth it.
    many: int = 200
    small_mean: int = 64 << 10
    #: So many files are done at once by one process.
    piece: int = 64
    #: Processors that may work on it; 0 for all that this process may use.
    processors: int = 0


MEASURES = CopyMeasures()


class WantedCopy(NamedTuple):
    """The wishes for the copy of a tree: its place in a layer, the look of copies if not the same, what links lead to,
    and the tar in which the places of files are."""

    top: str
    seen: Seen | None
    leads_to: Callable[[bytes], bytes]
    former: Former = b""


class _File(NamedTuple):
    """One thing to copy; its entry begins `at` in the tar, with a `head` if that is not made when it is copied.

    `before` is where it begins in the former tar.
    """

    path: bytes
    look: Brief
    at: int
    length: int
    head: bytes
    before: int


class ListedTree:
    """A tree that can be copied in this way (`list_tree`). `size` is that of its part of a tar."""

    def __init__(self, files: Sequence[_File], top: str, former: Former, measures: CopyMeasures) -> None:
        self._measures = measures
        self._files = files
        self._top = top
        self._former = former
        self.size = sum(file.length for file in files)
        self.bytes = sum(file.look.size for file in files if stat.S_ISREG(file.look.mode))

    def places(self, begin: int) -> list[int]:
        """Return the places of the files in a tar in which their part begins there."""
        return [begin + file.at for file in self._files]

    def copy(self, source: int, target: int, tar: int, begin: int) -> None:
        """Copy from one open directory to another, which is new; the tar, an open file, gets its part from `begin` on.

        Without a tar it is negative. The current directory is another one afterwards.
        """
        os.fchdir(source)
        work = _Copying(self._top, target, self._former, tar, begin)
        directories = [file for file in self._files if stat.S_ISDIR(file.look.mode)]
        for file in directories:
            os.mkdir(file.path, file.look.mode & 0o777, dir_fd=target)
        size, processors = self._measures.piece, self._measures.processors
        pieces = [self._files[start : start + size] for start in range(0, len(self._files), size)]
        share(len(pieces), lambda number: work.copy(pieces[number]), processors)
        for file in reversed(directories):
            work.finish_directory(file)


def is_much(directory: int, many: int = MEASURES.many) -> bool:
    """Tell if so much is in an open directory that it is worth reading a table, which may be of much more."""
    return sum(1 for _ in itertools.islice(walk(directory), many)) == many


def list_tree(found: Listed, wanted: WantedCopy, measures: CopyMeasures = MEASURES) -> ListedTree | None:
    """None if it is so little, or so much, that it is not worth it, or not simple."""
    sizes = [brief.size for brief in found.briefs if stat.S_ISREG(brief.mode)]
    if len(found.paths) < measures.many or sum(sizes) > len(sizes) * measures.small_mean or min(sizes, default=0) < 0:
        return None
    files: list[_File] = []
    at, runs = 0, _Runs(wanted.former, wanted.top)
    prefix = os.fsencode(wanted.top) + b"/" if wanted.top else b""
    for path, told, place in zip(*found, strict=True):
        look = told if wanted.seen is None else wanted.seen(told)
        name, head, kind = prefix + path, b"", look.mode & _KIND
        if kind == stat.S_IFREG and _has_plain_head(name, look):
            length = BLOCK + look.size + padding(look.size)
        elif kind not in _KINDS or len(name) > _LONGEST_PATH:
            return None
        else:
            head = _head(name, look, wanted.leads_to(path) if kind == stat.S_IFLNK else b"")
            size = look.size if kind == stat.S_IFREG else 0
            length = len(head) + size + padding(size)
        file = _File(path, look, at, length, head, place if length < _LARGE else NO_PLACE)
        if wanted.former:
            runs.add(file)
        files.append(file)
        at += length
    former = wanted.former
    if not runs.are_there():
        files, former = [file._replace(before=NO_PLACE) for file in files], b""
    return ListedTree(files, wanted.top, former, measures)


class _Runs:
    """Files that follow each other in the former tar. Is it what it should be? Both ends of each run are looked at."""

    def __init__(self, former: Former, top: str) -> None:
        self._former = former
        self._prefix = f"{top}/" if top else ""
        self._last: _File | None = None
        self._ends: list[_File] = []
        self._until = NO_PLACE

    def add(self, file: _File) -> None:
        if file.before != self._until or self._last is None:
            self._ends += [self._last] if self._last is not None else []
            self._ends += [file] if file.before != NO_PLACE else []
        self._last = file if file.before != NO_PLACE else None
        self._until = file.before + file.length

    def are_there(self) -> bool:
        """None of them is, without a former tar."""
        ends = [*self._ends, *([self._last] if self._last is not None else [])]
        return bool(self._former) and all(map(self._is_there, ends))

    def _is_there(self, file: _File) -> bool:
        head = file.head or _file_head(self._prefix, file)
        is_whole = file.before + file.length <= len(self._former)
        return is_whole and self._former[file.before : file.before + len(head)] == head


class _Copying:
    """The work on one piece after the other; the current directory is the source."""

    def __init__(self, top: str, target: int, former: Former, tar: int, begin: int) -> None:
        self._prefix = f"{top}/" if top else ""
        self._target = target
        self._former = former
        self._tar = tar
        self._begin = begin
        self._me = (os.geteuid(), os.getegid())

    def copy(self, files: Sequence[_File]) -> None:
        parts: list[bytes] = []
        start, before, until = files[0].at, 0, 0
        for file in files:
            look = file.look
            if file.before != until:
                # What follows each other in the former tar does so in this one.
                parts.append(self._former[before:until])
                before = until = file.before if file.before != NO_PLACE else 0
            if file.before != NO_PLACE:
                until += file.length
                self._copy_former(file)
            elif stat.S_ISREG(look.mode) and look.size >= _LARGE:
                self._put(parts, start)
                parts, start = [], self._copy_large(file)
            elif stat.S_ISREG(look.mode):
                parts += (file.head or _file_head(self._prefix, file), self._copy_small(file), _padding(look.size))
            else:
                if stat.S_ISLNK(look.mode):
                    self._copy_link(file)
                parts.append(file.head)
        parts.append(self._former[before:until])
        self._put(parts, start)

    def finish_directory(self, file: _File) -> None:
        mode, uid, gid, _, mtime = file.look
        fd = os.open(file.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._target)
        try:
            if mode & 0o7000 or (uid, gid) != self._me:
                os.fchown(fd, uid, gid)
                os.fchmod(fd, stat.S_IMODE(mode))
            os.utime(fd, ns=(mtime, mtime))
        finally:
            os.close(fd)

    def _copy_former(self, file: _File) -> None:
        """Copy what is in the former tar."""
        if stat.S_ISREG(file.look.mode):
            begin = file.before + (len(file.head) or BLOCK)
            self._make(file, self._former[begin : begin + file.look.size])
        elif stat.S_ISLNK(file.look.mode):
            self._copy_link(file)

    def _copy_small(self, file: _File) -> bytes:
        size = file.look.size
        source = os.open(file.path, _READ)
        try:
            data = os.read(source, size + 1)
        finally:
            os.close(source)
        if len(data) != size:
            raise _changed(file.path)
        self._make(file, data)
        return data

    def _make(self, file: _File, data: bytes) -> None:
        target = os.open(file.path, _CREATE, file.look.mode & 0o777, dir_fd=self._target)
        try:
            if data and os.write(target, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
            self._finish(target, file.look)
        finally:
            os.close(target)

    def _copy_large(self, file: _File) -> int:
        """Copy it, and write its part of the tar; where that ends."""
        look = file.look
        head = file.head or _file_head(self._prefix, file)
        at = file.at + len(head)
        source = os.open(file.path, _READ)
        try:
            if os.fstat(source).st_size != look.size:
                raise _changed(file.path)
            target = os.open(file.path, _CREATE, look.mode & 0o777, dir_fd=self._target)
            try:
                copy_range(source, target, 0, look.size)
                self._finish(target, look)
            finally:
                os.close(target)
            self._put([head], file.at)
            position = 0
            while self._tar >= 0 and position < look.size:
                if not (data := os.pread(source, _LARGE, position)):
                    raise _changed(file.path)
                self._put([data], at + position)
                position += len(data)
            self._put([_padding(look.size)], at + look.size)
        finally:
            os.close(source)
        return file.at + file.length

    def _copy_link(self, file: _File) -> None:
        _, uid, gid, _, mtime = file.look
        os.symlink(os.readlink(file.path), file.path, dir_fd=self._target)
        os.chown(file.path, uid, gid, dir_fd=self._target, follow_symlinks=False)
        os.utime(file.path, ns=(mtime, mtime), dir_fd=self._target, follow_symlinks=False)

    def _finish(self, target: int, look: Brief) -> None:
        mode, uid, gid, _, mtime = look
        # Mostly it looks right already.
        if mode & 0o7000 or (uid, gid) != self._me:
            os.fchown(target, uid, gid)
            os.fchmod(target, stat.S_IMODE(mode))
        os.utime(target, ns=(mtime, mtime))

    def _put(self, parts: Sequence[bytes], at: int) -> None:
        if self._tar >= 0:
            left = memoryview(b"".join(parts))
            at += self._begin
            while left:
                written = os.pwrite(self._tar, left, at)
                left, at = left[written:], at + written


def _has_plain_head(name: bytes, look: Brief) -> bool:
    _, uid, gid, size, mtime = look
    is_usual = uid < _MOST and gid < _MOST and size < _LARGEST and 0 <= mtime < _LATEST
    return is_usual and len(name) <= 100 and name.isascii()


def _file_head(prefix: str, file: _File) -> bytes:
    mode, uid, gid, size, mtime = file.look
    return file_header(prefix + os.fsdecode(file.path), mode, uid, gid, size, _seconds(mtime))


def _padding(size: int) -> bytes:
    return bytes(padding(size))


def _head(name: bytes, look: Brief, leads_to: bytes = b"") -> bytes:
    mode, mtime = stat.S_IMODE(look.mode), _seconds(look.mtime)
    member = TarMember(os.fsdecode(name), mode=mode, uid=look.uid, gid=look.gid, mtime=mtime)
    if stat.S_ISDIR(look.mode):
        member.kind = DIRECTORY
    elif stat.S_ISLNK(look.mode):
        member.kind, member.link = SYMLINK, os.fsdecode(leads_to)
    else:
        member.size = look.size
    return any_header(member)


def _seconds(mtime: int) -> int:
    """As the interpreter makes `st_mtime`, which is not exact, of nanoseconds."""
    whole, rest = divmod(mtime, _SECOND)
    return int(whole + 1e-9 * rest)


def _changed(path: bytes) -> OSError:
    return OSError(errno.EIO, "is not what was received", os.fsdecode(path))
