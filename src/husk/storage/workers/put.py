"""The worker process that brings files into a container: a tar in, files at a place of the container's view out.

Standard input is the archive, plain or compressed, or a socket with the body of a request, whose first bytes the daemon
has read already. The place that the files go to is looked at before anything is written.
"""

import errno
import mmap
import os
import stat
from typing import Protocol

from husk.storage.tar.decompress import Reader, choose_reader
from husk.storage.tar.entry import BLOCK, DIRECTORY, TarEntry, TarError
from husk.storage.tar.stream import TarStream
from husk.storage.workers.answers import Answer, Done, Failed, Invalid, Missing, Refused
from husk.storage.workers.body import BodyReader, BodyUpload
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import confine
from husk.storage.workers.extract import Extractor, set_time, set_xattrs
from husk.storage.workers.jobs import PutJob
from husk.storage.workers.unpack import describe, is_fault_of_host

_BUFFER_SIZE = 1 << 20
# What a container that runs sees there instead of what could be written: it would never find it.
_OF_KERNEL = ("/proc", "/sys", "/dev")
_KERNELS = "nothing can be put into {}, which is the kernel's in a container that runs"
_GONE = "nothing can be put into {}, a tmpfs that is there only while the container runs"
_REPLACED = "nothing can be put into {}: the container has no tmpfs there any more, or none that can be reached"


class ArchiveSource(Protocol):
    """The source of an archive; `hand_over` moves bytes past this process, or with fewer copies, if it can."""

    def readinto(self, buffer: memoryview, /) -> int: ...

    def hand_over(self, fd: int, count: int, /) -> int: ...


class Pipe:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def readinto(self, buffer: memoryview, /) -> int:
        return os.readv(self._fd, [buffer])

    def hand_over(self, fd: int, count: int, /) -> int:
        try:
            return os.splice(self._fd, fd, count)
        except OSError as error:
            # A pipe can be spliced into every file but those of a few odd file systems.
            if error.errno != errno.EINVAL:
                raise
            return 0


class Input:
    """The archive that is to be unpacked, with its first block to look at."""

    def __init__(self, source: ArchiveSource) -> None:
        self._source = source
        self.head = b""
        first = memoryview(bytearray(BLOCK))
        while len(self.head) < BLOCK and (count := source.readinto(first[: BLOCK - len(self.head)])):
            self.head += first[:count]
        self._unread = self.head

    def readinto(self, buffer: memoryview, /) -> int:
        if self._unread:
            count = min(len(self._unread), len(buffer))
            buffer[:count] = self._unread[:count]
            self._unread = self._unread[count:]
            return count
        return self._source.readinto(buffer)

    def hand_over(self, fd: int, count: int) -> int:
        """Move at most `count` of the bytes that come next into a file; 0 where that is not possible."""
        return 0 if self._unread else self._source.hand_over(fd, count)

    def read(self, size: int = _BUFFER_SIZE, /) -> bytes:
        buffer = memoryview(bytearray(size))
        return bytes(buffer[: self.readinto(buffer)])

    read1 = read


