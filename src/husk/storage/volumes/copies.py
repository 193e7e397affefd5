"""Copying of a tree from a container's file system into a volume, as it is: owners, modes, links and attributes too.

The source stands still. The destination may be in use by a container that would like to lead us elsewhere: no link of
it is followed, and nothing that exists is written to.
"""

import contextlib
import errno
import os
import stat

import msgspec

from husk.kernel.rooted import open_beneath
from husk.kernel.tree_cursor import TreeCursor
from husk.storage.tar.whiteouts import is_overlay_xattr

_CHUNK = 1 << 26
# A path relative to an open directory must stay below PATH_MAX with any name (at most 255 bytes) added to it.
_LONGEST_RELATIVE = 3000


def copy_tree(source: int, destination: int) -> None:
    """Copy what is in one open directory into another, which gets the owner and mode of the first."""
    with TreeCursor(source) as here, TreeCursor(destination) as there:
        copy = _Copy(destination, here, there)
        levels = [copy.directory()]
        while levels:
            if levels[-1]:
                name = levels[-1].pop()
                here.down(name)
                there.down(name)
                levels.append(copy.directory())
                continue
            levels.pop()
            if levels and not (here.up() and there.up()):
                raise OSError(errno.ESTALE, "a directory was moved away while it was copied", "/".join(here.names))


class _Copy:
    def __init__(self, top: int, source: TreeCursor, destination: TreeCursor) -> None:
        self._top = top
        self._source = source
        self._destination = destination
        self._first_names: dict[tuple[int, int], str] = {}

    def directory(self) -> list[str]:
        """Copy what is in the directory that both stand in; the directories of it, whose content is still to come."""
        here = _Pair(self._source.fd, self._destination.fd)
        above = "/".join([".", *self._source.names])
        names = sorted(os.listdir(here.source), reverse=True)
        inside = [name for name in names if _copy_entry(self._top, here, f"{above}/{name}", name, self._first_names)]
        _adopt(here.destination, here.source)
        return inside


class _Pair(msgspec.Struct, frozen=True):
    source: int
    destination: int


def _copy_entry(top: int, here: _Pair, relative: str, name: str, first_names: dict[tuple[int, int], str]) -> bool:
    """Copy one entry; True for a directory, whose content is still to come. What exists already stays as it is."""
    status = os.stat(name, dir_fd=here.source, follow_symlinks=False)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=here.destination)
        return True
    with contextlib.suppress(FileExistsError):
        file = (status.st_dev, status.st_ino)
        if status.st_nlink > 1 and (first := first_names.get(file)) is not None:
            _link(top, first, here.destination, name)
            return False
        if kind == stat.S_IFREG:
            _copy_file(here, name)
        elif kind == stat.S_IFLNK:
            os.symlink(os.readlink(name, dir_fd=here.source), name, dir_fd=here.destination)
            _adopt_special(here, name, status)
        else:
            os.mknod(name, status.st_mode, status.st_rdev, dir_fd=here.destination)
            _adopt_special(here, name, status)
            _change_mode(here.destination, name, stat.S_IMODE(status.st_mode))
        if status.st_nlink > 1 and len(os.fsencode(relative)) <= _LONGEST_RELATIVE:
            first_names[file] = relative
    return False


def _link(top: int, first: str, directory: int, name: str) -> None:
    parent = open_beneath(top, os.path.dirname(first), os.O_PATH | os.O_DIRECTORY)
    try:
        os.link(os.path.basename(first), name, src_dir_fd=parent, dst_dir_fd=directory, follow_symlinks=False)
    finally:
        os.close(parent)


def _copy_file(here: _Pair, name: str) -> None:
    create = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here.source)
    try:
        destination = os.open(name, create, 0o600, dir_fd=here.destination)
        try:
            while os.sendfile(destination, source, None, _CHUNK):
                pass
            _adopt(destination, source)
            status = os.fstat(source)
            os.utime(destination, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(destination)
    finally:
        os.close(source)


def _adopt(destination: int, source: int) -> None:
    """Give a file or directory the owner, mode and attributes of another."""
    status = os.fstat(source)
    os.fchown(destination, status.st_uid, status.st_gid)
    os.fchmod(destination, stat.S_IMODE(status.st_mode))
    for name in os.listxattr(source):
        if not is_overlay_xattr(name):
            # A volume's file system may not have them; the files are worth more than their attributes.
            with contextlib.suppress(OSError):
                os.setxattr(destination, name, os.getxattr(source, name))


def _adopt_special(here: _Pair, name: str, status: os.stat_result) -> None:
    os.chown(name, status.st_uid, status.st_gid, dir_fd=here.destination, follow_symlinks=False)
    times = (status.st_atime_ns, status.st_mtime_ns)
    os.utime(name, ns=times, dir_fd=here.destination, follow_symlinks=False)


def _change_mode(directory: int, name: str, mode: int) -> None:
    """chmod(2) follows links; a descriptor of the file itself cannot be exchanged for one."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)
