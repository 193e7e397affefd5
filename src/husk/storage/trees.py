"""How is a directory tree that somebody hostile has filled measured and removed?

A container can nest directories deeper than a path can be long and deeper than Python recurses, so nothing here follows
a path from the top or keeps one descriptor per level.
"""

import contextlib
import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Iterator

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# A path relative to an open directory must stay below PATH_MAX with any name (at most 255 bytes) added to it.
_LONGEST_RELATIVE = 3000

_RETRIES = 20


def remove_tree(top: str | bytes | os.PathLike[str], stop: threading.Event | None = None) -> None:
    """Remove the directory `top` and all below it; nothing happens when it does not exist.

    Every subdirectory is moved up into `top` and emptied there, so that depth costs nothing; those in `top` are renamed
    too, because a mount point cannot be: it raises (EBUSY) instead of losing what is mounted. `stop` ends the work
    early, to be taken up later.
    """
    try:
        fd = os.open(top, _DIRECTORY)
    except FileNotFoundError:
        return
    try:
        if _empty(fd, stop or threading.Event()):
            os.rmdir(top)
    finally:
        os.close(fd)


def _empty(top: int, stop: threading.Event) -> bool:
    pending: deque[str] = deque()
    names = (f".husk-{number}" for number in range(1 << 62))
    _clear(top, top, pending, names)
    retries = 0
    while pending:
        if stop.is_set():
            return False
        name = pending.popleft()
        try:
            fd = os.open(name, _DIRECTORY, dir_fd=top)
        except FileNotFoundError:
            continue
        try:
            _clear(fd, top, pending, names)
        finally:
            os.close(fd)
        try:
            os.rmdir(name, dir_fd=top)
        except OSError:
            # The worker of a daemon that was killed may add a few last files.
            retries += 1
            if retries > _RETRIES:
                raise
            pending.append(name)
    return True


def _clear(directory: int, top: int, pending: deque[str], names: Iterator[str]) -> None:
    """Unlink the files in `directory` and move its subdirectories up into `top`, to be emptied there."""
    with os.scandir(directory) as scan:
        entries = list(scan)
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=directory)
            else:
                pending.append(_move_up(entry.name, directory, top, names))


def _move_up(name: str, directory: int, top: int, names: Iterator[str]) -> str:
    for fresh in names:
        try:
            os.rename(name, fresh, src_dir_fd=directory, dst_dir_fd=top)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                continue
            raise
        return fresh
    raise AssertionError("the names never end")


def tree_size(top: str | bytes | os.PathLike[str]) -> int:
    """Bytes in the regular files below `top`; a file with several names counts once."""
    total = 0
    linked: set[int] = set()
    for status in _files(top):
        if status.st_nlink > 1:
            if status.st_ino in linked:
                continue
            linked.add(status.st_ino)
        total += status.st_size
    return total


def _files(top: str | bytes | os.PathLike[str]) -> Iterator[os.stat_result]:
    """The status of every regular file below `top`; what vanishes meanwhile is left out."""
    try:
        bases = [os.open(top, _DIRECTORY)]
    except FileNotFoundError:
        return
    while bases:
        base = bases.pop()
        stack = ["."]
        try:
            while stack:
                relative = stack.pop()
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    fd = os.open(relative, _DIRECTORY, dir_fd=base)
                    try:
                        if len(os.fsencode(relative)) > _LONGEST_RELATIVE:
                            bases.append(os.dup(fd))
                            continue
                        with os.scandir(fd) as scan:
                            for entry in scan:
                                with contextlib.suppress(FileNotFoundError):
                                    status = entry.stat(follow_symlinks=False)
                                    if stat.S_ISREG(status.st_mode):
                                        yield status
                                    elif stat.S_ISDIR(status.st_mode):
                                        stack.append(f"{relative}/{entry.name}")
                    finally:
                        os.close(fd)
        finally:
            os.close(base)
