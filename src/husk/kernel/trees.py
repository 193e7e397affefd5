"""Walks through, measures and removes a directory tree that somebody hostile has filled.

A container can nest directories deeper than a path can be long and deeper than Python recurses, so nothing here follows
a path from the top or keeps one descriptor per level (`tree_cursor`).
"""

import contextlib
import errno
import logging
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from husk.kernel.tree_cursor import DIRECTORY, TreeCursor

log = logging.getLogger(__name__)

_RETRIES = 20

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class FoundEntry(NamedTuple):
    """Something in a tree: `name` in the open directory `directory`. All but name and status is valid until the next
    one is asked for."""

    directory: int
    above: list[str]
    name: str
    status: os.stat_result

    @property
    def path(self) -> str:
        """From the top. Not made until somebody asks: at the bottom of a deep tree it has megabytes."""
        return "/".join([*self.above, self.name])


def walk(top: int, entered: Callable[[int], None] | None = None) -> Iterator[FoundEntry]:
    """Everything below an open directory, ordered by the bytes of names, a directory before what is in it.

    What vanishes meanwhile is left out, and no link is followed. `entered` is told each directory that the next things
    are in, once it is open.
    """
    with TreeCursor(top) as cursor:
        levels = [_names(cursor.fd)]
        if entered is not None:
            entered(cursor.fd)
        while levels:
            if not levels[-1]:
                levels.pop()
                while levels and not cursor.up():
                    levels.pop()
            else:
                name = levels[-1].pop()
                try:
                    status = os.stat(name, dir_fd=cursor.fd, follow_symlinks=False)
                except OSError:
                    continue
                yield FoundEntry(cursor.fd, cursor.names, name, status)
                if not stat.S_ISDIR(status.st_mode):
                    continue
                try:
                    cursor.down(name)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                levels.append(_names(cursor.fd))
            if levels and entered is not None:
                entered(cursor.fd)


@contextlib.contextmanager
def inside(top: AnyPath) -> Iterator[int]:
    """An open directory, and the current directory given back after the block: for a walk with `os.fchdir`.

    A process has one current directory: only workers, who do one thing, may change theirs.
    """
    before = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.fchdir(before)
            os.close(fd)
    finally:
        os.close(before)


def _names(directory: int) -> list[str]:
    """List the names in a directory, the last first: whoever takes from the end begins with the first."""
    return sorted(os.listdir(directory), key=os.fsencode, reverse=True)


def remove_tree(top: AnyPath, stop: threading.Event | None = None) -> None:
    """Remove the directory `top` and all below it; nothing happens when it does not exist.

    Every subdirectory is moved up into `top` and emptied there, so that depth costs nothing; those in `top` are renamed
    too, because a mount point cannot be: it raises (EBUSY) instead of losing what is mounted. `stop` ends the work
    early, to be taken up later.
    """
    try:
        fd = os.open(top, DIRECTORY)
    except FileNotFoundError:
        return
    try:
        if _empty(fd, stop):
            os.rmdir(top)
    finally:
        os.close(fd)


def discard_tree(top: AnyPath) -> bool:
    """Remove a tree, or a file in its place, as far as that can be done; the log has what cannot. Is all gone?"""
    try:
        try:
            remove_tree(top)
        except NotADirectoryError:
            os.unlink(top)
    except OSError as error:
        log.error("cannot delete %s: %s", os.fsdecode(top), error)
        return False
    return True


def _empty(top: int, stop: threading.Event | None) -> bool:
    pending: deque[str] = deque()
    names = (f".husk-{number}" for number in range(1 << 62))
    _clear(top, top, pending, names)
    retries = 0
    while pending:
        if stop is not None and stop.is_set():
            return False
        name = pending.popleft()
        try:
            fd = os.open(name, DIRECTORY, dir_fd=top)
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
    """Unlink what is in `directory`; subdirectories that are not empty are moved up into `top`, to be emptied there."""
    with os.scandir(directory) as scan:
        entries = list(scan)
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=directory)
                continue
            try:
                # Most are empty; a mount point is refused here too.
                os.rmdir(entry.name, dir_fd=directory)
            except FileNotFoundError:
                continue
            except OSError:
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


def tree_size(top: AnyPath) -> int:
    """Bytes in the regular files below `top`; a file with several names counts once."""
    total = 0
    linked: set[int] = set()
    try:
        fd = os.open(top, DIRECTORY)
    except FileNotFoundError:
        return 0
    try:
        for found in walk(fd):
            status = found.status
            if not stat.S_ISREG(status.st_mode):
                continue
            if status.st_nlink > 1:
                if status.st_ino in linked:
                    continue
                linked.add(status.st_ino)
            total += status.st_size
    finally:
        os.close(fd)
    return total
