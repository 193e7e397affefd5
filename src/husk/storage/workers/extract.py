"""The files that a layer's archive becomes, entry by entry: a directory tree that overlayfs can mount.

All paths are relative to the current directory, which the worker has made its root: a link inside the tree cannot lead
out of it. Nothing that exists is ever opened for writing: an entry whose name is taken replaces what is there. Owner,
mode, attributes and time of directories are set at the end, because adding files changes them, and because a
directory's mode, group and access list would change the files made in it.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from husk.kernel.mount import OPAQUE_XATTR
from husk.kernel.trees import remove_tree, tree_size
from husk.storage.tar.entry import (
    BLOCK_DEVICE,
    CHARACTER,
    DIRECTORY,
    FIFO,
    HARD_LINK,
    REGULAR,
    SYMLINK,
    TarEntry,
    TarError,
    clean_name,
)
from husk.storage.tar.stream import TarStream, entries
from husk.storage.tar.whiteouts import (
    OPAQUE_MARK,
    WHITEOUT_META_PREFIX,
    WHITEOUT_PREFIX,
    is_overlay_xattr,
    is_whiteout,
    whiteout_target,
)

T = TypeVar("T")

CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A path relative to the current directory must stay below PATH_MAX.
_LONGEST = 3000
_SPECIAL_BITS = 0o7000
_NODE_TYPES = {CHARACTER: stat.S_IFCHR, BLOCK_DEVICE: stat.S_IFBLK, FIFO: stat.S_IFIFO}
# What a new file is like where nothing is inherited.
_PLAIN = os.stat_result((stat.S_IFREG, *[0] * 9))
# Times that every file system can keep; an archive may name any number.
_EARLIEST_NS, _LATEST_NS = -(2**31) * 10**9, 2**33 * 10**9


class Extractor:
    """Applies one archive to the current directory; the caller has set umask 0."""

    # In a directory that was there before, a new file may get its group and access list.
    inherits = False

    def __init__(self, stream: TarStream) -> None:
        self._stream = stream
        # Directories, with how many trees had been cleared when each was told of; and the trees that were, numbered.
        self._directories: dict[bytes, tuple[TarEntry, int]] = {}
        self._cleared: dict[bytes, int] = {}
        self._clears = 0
        # How the current directory is reached from the tree's top, which `_top` is then: empty for the top itself, None
        # if it is neither.
        self._base: bytes | None = b""
        self._top = -1
        self.size = 0
        self.has_root = False

    def run(self) -> None:
        """Apply all entries; raises TarError or OSError, and then the tree is worth nothing."""
        for entry in entries(self._stream):
            path = clean_name(entry.name)
            try:
                self._apply(entry, self._near(path))
            except (OSError, OverflowError) as error:
                _blame(path, error)
        for path, entry in self._lasting_directories():
            try:
                self._finish_directory(self._near(path), entry)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it was made through a link that a later entry replaced
            except (OSError, OverflowError) as error:
                _blame(path, error)

    def _lasting_directories(self) -> Iterator[tuple[bytes, TarEntry]]:
        """Those that no later entry has cleared away: looked for once, at the end, not at each that is cleared."""
        if not self._cleared:
            yield from ((path, entry) for path, (entry, _) in self._directories.items())
            return
        # In an order in which all that is below a path comes right behind it.
        marks: list[tuple[bytes, int, bytes | None]] = [
            (_order(path), gone, None) for path, gone in self._cleared.items()
        ]
        marks += [(_order(path), made, path) for path, (_, made) in self._directories.items()]
        marks.sort(key=lambda mark: (mark[0], mark[2] is not None))
        above: list[tuple[bytes, int]] = []
        for place, number, path in marks:
            while above and not place.startswith(above[-1][0]):
                above.pop()
            last = above[-1][1] if above else 0
            if path is None:
                above.append((place, max(last, number)))
            elif number >= last:
                yield path, self._directories[path][0]

    def _near(self, path: bytes) -> bytes:
        """Go to where `path` is short enough for the kernel; what it is called there.

        An archive can nest deeper than a path can be long.
        """
        if len(path) <= _LONGEST and self._base == b"":
            return path
        base, rest = split_long(path)
        if base != self._base:
            self._go(base)
        return rest

    def _go(self, base: bytes) -> None:
        if self._top < 0:
            self._top = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._base = None
        os.fchdir(self._top)
        left = base
        while left:
            piece, left = split_long(left, first=True)
            try:
                os.chdir(piece)
            except FileNotFoundError:
                self._make_parents(piece)
                os.chdir(piece)
        self._base = base

    def _whole(self, path: bytes) -> bytes:
        """From the tree's top, what is called `path` here."""
        return (self._base or b"") + path

    def _apply(self, entry: TarEntry, path: bytes) -> None:
        if WHITEOUT_PREFIX in path:
            parent, _, name = path.rpartition(b"/")
            if name.startswith(WHITEOUT_PREFIX):
                self._stream.skip(entry.size)
                self._whiteout(parent, name)
                return
        self._place(entry, path)

    def _place(self, entry: TarEntry, path: bytes) -> None:
        if entry.kind == REGULAR:
            self._file(entry, path)
        elif entry.kind == DIRECTORY:
            self._directory(entry, path)
        elif entry.kind == HARD_LINK:
            self._hard_link(entry, path)
        elif entry.kind == SYMLINK:
            self._make(path, lambda: os.symlink(entry.link, path))
            self._set_metadata(path, entry)
        elif entry.kind in _NODE_TYPES:
            mode = _NODE_TYPES[entry.kind] | entry.mode
            self._make(path, lambda: os.mknod(path, mode, os.makedev(entry.major, entry.minor)))
            self._set_metadata(path, entry)
            os.chmod(path, entry.mode)

    def _file(self, entry: TarEntry, path: bytes) -> None:
        try:
            fd = os.open(path, CREATE, entry.mode & 0o777)
        except OSError:
            fd = self._make(path, lambda: os.open(path, CREATE, entry.mode & 0o777))
        try:
            if entry.sparse is None:
                size = entry.size
                if size:
                    self._stream.write_to(fd, size)
            else:
                size = entry.real_size
                self._fill_sparse(fd, entry.sparse, size)
            self.size += size
            status = os.fstat(fd) if self.inherits else _PLAIN
            if entry.uid != status.st_uid or entry.gid != status.st_gid:
                os.fchown(fd, entry.uid, entry.gid)
            if entry.mode & _SPECIAL_BITS or (self.inherits and entry.mode != stat.S_IMODE(status.st_mode)):
                # Writing and changing the owner take these bits away.
                os.fchmod(fd, entry.mode)
            if entry.xattrs:
                set_xattrs(fd, entry)
            time = entry.mtime_ns
            if _EARLIEST_NS <= time <= _LATEST_NS:
                os.utime(fd, ns=(time, time))
            else:
                set_time(fd, entry)
        finally:
            os.close(fd)

    def _fill_sparse(self, fd: int, pieces: list[tuple[int, int]], size: int) -> None:
        os.ftruncate(fd, size)
        for offset, length in pieces:
            os.lseek(fd, offset, os.SEEK_SET)
            self._stream.write_to(fd, length)

    def _directory(self, entry: TarEntry, path: bytes) -> None:
        if not path:
            self.has_root = True
        else:
            try:
                os.mkdir(path, 0o700)
            except OSError as error:
                if error.errno != errno.EEXIST or not stat.S_ISDIR(os.lstat(path).st_mode):
                    self._make_directory(path)
        self._directories[self._whole(path)] = entry, self._clears

    def _make_directory(self, path: bytes) -> None:
        """Make a directory where there may be something else; one in a whiteout's place hides what it removed."""
        whiteout = _is_whiteout_at(path)
        self._make(path, lambda: os.mkdir(path, 0o700))
        if whiteout:
            os.setxattr(path, OPAQUE_XATTR, b"y")

    def _hard_link(self, entry: TarEntry, path: bytes) -> None:
        target = clean_name(entry.link)
        if not target or not path:
            raise TarError(f"archive entry {_text(path)} is a link to the root directory")
        if target == self._whole(path):
            os.lstat(path)
            return
        try:
            if self._base == b"" and len(target) <= _LONGEST:
                self._make(path, lambda: os.link(target, path, follow_symlinks=False))
            else:
                self._link_far(target, path)
        except FileNotFoundError:
            raise TarError(f"archive entry {_text(path)} is a link to {_text(target)}, which is not there") from None

    def _link_far(self, target: bytes, path: bytes) -> None:
        """Link to something that may be too deep to have a path, or is not below where we are."""
        whole = self._whole(path)
        source = self._near(target)
        above = os.open(os.path.dirname(source) or b".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            near, name = self._near(whole), os.path.basename(source)
            self._make(near, lambda: os.link(name, near, src_dir_fd=above, follow_symlinks=False))
        finally:
            os.close(above)

    def _whiteout(self, parent: bytes, name: bytes) -> None:
        """Hide what the layers below have; what this layer itself has under the name stays."""
        if name.startswith(WHITEOUT_META_PREFIX):
            if name == OPAQUE_MARK:
                self._make_parents(parent + b"/x")
                os.setxattr(parent or b".", OPAQUE_XATTR, b"y")
            return
        target = whiteout_target(name)
        if target is None or target in (b"", b".", b".."):
            raise TarError(f"archive entry {_text(name)} is a whiteout without a name")
        path = parent + b"/" + target if parent else target
        self._make_parents(path)
        try:
            os.mknod(path, stat.S_IFCHR, 0)
        except FileExistsError:
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.setxattr(path, OPAQUE_XATTR, b"y")

    def _make(self, path: bytes, create: Callable[[], T]) -> T:
        """Call `create` for `path`, after making room or the directories above if it turns out to be necessary."""
        try:
            return create()
        except FileExistsError:
            self._clear(path)
        except (FileNotFoundError, NotADirectoryError):
            self._make_parents(path)
        try:
            return create()
        except FileExistsError:
            self._clear(path)
            return create()

    def _make_parents(self, path: bytes) -> None:
        parents = path.split(b"/")[:-1]
        for count in range(1, len(parents) + 1):
            parent = b"/".join(parents[:count])
            try:
                os.mkdir(parent, 0o755)
            except FileExistsError:
                if _is_whiteout_at(parent):
                    self._make_directory(parent)
                    os.chmod(parent, 0o755)

    def _clear(self, path: bytes) -> None:
        """Remove what an earlier entry made at `path`."""
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            self.size -= tree_size(path)
            remove_tree(path)
            self._clears += 1
            self._cleared[self._whole(path)] = self._clears
            return
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            self.size -= status.st_size
        os.unlink(path)

    def _set_metadata(self, path: bytes, entry: TarEntry) -> None:
        if entry.uid or entry.gid or self.inherits:
            os.lchown(path, entry.uid, entry.gid)
        set_xattrs(path, entry)
        set_time(path, entry)

    def _finish_directory(self, path: bytes, entry: TarEntry) -> None:
        try:
            fd = os.open(path or b".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            # It was made through a link that a later entry replaced.
            return
        try:
            os.fchown(fd, entry.uid, entry.gid)
            os.fchmod(fd, entry.mode)
            set_xattrs(fd, entry)
            set_time(fd, entry)
        finally:
            os.close(fd)


def _order(path: bytes) -> bytes:
    return path.replace(b"/", b"\0") + b"\0"


def split_long(path: bytes, first: bool = False) -> tuple[bytes, bytes]:
    """(what to go to before, what is left) of a path, cut between names so that each piece is short: all pieces but the
    last and that, or the first and all others. A piece that is gone to ends with a slash."""
    start = 0
    while len(path) - start > _LONGEST:
        cut = path.rfind(b"/", start, start + _LONGEST) + 1
        if cut <= start:
            break  # a name that no file system takes
        start = cut
        if first:
            break
    if first and start == 0:
        return path, b""
    return path[:start], path[start:]


def _blame(path: bytes, error: OSError | OverflowError) -> NoReturn:
    """Say which entry could not be made; a full or broken disk is the host's fault and not the entry's."""
    if isinstance(error, OverflowError):
        raise TarError(f"archive entry {_text(path)} has a number that is too large") from None
    # An error without a number comes from the decompressor that the entry's data is read from.
    if error.errno in (None, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS):
        raise error
    raise TarError(f"archive entry {_text(path)} cannot be made: {error.strerror}") from error


def set_xattrs(target: int | bytes, entry: TarEntry) -> None:
    for name, value in entry.xattrs:
        if is_overlay_xattr(name):
            continue
        try:
            os.setxattr(target, name, value, follow_symlinks=isinstance(target, int))
        except OSError as error:
            # The file system or the kind of file may not take it, as with Docker.
            if error.errno not in (errno.ENOTSUP, errno.EPERM):
                raise


def _is_whiteout_at(path: bytes) -> bool:
    try:
        return is_whiteout(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def set_time(target: int | bytes, entry: TarEntry) -> None:
    time = entry.mtime_ns
    if not _EARLIEST_NS <= time <= _LATEST_NS:
        time = min(max(time, _EARLIEST_NS), _LATEST_NS)
    os.utime(target, ns=(time, time), follow_symlinks=isinstance(target, int))


def _text(path: bytes) -> str:
    shown = path if len(path) <= _LONGEST else path[:200] + b"..." + path[-200:]
    return shown.decode("utf-8", "backslashreplace")
