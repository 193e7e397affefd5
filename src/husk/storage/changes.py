"""The changes that a container has made to its image, found in the overlay's upper directory, not by walking layers.

Everything that was touched is in the upper directory; a layer is asked only about names that are there, or that a
directory with overlayfs' opaque mark hides. The functions block: callers on the event loop use a thread.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from husk.kernel.mount import OPAQUE_XATTR
from husk.kernel.rooted import open_beneath
from husk.kernel.tree_cursor import DIRECTORY, TreeCursor
from husk.storage.tar.whiteouts import is_whiteout

MODIFIED, ADDED, DELETED = 0, 1, 2

# What lies deeper than a path can be long is not told one by one: no client could name it, and a container that nests
# directories would make the answer as long as it likes.
_LONGEST_PATH = 4096


class FileChange(NamedTuple):
    path: str
    kind: int


# A directory of the upper tree that is still to be looked at, and the layers that have one there (topmost first).
_Directory = tuple[str, list[int]]


def changes(upper: str, lower: Sequence[str]) -> list[FileChange]:
    """All changes, sorted by path. A directory counts when it is new, looks different, or something in it changed."""
    with contextlib.ExitStack() as stack:
        try:
            cursor = stack.enter_context(TreeCursor(stack.enter_context(_opened(upper))))
        except FileNotFoundError:
            return []  # it never ran
        layers = [stack.enter_context(_opened(path)) for path in lower]
        found = _Search(cursor, layers).run()
    for path in list(found):
        _mark_parents(path, found)
    return [FileChange(path, found[path]) for path in sorted(found, key=lambda path: path.split("/"))]


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def _mark_parents(path: str, found: dict[str, int]) -> None:
    while (path := path.rpartition("/")[0]) and path not in found:
        found[path] = MODIFIED


class _Search:
    """Goes through the upper tree; `layers` are the open top directories of what lies below, named by their number."""

    def __init__(self, cursor: TreeCursor, layers: list[int]) -> None:
        self._cursor = cursor
        self._layers = layers
        self._found: dict[str, int] = {}

    def run(self) -> dict[str, int]:
        levels = [self._look(list(range(len(self._layers))), False)]
        while levels:
            if not levels[-1]:
                levels.pop()
                while levels and not self._cursor.up():
                    levels.pop()
                continue
            name, below = levels[-1].pop()
            opaque = _is_opaque(self._cursor.fd, name)
            try:
                self._cursor.down(name)
            except OSError:
                continue  # the container has just removed it
            if self._path_length() > _LONGEST_PATH:
                self._cursor.up()
                continue
            levels.append(self._look(below, opaque))
        return self._found

    def _path_length(self) -> int:
        return sum(map(len, self._cursor.names)) + len(self._cursor.names)

    def _look(self, below: list[int], opaque: bool) -> list[_Directory]:
        """Note what changed in the directory that the cursor stands in; the directories in it."""
        fd = self._cursor.fd
        above = "/".join(["", *self._cursor.names])
        left: list[_Directory] = []
        names = os.listdir(fd)
        with _lower_directories(self._layers, below, above) as directories:
            for name in names:
                try:
                    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError:
                    continue
                path = f"{above}/{name}"
                before, merged = _before(directories, name)
                if is_whiteout(status):
                    if before is not None:
                        self._found[path] = DELETED
                    continue
                if before is None:
                    self._found[path] = ADDED
                elif _differs(before, status):
                    self._found[path] = MODIFIED
                if stat.S_ISDIR(status.st_mode):
                    left.append((name, merged))
            if opaque:
                for name in _names(directories) - set(names):
                    self._found[f"{above}/{name}"] = DELETED
        return left


@contextlib.contextmanager
def _lower_directories(layers: list[int], below: list[int], path: str) -> Iterator[dict[int, int]]:
    """The directory of that path in each layer that has it: the layer's number and the open directory."""
    opened: dict[int, int] = {}
    try:
        for number in below:
            with contextlib.suppress(OSError):
                opened[number] = open_beneath(layers[number], f".{path}", DIRECTORY)
        yield opened
    finally:
        for fd in opened.values():
            os.close(fd)


def _before(layers: dict[int, int], name: str) -> tuple[os.stat_result | None, list[int]]:
    """Return a name's status in the image, None if it has none, and the layers whose directories are merged there."""
    first: os.stat_result | None = None
    merged = []
    for number, fd in layers.items():
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            continue
        if is_whiteout(status):
            break
        if first is not None and not stat.S_ISDIR(status.st_mode):
            break
        first = first or status
        if not stat.S_ISDIR(status.st_mode):
            break
        merged.append(number)
        if _is_opaque(fd, name):
            break
    return first, merged


def _names(layers: dict[int, int]) -> set[str]:
    """The names in a directory of the image."""
    shown: set[str] = set()
    hidden: set[str] = set()
    for fd in layers.values():
        with contextlib.suppress(OSError), os.scandir(fd) as entries:
            for entry in entries:
                if entry.name in shown or entry.name in hidden:
                    continue
                (hidden if is_whiteout(entry.stat(follow_symlinks=False)) else shown).add(entry.name)
    return shown


def _differs(before: os.stat_result, after: os.stat_result) -> bool:
    """Tell if a file looks different. A directory's time and size say only that something in it changed."""
    if (before.st_mode, before.st_uid, before.st_gid, before.st_rdev) != (
        after.st_mode, after.st_uid, after.st_gid, after.st_rdev,
    ):  # fmt: skip
        return True
    if stat.S_ISDIR(after.st_mode):
        return False
    return (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)


def _is_opaque(directory: int, name: str) -> bool:
    try:
        fd = os.open(name, DIRECTORY, dir_fd=directory)
    except OSError:
        return False
    try:
        return os.getxattr(fd, OPAQUE_XATTR) == b"y"
    except OSError:
        return False
    finally:
        os.close(fd)
