"""How does one small file get into or out of a container? Without a worker, where one look at the root is enough.

That is what `docker cp` is used for most, and a worker takes longer to close itself in than such a file to be copied.
Whatever is not plainly the simple case (a link or a mount on the way, an archive with more in it, attributes, anything
but a file in the file's place) is left to the workers `pack` and `put`, who also have the words for what is wrong.
"""

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from husk.kernel.page_cache import is_cached
from husk.storage.extract import clamp_time
from husk.storage.look import opened, parts
from husk.storage.members import tar_to
from husk.storage.pack import XATTRS, FileStatus, base_name, file_status
from husk.storage.tar import REGULAR, Entry, TarError, TarStream, clean_name, entries

_LARGEST = 1 << 16
# Of an archive with such a file in it: headers, padding and a generous end mark are no part of the file.
LARGEST_ARCHIVE = _LARGEST + (1 << 14)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_small(
    root: Path, mount_points: Iterable[str], path: str, cached: bool = False
) -> tuple[FileStatus, bytes] | None:
    """The file that `path` names, as a tar; None if it is not small, no file, or cannot be told from here.

    FileNotFoundError if it is nothing. With `cached` no disk is asked: BlockingIOError if one would have to be.
    """
    with opened(root, mount_points, path, cached) as found:
        if found is None:
            return None
        status = os.fstat(found)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            return None
        try:
            # The same file for certain, whatever has its name by now. Somebody may hold a lease on it: do not wait.
            file = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
    with open(file, "rb", buffering=0) as reader:
        if cached and not is_cached(file, status.st_size):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        data, status = reader.read(_LARGEST + 1), os.fstat(file)
        if len(data) != status.st_size or XATTRS.intersection(os.listxattr(file)):
            return None
    out = io.BytesIO()
    with tar_to(out) as members:
        members.add_data(base_name(path), data, status)
    return file_status(path, status), out.getvalue()


def put_small(
    root: Path, mount_points: Sequence[str], path: str, archive: bytes, owner: Sequence[int] | None = None
) -> bool:
    """Put the one file of `archive` into the directory `path`; False if a worker must do it, or find out why not.

    FileNotFoundError if there is no such directory. `owner` (user, group) replaces the archive's.
    """
    if (only := _only_file(archive)) is None:
        return False
    entry, data = only
    # What else is mounted in the directory does not matter.
    place = [*parts(path), os.fsdecode(entry.name)]
    if any(parts(point)[: len(place)] == place for point in mount_points):
        return False
    with opened(root, mount_points, path) as directory:
        if directory is None or not stat.S_ISDIR(os.fstat(directory).st_mode):
            return False
        if owner is not None:
            entry.uid, entry.gid = owner
        return _replace(directory, entry, data)


def _only_file(archive: bytes) -> tuple[Entry, bytes] | None:
    buffers = iter([memoryview(archive)])
    stream = TarStream(lambda: next(buffers, memoryview(b"")))
    data = b""
    found: list[Entry] = []
    try:
        for entry in entries(stream):
            entry.name = clean_name(entry.name)
            if found or not _is_plain(entry):
                return None
            data = stream.take(entry.size)
            found.append(entry)
    except TarError:
        return None
    return (found[0], data) if found and len(data) == found[0].size else None


def _is_plain(entry: Entry) -> bool:
    named = entry.name and b"/" not in entry.name
    return bool(named and entry.kind == REGULAR and entry.sparse is None and not entry.xattrs)


def _replace(directory: int, entry: Entry, data: bytes) -> bool:
    """Make the file as `put` makes it; False where that is not possible, perhaps with a part of it made."""
    try:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(entry.name, dir_fd=directory, follow_symlinks=False).st_mode):
                return False
            os.unlink(entry.name, dir_fd=directory)
        file = os.open(entry.name, _CREATE, entry.mode & 0o777, dir_fd=directory)
        with open(file, "wb", buffering=0) as writer:
            if writer.write(data) != len(data):
                return False
            os.fchown(file, entry.uid, entry.gid)
            # Writing and changing the owner take special bits away; a directory may have given the file others.
            os.fchmod(file, entry.mode)
            time = clamp_time(entry.mtime_ns)
            os.utime(file, ns=(time, time))
    except (OSError, OverflowError):
        return False
    return True
