"""Comparison of two directory trees: names, kinds, owners, modes, times, attributes, links and every byte.

The trees stand still but may have been filled by somebody hostile: as in `trees`, depth costs no descriptors and no
path becomes too long. What a layer's archive need not tell is not compared: the top directory itself, the times of
directories and whiteouts, sockets, parts of seconds, and what overlayfs notes for itself.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from husk.kernel.mount import OPAQUE_XATTR
from husk.kernel.tree_cursor import DIRECTORY, TreeCursor
from husk.storage.tar.whiteouts import is_overlay_xattr, is_whiteout

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20
_SECOND = 10**9
# Names of directories in front of the one that is wrong.
_MOST_SHOWN = 40

_Inode = tuple[int, int]


def first_difference(expected: Path, actual: Path) -> str:
    """Describe the first fault of `actual`, in words; empty when it is as expected."""
    return next(_Comparison().differences(expected, actual), "")


class _Comparison:
    def __init__(self) -> None:
        # Which file of the one tree is which of the other: both must have the same names.
        self._partners: dict[_Inode, _Inode] = {}

    def differences(self, expected: Path, actual: Path) -> Iterator[str]:
        tops = [os.open(expected, DIRECTORY), os.open(actual, DIRECTORY)]
        try:
            with TreeCursor(tops[0]) as one, TreeCursor(tops[1]) as other:
                yield from self._walk(one, other)
        finally:
            for top in tops:
                os.close(top)

    def _walk(self, one: TreeCursor, other: TreeCursor) -> Iterator[str]:
        levels: list[list[str]] = []
        yield from self._directory(one, other, levels)
        while levels:
            if levels[-1]:
                name = levels[-1].pop()
                one.down(name)
                other.down(name)
                yield from self._directory(one, other, levels)
                continue
            levels.pop()
            if levels and not (one.up() and other.up()):
                raise OSError(errno.ESTALE, "a directory was moved away while it was compared", "/".join(one.names))

    def _directory(self, one: TreeCursor, other: TreeCursor, levels: list[list[str]]) -> Iterator[str]:
        """Compare what is in the directory that both stand in; the directories in it become one more level."""
        inside: list[str] = []
        levels.append(inside)
        names, others = set(os.listdir(one.fd)), set(os.listdir(other.fd))
        for name in sorted(names ^ others):
            if name in others and stat.S_ISSOCK(os.stat(name, dir_fd=other.fd, follow_symlinks=False).st_mode):
                continue
            yield f"{_text(one, name)} {'is missing' if name in names else 'does not belong there'}"
        for name in sorted(names & others):
            status = os.stat(name, dir_fd=one.fd, follow_symlinks=False)
            if difference := self._entry(one.fd, other.fd, name, status):
                yield f"{_text(one, name)} has another {difference}"
            elif stat.S_ISDIR(status.st_mode):
                inside.append(name)
        inside.reverse()

    def _entry(self, one: int, other: int, name: str, status: os.stat_result) -> str:
        """In what one entry differs."""
        found = os.stat(name, dir_fd=other, follow_symlinks=False)
        if stat.S_IFMT(status.st_mode) != stat.S_IFMT(found.st_mode) or status.st_rdev != found.st_rdev:
            return "kind"
        if status.st_mode != found.st_mode:
            return "mode"
        if (status.st_uid, status.st_gid) != (found.st_uid, found.st_gid):
            return "owner"
        if _xattrs(one, name) != _xattrs(other, name):
            return "attribute"
        if stat.S_ISDIR(status.st_mode) or is_whiteout(status):
            return ""
        if status.st_mtime_ns not in (found.st_mtime_ns, found.st_mtime_ns // _SECOND * _SECOND):
            return "time"
        if stat.S_ISLNK(status.st_mode) and os.readlink(name, dir_fd=one) != os.readlink(name, dir_fd=other):
            return "target"
        inode, partner = (status.st_dev, status.st_ino), (found.st_dev, found.st_ino)
        known = self._partners.get(inode)
        if status.st_nlink != found.st_nlink or known not in (None, partner):
            return "set of names"
        if status.st_nlink > 1:
            self._partners[inode] = partner
        if known is None and stat.S_ISREG(status.st_mode):
            return "" if status.st_size == found.st_size and _same_bytes(one, other, name) else "content"
        return ""


def _xattrs(directory: int, name: str) -> dict[str, bytes]:
    path = f"/proc/self/fd/{directory}/{name}"
    return {
        key: os.getxattr(path, key, follow_symlinks=False)
        for key in os.listxattr(path, follow_symlinks=False)
        if key == OPAQUE_XATTR or not is_overlay_xattr(key)
    }


def _same_bytes(one: int, other: int, name: str) -> bool:
    fds = [os.open(name, _FILE, dir_fd=directory) for directory in (one, other)]
    try:
        while True:
            pieces = [os.read(fd, _PIECE) for fd in fds]
            if pieces[0] != pieces[1]:
                return False
            if not pieces[0]:
                return True
    finally:
        for fd in fds:
            os.close(fd)


def _text(directory: TreeCursor, name: str) -> str:
    path = "/".join(["", *directory.names[-_MOST_SHOWN:], name])
    beginning = "/..." if len(directory.names) > _MOST_SHOWN else ""
    return beginning + os.fsencode(path).decode("utf-8", "backslashreplace")
