"""What is different in a container from its image? Found in the overlay's upper directory, without walking the layers.

Everything that was touched is in the upper directory; a layer is asked only about names that are there, or that a
directory with overlayfs' opaque mark hides. The functions block: callers on the event loop use a thread.
"""

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from husk.kernel.rooted import open_in_root
from husk.storage.archive import OPAQUE_XATTR, is_whiteout

MODIFIED, ADDED, DELETED = 0, 1, 2

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Change(NamedTuple):
    path: str
    kind: int


class _Directory(NamedTuple):
    """A directory of the upper tree to look at, and what the layers have under its name (topmost first)."""

    path: str
    below: list[str]
    opaque: bool


def changes(upper: str, lower: Sequence[str]) -> list[Change]:
    """All changes, sorted by path. A directory counts when it is new, looks different, or something in it changed."""
    found: dict[str, int] = {}
    pending = [_Directory("", list(lower), False)]
    while pending:
        directory = pending.pop()
        try:
            fd = open_in_root(upper, directory.path or "/", _DIRECTORY)
        except OSError:
            continue  # the container has just removed it, or nests deeper than a path can be long
        try:
            pending += _look(fd, directory, found)
        finally:
            os.close(fd)
    for path in list(found):
        _mark_parents(path, found)
    return [Change(path, found[path]) for path in sorted(found, key=lambda path: path.split("/"))]


def _mark_parents(path: str, found: dict[str, int]) -> None:
    while (path := path.rpartition("/")[0]) and path not in found:
        found[path] = MODIFIED


def _look(fd: int, directory: _Directory, found: dict[str, int]) -> list[_Directory]:
    """Note what changed in one directory; the directories in it that are to be looked at next."""
    inside = []
    names = os.listdir(fd)
    for name in names:
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            continue
        path = f"{directory.path}/{name}"
        before, below = _before(directory.below, name)
        if is_whiteout(status):
            if before is not None:
                found[path] = DELETED
            continue
        if before is None:
            found[path] = ADDED
        elif _differs(before, status):
            found[path] = MODIFIED
        if stat.S_ISDIR(status.st_mode):
            inside.append(_Directory(path, below, _is_opaque(fd, name)))
    if directory.opaque:
        for name in _names(directory.below) - set(names):
            found[f"{directory.path}/{name}"] = DELETED
    return inside


def _before(layers: list[str], name: str) -> tuple[os.stat_result | None, list[str]]:
    """What the image has under a name: its status, and the layers' directories that are merged there."""
    first: os.stat_result | None = None
    merged = []
    for layer in layers:
        path = f"{layer}/{name}"
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if is_whiteout(status):
            break
        if first is not None and not stat.S_ISDIR(status.st_mode):
            break
        first = first or status
        if not stat.S_ISDIR(status.st_mode):
            break
        merged.append(path)
        if _opaque_at(path):
            break
    return first, merged


def _names(layers: list[str]) -> set[str]:
    """The names in a directory of the image."""
    shown: set[str] = set()
    hidden: set[str] = set()
    for layer in layers:
        try:
            with os.scandir(layer) as entries:
                for entry in entries:
                    if entry.name in shown or entry.name in hidden:
                        continue
                    (hidden if is_whiteout(entry.stat(follow_symlinks=False)) else shown).add(entry.name)
        except OSError:
            continue
    return shown


def _differs(before: os.stat_result, after: os.stat_result) -> bool:
    """Does it look different? A directory's time and size say only that something in it changed."""
    if (before.st_mode, before.st_uid, before.st_gid, before.st_rdev) != (
        after.st_mode, after.st_uid, after.st_gid, after.st_rdev,
    ):  # fmt: skip
        return True
    if stat.S_ISDIR(after.st_mode):
        return False
    return (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)


def _is_opaque(directory: int, name: str) -> bool:
    try:
        fd = os.open(name, _DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    try:
        return os.getxattr(fd, OPAQUE_XATTR) == b"y"
    except OSError:
        return False
    finally:
        os.close(fd)


def _opaque_at(path: str) -> bool:
    try:
        return os.getxattr(path, OPAQUE_XATTR, follow_symlinks=False) == b"y"
    except OSError:
        return False
