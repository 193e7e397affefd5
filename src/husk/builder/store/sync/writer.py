"""The tree that a file sync writes, in the current directory, which nobody else writes to.

A small file, which is most of them, is made when all of its data is here, by four system calls.
"""

import errno
import os
import stat as modes
from collections.abc import Callable, Sequence

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import Stat, SyncError, device, permissions, special_kind
from husk.builder.store.sync_table import ContentHash, content_hash

# A file gets a descriptor, and its data goes to the disk, when more than this has come, or than that of all files.
_SMALL = 1 << 18
_MOST_WAITING = 1 << 24
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What writev(2) takes.
_MOST_PIECES = 1024


class _File:
    """A plain file whose data is awaited."""

    __slots__ = ("chunks", "descriptor", "length", "stat", "waiting", "written")

    def __init__(self, stat: Stat) -> None:
        self.stat = stat
        self.chunks: list[bytes] = []
        self.waiting = 0
        self.length = 0
        self.descriptor = -1
        # The hash of what is on the disk already, of a file that did not come at once.
        self.written: ContentHash | None = None


class TreeWriter:
    """See `receiver.Tree`. `skips` tells which extended attributes are not wanted."""

    def __init__(self, skips: Callable[[str], bool], small: int = _SMALL, most_waiting: int = _MOST_WAITING) -> None:
        self._skips = skips
        self._small = small
        self._most_waiting = most_waiting
        self._files: dict[int, _File] = {}
        self._digests: dict[int, bytes] = {}
        self._waiting = 0
        # What directories are to have when all is made: making a file in one changes it.
        self._times: dict[bytes, int] = {}
        self._inherit_group = False
        self._me = (os.geteuid(), os.getegid())
        self.written = 0

    def is_directory(self, path: bytes) -> bool:
        try:
            return modes.S_ISDIR(os.lstat(path or b".").st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def remove(self, paths: list[bytes]) -> None:
        for path in reversed(paths):
            self._touch(path)
            try:
                os.unlink(path)
            except IsADirectoryError:
                os.rmdir(path)
                self._times.pop(path, None)

    def directory(self, stat: Stat, new: bool) -> None:
        mode = permissions(stat.mode)
        if new:
            self._touch(stat.path)
            os.mkdir(stat.path, mode)
        self._inherit_group = self._inherit_group or bool(mode & modes.S_ISGID)
        if not new or mode & ~0o1777 or self._inherit_group or (stat.uid, stat.gid) != self._me:
            os.chown(stat.path, stat.uid, stat.gid)
            os.chmod(stat.path, mode)
        self._set_xattrs(stat.path, stat)
        self._times[stat.path] = stat.mtime

    def special(self, stat: Stat) -> None:
        path, kind = stat.path, stat.mode & packets.MODE_KIND
        self._touch(path)
        if kind == packets.MODE_SYMLINK:
            if not stat.link:
                raise SyncError(f"{os.fsdecode(path)!r} is a link to nowhere")
            os.symlink(stat.link, path)
        else:
            os.mknod(path, permissions(stat.mode) | special_kind(stat), device(stat))
        os.chown(path, stat.uid, stat.gid, follow_symlinks=False)
        if kind != packets.MODE_SYMLINK:
            os.chmod(path, permissions(stat.mode))
            self._set_xattrs(path, stat)
        os.utime(path, ns=(stat.mtime, stat.mtime), follow_symlinks=False)

    def expect(self, number: int, stat: Stat) -> None:
        self._touch(stat.path)
        self._files[number] = _File(stat)

    def data(self, number: int, data: memoryview) -> int | None:
        file = self._files[number]
        size = len(data)
        if not size:
            self._digests[number] = self._end(file)
            del self._files[number]
            self.written += file.length
            return file.length
        file.length += size
        if file.written is not None:
            self._put(file, file.written, [data])
            return None
        file.chunks.append(bytes(data))
        file.waiting += size
        self._waiting += size
        if file.waiting > self._small:
            self._write_out(file)
        elif self._waiting > self._most_waiting:
            for other in self._files.values():
                self._write_out(other)
        return None

    def digest(self, number: int) -> bytes:
        return self._digests.pop(number)

    def finish(self, links: list[Stat]) -> None:
        for stat in links:
            self._link(stat)
        for path, mtime in self._times.items():
            os.utime(path, ns=(mtime, mtime))

    def _end(self, file: _File) -> bytes:
        """Complete a file; the digest of its content."""
        stat = file.stat
        if file.written is None:
            content = file.chunks[0] if len(file.chunks) == 1 else b"".join(file.chunks)
            self._waiting -= file.waiting
            digest = content_hash(content).digest()
            descriptor = os.open(stat.path, _CREATE, permissions(stat.mode))
        else:
            content, digest, descriptor = b"", file.written.digest(), file.descriptor
        try:
            if content and (written := os.write(descriptor, content)) < len(content):
                _write_all(descriptor, [memoryview(content)[written:]])
            if self._inherit_group or (stat.uid, stat.gid) != self._me:
                os.fchown(descriptor, stat.uid, stat.gid)
                os.fchmod(descriptor, permissions(stat.mode))
            if stat.xattrs:
                self._set_xattrs(descriptor, stat)
            os.utime(descriptor, ns=(stat.mtime, stat.mtime))
        finally:
            os.close(descriptor)
        return digest

    def _write_out(self, file: _File) -> None:
        """Put what has come of a file on the disk, as all will be that comes now."""
        if not file.chunks:
            return
        file.descriptor = os.open(file.stat.path, _CREATE, permissions(file.stat.mode))
        file.written = content_hash()
        self._waiting -= file.waiting
        file.waiting = 0
        self._put(file, file.written, file.chunks)
        file.chunks = []

    @staticmethod
    def _put(file: _File, digest: ContentHash, chunks: Sequence[bytes | memoryview]) -> None:
        for chunk in chunks:
            digest.update(chunk)
        _write_all(file.descriptor, chunks)

    def _link(self, stat: Stat) -> None:
        self._touch(stat.path)
        try:
            if modes.S_ISDIR(os.lstat(stat.link).st_mode):
                raise FileNotFoundError
            os.link(stat.link, stat.path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            shown = f"{os.fsdecode(stat.path)!r} to unknown path: {os.fsdecode(stat.link)!r}"
            raise SyncError(f"invalid link {shown}") from None

    def _touch(self, path: bytes) -> None:
        """Remember when the directory of this path was changed: it is about to be, by us."""
        above = path.rpartition(b"/")[0]
        if above and above not in self._times:
            self._times[above] = os.stat(above).st_mtime_ns

    def _set_xattrs(self, path: bytes | int, stat: Stat) -> None:
        for name, value in stat.xattrs:
            if name and b"\0" not in name and not self._skips(name.decode("utf-8", "replace")):
                try:
                    os.setxattr(path, name, value)
                except OSError as error:
                    # The files are worth more than attributes that this file system does not take.
                    if error.errno in (errno.ENOSPC, errno.EDQUOT):
                        raise


def _write_all(descriptor: int, chunks: Sequence[bytes | memoryview]) -> None:
    left = list(chunks)
    while left:
        written = os.writev(descriptor, left[:_MOST_PIECES])
        done = 0
        while done < len(left) and written >= len(left[done]):
            written -= len(left[done])
            done += 1
        del left[:done]
        if written:
            left[0] = memoryview(left[0])[written:]
