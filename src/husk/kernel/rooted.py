"""Reads files of a container's tree without being led out of it: by openat2, with the tree as the root.

A symbolic link inside an image may point anywhere; the kernel resolves it as if the tree were `/`.

The walk of a path through a tree that is the whole world: part by part, along links, never above its root.

Whoever walks looks at each part, or makes it, and says where it leads if it is a link.
"""

import contextlib
import ctypes
import errno
import os
import posixpath
import stat
import time
from collections.abc import Callable
from pathlib import Path

_SYS_OPENAT2 = 437
_RESOLVE_IN_ROOT = 0x10
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
# The kernel does not follow `..` while anything on the host is renamed or mounted, and says so (EAGAIN). One that
# renames all the time fails one attempt in a few; the last ones are milliseconds apart.
_MOST_ATTEMPTS, _PAUSE = 100, 0.00005
# As many as the kernel follows.
_MOST_LINKS = 40
_libc = ctypes.CDLL(None, use_errno=True)
# What is above a part, its name, and whether it is the last one; where a link leads, None for whatever is none.
Look = Callable[[list[str], str, bool], str | None]


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_in_root(root: Path | str, path: str, flags: int) -> int:
    """A file descriptor of `path` below `root`; raises OSError as `os.open` does."""
    root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _openat2(root_fd, path, flags, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    finally:
        os.close(root_fd)


def open_within(root: Path | str, path: str, flags: int) -> int:
    """A file descriptor of `path` below `root`; a link on the way that leads out of it is an error (EXDEV)."""
    root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _openat2(root_fd, path, flags, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    finally:
        os.close(root_fd)


def open_beneath(directory: int, path: str, flags: int) -> int:
    """A file descriptor of `path` below an open directory; a link anywhere on the way is an error (ELOOP)."""
    return _openat2(directory, path, flags, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)


def reopen(found: int, flags: int) -> int:
    """A descriptor to use of what is open by name only (O_PATH): the same file, whatever has its name by now."""
    return os.open(f"/proc/self/fd/{found}", flags | os.O_CLOEXEC)


def _openat2(directory: int, path: str, flags: int, resolve: int) -> int:
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    name = os.fsencode(path)
    for attempt in range(1, _MOST_ATTEMPTS + 1):
        fd = _libc.syscall(_SYS_OPENAT2, directory, name, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return int(fd)
        error = ctypes.get_errno()
        if error != errno.EAGAIN or attempt == _MOST_ATTEMPTS:
            break
        time.sleep(attempt * _PAUSE)
    raise OSError(error, os.strerror(error), path)


def make_directories(root: Path | str, path: str, owner: tuple[int, int] | None = None) -> None:
    """Make `path` and what lacks above it, below `root`, also where a link leads to something that is not there yet.

    Nothing happens where it exists. NotADirectoryError where a file stands, ELOOP where links lead to each other.
    What is made belongs to `owner` (user and group).
    """

    def look(above: list[str], name: str, last: bool) -> str | None:
        parent = open_in_root(root, "/" + "/".join(above), os.O_PATH | os.O_DIRECTORY)
        try:
            return _make_directory(parent, name, owner)
        finally:
            os.close(parent)

    walk_path(path, look, _MOST_LINKS)


def _make_directory(parent: int, name: str, owner: tuple[int, int] | None) -> str | None:
    """Make a directory, unless there is one; where a link leads, if that has the name."""
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
        if owner is not None:
            os.chown(name, *owner, dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            return os.readlink(name, dir_fd=parent)
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from None
    return None


def make_file(root: Path | str, path: str) -> None:
    """Make an empty file in a directory below `root`; nothing happens where something has its name.

    It is not opened: a container may have made a device or a pipe there in the meantime.
    """
    directory, _, name = path.rstrip("/").rpartition("/")
    parent = open_in_root(root, directory or "/", os.O_PATH | os.O_DIRECTORY)
    try:
        with contextlib.suppress(FileExistsError):
            os.mknod(name, stat.S_IFREG | 0o755, dir_fd=parent)
    finally:
        os.close(parent)


def make_file_where_it_leads(root: Path | str, path: str) -> None:
    """Make an empty file and what lacks above it, below `root`; if a link has its name, then where that leads.

    Nothing happens where something is. ELOOP where links lead to each other.
    """
    for _ in range(_MOST_LINKS):
        directory, _, name = path.rstrip("/").rpartition("/")
        make_directories(root, directory)
        parent = open_in_root(root, directory or "/", os.O_PATH | os.O_DIRECTORY)
        try:
            os.mknod(name, stat.S_IFREG | 0o644, dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                return
            path = posixpath.join(directory, os.readlink(name, dir_fd=parent))
        else:
            return
        finally:
            os.close(parent)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def read_file(root: Path | str, path: str, limit: int, offset: int = 0) -> bytes | None:
    """So much of a regular file of the tree, from `offset` on; None if there is none or another thing is there."""
    try:
        found = open_in_root(root, path, os.O_PATH)
    except OSError:
        return None
    try:
        # A container may have made a device or a pipe of it, which to open is to use.
        if not stat.S_ISREG(os.fstat(found).st_mode):
            return None
        fd = reopen(found, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    finally:
        os.close(found)
    with os.fdopen(fd, "rb") as file:
        if offset:
            file.seek(min(offset, os.fstat(file.fileno()).st_size))
        return file.read(limit)


def read_text(root: Path, path: str, limit: int = 1 << 20) -> str:
    """The beginning of a text file of the tree; empty if there is none, or something else has its name."""
    return (read_file(root, path, limit) or b"").decode(errors="replace")


def walk_path(path: str, look: Look, most_links: int) -> list[str]:
    """The parts of where `path` leads, without links and `..`. ELOOP where more links follow each other than that."""
    todo = _parts(path)
    done: list[str] = []
    links = 0
    while todo:
        name = todo.pop()
        if name == "..":
            del done[-1:]
            continue
        target = look(done, name, not todo)
        if target is None:
            done.append(name)
            continue
        links += 1
        if links > most_links:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            done = []
        todo += _parts(target)
    return done


def _parts(path: str) -> list[str]:
    """The last one first."""
    return [part for part in path.split("/") if part not in ("", ".")][::-1]
