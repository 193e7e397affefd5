"""Copies of small files into or out of a container, or into a build: without a worker, where one look is enough.

A worker takes longer to close itself in than such files to be copied. Without this shortcut `docker cp` of 3 bytes
takes 1.13 to 1.22 times as long in and 1.11 to 1.18 times out, and that of a directory with three small files 1.11 to
1.36 times out (`bench.copies`, docs/performance.md). A directory on its way in took less
than 1.1 times as long: it is left to the worker.

So is whatever is not plainly the simple case (a link or a mount on the way, attributes, anything but files and
directories, or something else in their place): the workers `pack` and `put` also have the words for what is wrong.

The container may change everything meanwhile. So each thing is opened by its name in a directory that is open already,
never through a link (`open_beneath`), and what is done is done to what was opened.
"""

import contextlib
import io
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from husk.kernel.rooted import open_beneath, reopen
from husk.storage.look import opened, parts
from husk.storage.tar.entry import BLOCK, REGULAR, Entry, TarError, clean_name
from husk.storage.tar.members import Members, tar_to
from husk.storage.tar.stream import TarStream, entries
from husk.storage.workers.answers import FileStatus
from husk.storage.workers.extract import CREATE, set_time
from husk.storage.workers.pack import XATTRS, base_name, file_status

_LARGEST = 1 << 16
_MOST_ENTRIES = 100
# Of an archive with such a file in it: headers, padding and a generous end mark are no part of it.
LARGEST_ARCHIVE = _LARGEST + (1 << 14)


class _NotSimple(Exception):
    """A worker must do it."""


def read_small(root: Path, mount_points: Iterable[str], path: str) -> tuple[FileStatus, bytes] | None:
    """The small file, or directory of a few, that `path` names, as a tar; None if it takes a worker to read it.

    FileNotFoundError if it is nothing.
    """
    points = list(mount_points)
    with opened(root, points, path) as found:
        if found is None or _touches_mount(parts(path), points):
            return None
        out = io.BytesIO()
        try:
            with tar_to(out) as members:
                name = base_name(path)
                status = _Reading(members).add("" if name == "/" else name, found, alone=True)
        except (_NotSimple, OSError):
            return None
    return file_status(path, status), out.getvalue()


def put_small(
    root: Path, mount_points: Sequence[str], path: str, archive: bytes, owner: Sequence[int] | None = None
) -> bool:
    """Put the one small file of `archive` into the directory `path`; False if a worker must do it, or find out why not.

    FileNotFoundError if there is no such directory. `owner` (user, group) replaces the archive's.
    """
    found = _plain_files(archive)
    if found is None or len(found) != 1:
        return False
    ((entry, data),) = found
    if _touches_mount([*parts(path), os.fsdecode(entry.name)], mount_points):
        return False
    if owner is not None:
        entry.uid, entry.gid = owner
    with opened(root, mount_points, path) as directory:
        if directory is None or not stat.S_ISDIR(os.fstat(directory).st_mode):
            return False
        try:
            _write(directory, entry, data)
        except (_NotSimple, OSError, OverflowError):
            return False  # perhaps with a part of it done, which the worker does again
    return True


def fill_small(directory: Path, archive: bytes) -> int | None:
    """Put the few small files of `archive` into an empty directory that nobody else writes to, all of them root's.

    The bytes that they have; None, and nothing is done, if a worker must do it. OSError if they cannot be written.
    """
    # A plain archive with its end mark: what else it be, or what is wrong with it, a worker finds out.
    files = _plain_files(archive) if archive.endswith(bytes(2 * BLOCK)) else None
    if files is None:
        return None
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for entry, data in files:
            entry.uid = entry.gid = 0
            _write(descriptor, entry, data)
    except (_NotSimple, OverflowError) as error:
        raise OSError(f"a file cannot be written: {error}") from error
    finally:
        os.close(descriptor)
    return sum(len(data) for _, data in files)


def _touches_mount(place: list[str], mount_points: Iterable[str]) -> bool:
    """Tell if something is mounted on this place, above or below it."""
    points = [parts(point) for point in mount_points]
    return any(place[: len(point)] == point[: len(place)] for point in points)


class _Reading:
    """Adds small files to an archive until they are too many or too large."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._bytes_left = _LARGEST
        self._entries_left = _MOST_ENTRIES

    def add(self, name: str, found: int, alone: bool) -> os.stat_result:
        """Add what is open by name only; its status."""
        status = os.fstat(found)
        self._entries_left -= 1
        if self._entries_left < 0 or status.st_size > self._bytes_left:
            raise _NotSimple
        if stat.S_ISREG(status.st_mode):
            if status.st_nlink > 1 and not alone:
                raise _NotSimple  # its other name may be in the archive too
            return self._add_file(name, found)
        if stat.S_ISDIR(status.st_mode):
            self._add_directory(name, found)
            return status
        raise _NotSimple

    def _add_file(self, name: str, found: int) -> os.stat_result:
        # Somebody may hold a lease on it: leave it to the worker to wait.
        with _reopened(found, os.O_RDONLY | os.O_NONBLOCK) as file:
            data, status = os.read(file, _LARGEST + 1), os.fstat(file)
            if len(data) != status.st_size or XATTRS.intersection(os.listxattr(file)):
                raise _NotSimple
        self._bytes_left -= len(data)
        self._members.add_data(name, data, status)
        return status

    def _add_directory(self, name: str, found: int) -> None:
        with _reopened(found, os.O_RDONLY | os.O_DIRECTORY) as directory:
            self._members.add_directory(name, os.fstat(directory))
            with os.scandir(directory) as listing:
                names = sorted(os.fsencode(entry.name) for entry in itertools.islice(listing, self._entries_left + 1))
            for child in map(os.fsdecode, names):
                below = open_beneath(directory, f"./{child}", os.O_PATH | os.O_NOFOLLOW)
                try:
                    self.add(f"{name}/{child}", below, alone=False)
                finally:
                    os.close(below)


@contextlib.contextmanager
def _reopened(found: int, flags: int) -> Iterator[int]:
    try:
        file = reopen(found, flags)
    except OSError:
        raise _NotSimple from None
    try:
        yield file
    finally:
        os.close(file)


def _plain_files(archive: bytes) -> list[tuple[Entry, bytes]] | None:
    """The files of an archive that has nothing else, no directory, and no more to tell of them than a header can."""
    buffers = iter([memoryview(archive)])
    stream = TarStream(lambda: next(buffers, memoryview(b"")))
    found: dict[bytes, tuple[Entry, bytes]] = {}
    try:
        for entry in entries(stream):
            entry.name = clean_name(entry.name)
            data = stream.take(entry.size)
            plain = entry.kind == REGULAR and entry.sparse is None and not entry.xattrs and len(data) == entry.size
            if not plain or entry.name in found or not entry.name or b"/" in entry.name or len(found) >= _MOST_ENTRIES:
                return None
            found[entry.name] = entry, data
    except TarError:
        return None
    return list(found.values())


def _write(directory: int, entry: Entry, data: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(entry.name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise _NotSimple
        os.unlink(entry.name, dir_fd=directory)
    file = os.open(entry.name, CREATE, entry.mode & 0o777, dir_fd=directory)
    with open(file, "wb", buffering=0) as writer:
        if writer.write(data) != len(data):
            raise _NotSimple
        os.fchown(file, entry.uid, entry.gid)
        # Writing and changing the owner take special bits away; a directory may have given the file others.
        os.fchmod(file, entry.mode)
        set_time(file, entry)
