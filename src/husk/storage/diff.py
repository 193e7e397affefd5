"""What did a container change? The tar of an overlay's upper directory, as a layer holds it.

`write_diff` is the function, `main` the worker process that runs it confined to that directory, so that a container
that is still running cannot make it read anything else by turning a directory into a link.
"""

import os
import signal
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from husk.storage.archive import OPAQUE_MARK, OPAQUE_XATTR, is_overlay_xattr, is_whiteout, whiteout_name

_COPY_SIZE = 1 << 20


def main() -> None:
    """`diff <upper> <fd>`: write the archive to standard output, then to `fd` that it is whole."""
    # The reader's own complaint says what is wrong; ours about the broken pipe would only hide it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.chroot(sys.argv[1])
    os.chdir("/")
    # Whatever would still be imported would now come out of the container's files.
    sys.path.clear()
    sys.meta_path.clear()
    with open(1, "wb", buffering=0) as out:
        write_diff(Path("/"), out)
    os.write(int(sys.argv[2]), b"ok\n")


def write_diff(upper: Path, out: BinaryIO) -> None:
    """Write what an overlay's upper directory changes as a layer's tar.

    The order depends on names only. Times are whole seconds, as in Docker's layers.
    """
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_COPY_SIZE) as archive:
        first_names: dict[tuple[int, int], str] = {}
        for name, path, status in _walk(os.fsencode(upper)):
            text = os.fsdecode(name)
            if status is None:
                archive.addfile(tarfile.TarInfo(text))
                continue
            member = _member(text, path, status)
            if member is None:
                continue
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                first = first_names.setdefault((status.st_dev, status.st_ino), text)
                if first != text:
                    member.type, member.linkname, member.size = tarfile.LNKTYPE, first, 0
                    member.pax_headers = {}
            if member.isreg():
                _add_file(archive, member, path)
            else:
                archive.addfile(member)


def _walk(top: bytes) -> Iterator[tuple[bytes, bytes, os.stat_result | None]]:
    """Everything below `top` as name in the archive, path and status; a status of None stands for a whiteout mark."""
    stack = [b""]
    while stack:
        name = stack.pop()
        path = os.path.join(top, name)
        if name:
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if is_whiteout(status):
                parent, base = os.path.split(name)
                yield os.path.join(parent, whiteout_name(base)), path, None
                continue
            yield name, path, status
            if not stat.S_ISDIR(status.st_mode):
                continue
            if _is_opaque(path):
                yield os.path.join(name, OPAQUE_MARK), path, None
        try:
            children = sorted(os.listdir(path), reverse=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        stack += [os.path.join(name, child) for child in children]


def _is_opaque(path: bytes) -> bool:
    try:
        return os.getxattr(path, OPAQUE_XATTR, follow_symlinks=False) == b"y"
    except OSError:
        return False


def _member(name: str, path: bytes, status: os.stat_result) -> tarfile.TarInfo | None:
    """The header for a file; None for a socket, which no archive can hold, and for what has vanished."""
    member = tarfile.TarInfo(name)
    member.mode = stat.S_IMODE(status.st_mode)
    member.uid, member.gid = status.st_uid, status.st_gid
    member.mtime = int(status.st_mtime)
    kind = stat.S_IFMT(status.st_mode)
    try:
        if kind == stat.S_IFREG:
            member.size = status.st_size
        elif kind == stat.S_IFDIR:
            member.type = tarfile.DIRTYPE
        elif kind == stat.S_IFLNK:
            member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(os.readlink(path))
        elif kind == stat.S_IFIFO:
            member.type = tarfile.FIFOTYPE
        elif kind in (stat.S_IFCHR, stat.S_IFBLK):
            member.type = tarfile.CHRTYPE if kind == stat.S_IFCHR else tarfile.BLKTYPE
            member.devmajor, member.devminor = os.major(status.st_rdev), os.minor(status.st_rdev)
        else:
            return None
        member.pax_headers = {
            f"SCHILY.xattr.{xattr}": os.getxattr(path, xattr, follow_symlinks=False).decode("utf-8", "surrogateescape")
            for xattr in sorted(os.listxattr(path, follow_symlinks=False))
            if not is_overlay_xattr(xattr)
        }
    except OSError:
        return None
    return member


def _add_file(archive: tarfile.TarFile, member: tarfile.TarInfo, path: bytes) -> None:
    try:
        # O_NONBLOCK: the file may have become a pipe that nobody writes to.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with open(fd, "rb", buffering=0) as file:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            archive.addfile(member, _Exactly(file, member.size))  # type: ignore[arg-type]  # it has the one method used


class _Exactly:
    """A file that gives exactly as many bytes as its header promised, though somebody may be truncating it."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, count: int) -> bytes:
        count = min(count, self._left)
        data = b""
        while len(data) < count:
            data += self._file.read(count - len(data)) or bytes(count - len(data))
        self._left -= count
        return data
