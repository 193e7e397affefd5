"""Paths in one file system of a build: links are followed as if it were the only one, and parts may be missing.

A path that was resolved has no links in it, no `..`, and no slash at its beginning; the root itself is "". Nobody else
changes the file system meanwhile, so that a resolved path stays what it is.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from husk.builder.store.workers.told_files import ToldFiles
from husk.kernel.rooted import walk_path
from husk.kernel.tree_cursor import DIRECTORY, TreeCursor
from husk.text.globs import BadPattern, has_wildcards, name_pattern

Owner = tuple[int, int]

_MOST_LINKS = 255


class ActionFailed(Exception):
    """A failure of what a build wanted; the message is for whoever wrote it."""


class RootedTree:
    """`on_disk` is where what is new in this file system is, past overlayfs; None if that is not known.

    So is `told`, of one that came by a sync.
    """

    def __init__(self, path: str, on_disk: str = "", told: ToldFiles | None = None) -> None:
        self.told = told
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.on_disk = os.open(on_disk, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if on_disk else None

    def resolve(self, path: str, follow_last: bool = True) -> str:
        """Follow the links of a path to where it leads; parts that are missing stay as they are."""

        def look(above: list[str], name: str, last: bool) -> str | None:
            here = "/".join([*above, name])
            status = self.status(here) if follow_last or not last else None
            return os.readlink(here, dir_fd=self.fd) if status is not None and stat.S_ISLNK(status.st_mode) else None

        try:
            return "/".join(walk_path(path, look, _MOST_LINKS))
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise ActionFailed(f"too many links in /{path.lstrip('/')}") from None

    def status(self, resolved: str) -> os.stat_result | None:
        """Return the status of what is there, None if nothing is. A file where a directory should be is an error."""
        try:
            return os.stat(resolved or ".", dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def matches(self, path: str, follow_links: bool) -> list[str] | None:
        """The paths that one with wildcards stands for, in order; None if what comes before them is not there.

        A path without wildcards stands for itself. Links before the first wildcard are followed.
        """
        parts = [part for part in path.split("/") if part not in ("", ".")]
        first = next((number for number, part in enumerate(parts) if has_wildcards(part)), len(parts))
        if first == len(parts):
            return ["/" + "/".join(parts)]
        base = self.resolve("/".join(parts[:first]), follow_last=follow_links)
        if self.status(base) is None:
            return None
        try:
            patterns = [name_pattern(part) for part in parts[first:]]
        except BadPattern:
            return []  # as with BuildKit: it matches nothing
        found = [base]
        for pattern in patterns:
            pairs = [(above, name) for above in found for name in self._names(above) if pattern.match(name)]
            found = [f"{above}/{name}".lstrip("/") for above, name in pairs]
        return ["/" + match for match in found]

    def _names(self, resolved: str) -> list[str]:
        status = self.status(resolved)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return []
        with self.directory(resolved) as fd:
            return sorted(os.listdir(fd), key=os.fsencode)

    @contextlib.contextmanager
    def directory(self, resolved: str) -> Iterator[int]:
        fd = os.open(resolved or ".", DIRECTORY, dir_fd=self.fd)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def above(self, resolved: str) -> Iterator[tuple[int, str]]:
        """The open directory that something is in, and its name there."""
        parent, _, name = resolved.rpartition("/")
        with self.directory(parent) as fd:
            yield fd, name or "."

    def make_directories(self, resolved: str, mode: int, owner: Owner | None, time: int | None) -> list[str]:
        """Make a directory and what lacks above it; which ones were made, the uppermost first."""
        made = []
        parts = resolved.split("/") if resolved else []
        for count in range(1, len(parts) + 1):
            path = "/".join(parts[:count])
            status = self.status(path)
            if status is not None:
                if not stat.S_ISDIR(status.st_mode):
                    raise ActionFailed(f"mkdir /{path}: not a directory")
                continue
            os.mkdir(path, mode & 0o777, dir_fd=self.fd)
            with self.directory(path) as fd:
                # What the directory above hands on to it is not wanted.
                os.fchmod(fd, mode & 0o777)
                if owner is not None:
                    os.fchown(fd, *owner)
                if time is not None:
                    os.utime(fd, ns=(time, time))
            made.append(path)
        return made

    def set_times(self, directories: list[str], time: int | None) -> None:
        """Again, because adding files has changed them."""
        for path in reversed(directories) if time is not None else ():
            assert time is not None
            os.utime(path, ns=(time, time), dir_fd=self.fd, follow_symlinks=False)


def remove_all(parent: int, name: str) -> None:
    """Remove a file, or a directory with all that is in it, however deep; nothing happens when there is none.

    Not by `remove_tree`: overlayfs does not rename a directory of the layers below.
    """
    try:
        os.unlink(name, dir_fd=parent)
        return
    except FileNotFoundError:
        return
    except IsADirectoryError:
        top = os.open(name, DIRECTORY, dir_fd=parent)
    try:
        _empty(top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _empty(top: int) -> None:
    with TreeCursor(top) as cursor:
        levels = [os.listdir(cursor.fd)]
        while levels:
            if levels[-1]:
                name = levels[-1].pop()
                try:
                    os.unlink(name, dir_fd=cursor.fd)
                except IsADirectoryError:
                    cursor.down(name)
                    levels.append(os.listdir(cursor.fd))
                continue
            levels.pop()
            if levels:
                name = cursor.names[-1]
                if not cursor.up():
                    raise OSError(errno.ESTALE, "a directory was moved away while it was removed", name)
                os.rmdir(name, dir_fd=cursor.fd)