class Placer(Extractor):
    """Applies an archive to a directory that is in use: what it does not mention stays, whiteouts are plain files.

    `limit` is how many bytes it may bring, 0 for any number.
    """

    inherits = True
    # In the message of an archive that brings more.
    called = "archive"

    def __init__(
        self,
        stream: TarStream,
        destination: str,
        keep_kinds: bool,
        owner: tuple[int, int] | None,
        limit: int = 0,
    ) -> None:
        super().__init__(stream)
        self._limit = limit
        self._brought = 0
        self._destination = destination
        self._keep_kinds = keep_kinds
        self._owner = owner
        self._current: TarEntry

    def _apply(self, entry: TarEntry, path: bytes) -> None:
        # An entry without data takes room as well.
        self._brought += max(entry.size, BLOCK)
        if self._limit and self._brought > self._limit:
            raise TarError(f"the {self.called} is larger than what the disk has room for: no space left on device")
        if self._owner is not None:
            entry.uid, entry.gid = self._owner
        if not path:
            if entry.kind != DIRECTORY:
                raise TarError("an archive entry has the name of the directory that it is put into")
            return  # what the directory itself looks like is not the archive's business
        self._current = entry
        self._place(entry, path)

    def _clear(self, path: bytes) -> None:
        """Make room for the current entry, if something else may be in its place."""
        if self._keep_kinds:
            self._check_kind(self._current, path)
        super()._clear(path)

    def _check_kind(self, entry: TarEntry, path: bytes) -> None:
        try:
            is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return
        shown = f'"{os.path.join(self._destination, os.fsdecode(self._whole(path)))}"'
        if is_directory and entry.kind != DIRECTORY:
            raise TarError(f'cannot overwrite directory {shown} with non-directory "{self._destination}"')
        if not is_directory and entry.kind == DIRECTORY:
            raise TarError(f'cannot overwrite non-directory {shown} with directory "{self._destination}"')

    def _directory(self, entry: TarEntry, path: bytes) -> None:
        """Owner and mode at once: somebody may be waiting for the files in it."""
        super()._directory(entry, path)
        os.chown(path, entry.uid, entry.gid, follow_symlinks=False)
        os.chmod(path, entry.mode)
        set_xattrs(path, entry)

    def _finish_directory(self, path: bytes, entry: TarEntry) -> None:
        try:
            set_time(path, entry)
        except (FileNotFoundError, NotADirectoryError):
            return  # a later entry, or the container, has taken it away


def main(job: PutJob, caller: Caller) -> None:
    source = BodyReader(BodyUpload(0, caller.begun(), job.length)) if job.as_body else Pipe(0)
    caller.answer(put(job, source))


def put(job: PutJob, source: ArchiveSource) -> Answer:
    """Unpack the archive and tell how it went. The place is looked at before anything is written."""
    try:
        # What decompressing needs must be imported before the view closes, and the choice needs the first bytes: those
        # come at once or the request is empty.
        reader = choose_reader(Input(source))
        reached = confine(job.root, job.binds, job.memory)
        # Python would follow any number of links, each by a call of its own; the kernel has an end.
        os.stat(job.path.rstrip("/") or "/")
        destination = os.path.realpath(job.path, strict=True)
        if not stat.S_ISDIR(os.lstat(destination).st_mode):
            return Invalid("extraction point is not a directory")
        os.chdir(destination)
        # A container that runs may have put a link there meanwhile: what counts is where we are now.
        destination = os.getcwd()
        if (refusal := _refusal(destination, job, reached)) is not None:
            return Refused(refusal)
    except TarError as error:
        return describe(error)
    except FileNotFoundError:
        return Missing()
    except OSError as error:
        kind = Invalid if error.errno in (errno.ENOTDIR, errno.ELOOP) else Failed
        return kind(f"{(error.strerror or str(error)).lower()}: {job.path}")
    return _extract(reader, job, destination)


def _extract(reader: Reader, job: PutJob, destination: str) -> Answer:
    # Memory that nobody writes zeros to first: most archives fill a small part of it.
    buffer = memoryview(mmap.mmap(-1, _BUFFER_SIZE))

    def next_buffer() -> memoryview:
        return buffer[: reader.readinto(buffer)]

    stream = TarStream(next_buffer, reader.hand_over if isinstance(reader, Input) else None)
    try:
        Placer(stream, destination, job.keep_kinds, job.owner).run()
        stream.drain()
    except Exception as error:
        if is_fault_of_host(error):
            return Failed(str(error))
        return describe(error)
    return Done()


def _refusal(destination: str, job: PutJob, reached: set[str]) -> str | None:
    """Return the reason why nothing may be written there, if there is one. The innermost mount decides."""
    gone = _REPLACED if job.memory.process else _GONE
    mounts = [
        *((place, "" if place in reached else gone.format(place)) for place in job.memory.places),
        *((item.target, "mounted volume is marked read-only" if item.readonly else "") for item in job.binds),
        *((place, _KERNELS.format(place)) for place in _OF_KERNEL if job.memory.process),
    ]
    inside = [
        (len(where), refusal)
        for where, refusal in ((os.path.realpath(target).rstrip("/") + "/", refusal) for target, refusal in mounts)
        if (destination + "/").startswith(where)
    ]
    if not inside:
        return "container rootfs is marked read-only" if job.readonly_root else None
    # Of two at one place the first: a program may have a tmpfs at /sys, too.
    return max(inside, key=lambda item: item[0])[1] or None
