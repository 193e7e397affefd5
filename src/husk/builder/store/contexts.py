"""Contexts of builds that come as archives, and the files in them that the builder reads itself.

Contexts of builds that are archives of a few small files: unpacked without a worker, which takes longer to begin.

Whatever is not plainly such an archive is left to the worker (`context`), which has the words for what is wrong, too.
"""

import asyncio
import contextlib
import hashlib
import io
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from husk.builder.store.diffs import DiffStore
from husk.builder.store.space import room_left
from husk.builder.store.workers.jobs import ContextJob, LookJob, ReadJob
from husk.errors import InvalidParameter, NotFound, SystemFault
from husk.kernel.rooted import read_file
from husk.storage.tar.entry import BLOCK, REGULAR, TarEntry, TarError, clean_name
from husk.storage.tar.stream import TarStream, entries
from husk.storage.workers.answers import Answer, Done, Failed, FileContent, FoundFile, Invalid, Looked, Missing, Refused
from husk.storage.workers.extract import CREATE, set_time
from husk.storage.workers.handle import Worker, WorkerDied
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Stack

_LARGEST = 1 << 16
_MOST_ENTRIES = 100
# Of an archive with such a file in it: headers, padding and a generous end mark are no part of it.
LARGEST_ARCHIVE = _LARGEST + (1 << 14)


class Contexts:
    def __init__(self, diffs: DiffStore, nursery: Nursery) -> None:
        self._diffs = diffs
        self._nursery = nursery

    async def unpack(self, chunks: AsyncIterator[bytes]) -> str:
        """Make a stack of an archive, plain or compressed, as it comes. All files in it belong to root."""
        async with self._diffs.workspace("") as space:
            begun, whole = await _beginning(chunks)
            if whole and (size := await _fill(space.upper, begun)) is not None:
                return await space.keep(size)
            room = await asyncio.to_thread(room_left, space.upper)
            worker = await Worker.start(self._nursery, ContextJob(str(space.upper), room))
            try:
                with contextlib.suppress(WorkerDied):  # its line says why
                    await worker.write(begun)
                    async for chunk in chunks:
                        await worker.write(chunk)
                _check(await worker.outcome())
            finally:
                worker.stop()
            return await space.keep()

    async def keep_file(
        self, name: str, chunks: AsyncIterator[bytes], *, mode: int, owner: tuple[int, int], time: int = 0
    ) -> tuple[str, str]:
        """Make a stack with one file in it, of a time in seconds; its digest is told, too.

        It takes no more than the disk can spare.
        """
        digest = hashlib.sha256()
        async with self._diffs.workspace("") as space:
            path = space.upper / name
            room = await asyncio.to_thread(room_left, space.upper)
            with await asyncio.to_thread(path.open, "xb", buffering=0) as file:
                async for chunk in chunks:
                    room -= len(chunk)
                    if room < 0:
                        raise InvalidParameter(f"{name} is larger than what the disk has room for")
                    await asyncio.to_thread(_append, file, digest, chunk)
            await asyncio.to_thread(_finish, path, mode, owner, time)
            return await space.keep(), f"sha256:{digest.hexdigest()}"

    async def read(self, stack: str, path: str, most: int, offset: int = 0) -> bytes | None:
        """A file from `offset` on, at most so many bytes; None if there is none."""
        lower = self._diffs.lower(stack)
        async with self._diffs.held(stack):
            if len(lower) == 1:
                return await asyncio.to_thread(read_file, lower[0], path, most, offset)
            directories = self._diffs.directories
            job = ReadJob(str(directories.view), str(directories.empty), Stack(lower), path, most, offset)
            answer = await Worker.ask(self._nursery, job)
        match answer:
            case FileContent(data):
                return data
            case Missing() | Invalid():
                return None
            case Failed(message):
                raise SystemFault(message)
            case _:
                raise SystemFault("the worker that reads a file of a build died: see the daemon's log")

    async def read_several(self, stack: str, paths: Sequence[str], most: int) -> list[bytes | None]:
        """As `read`, of several files at once."""
        lower = self._diffs.lower(stack)
        if len(lower) > 1:
            return [await self.read(stack, path, most) for path in paths]
        async with self._diffs.held(stack):
            return await asyncio.to_thread(lambda: [read_file(lower[0], path, most) for path in paths])

    async def look(self, stack: str, path: str, *, inside: bool = False) -> list[FoundFile]:
        """Return the entry of a path, or all in a directory. NotFound, or InvalidParameter if it is no directory."""
        async with self._diffs.held(stack):
            directories = self._diffs.directories
            lower = Stack(self._diffs.lower(stack))
            job = LookJob(str(directories.view), str(directories.empty), lower, path, inside)
            answer = await Worker.ask(self._nursery, job)
        match answer:
            case Looked(entries):
                return entries
            case Missing():
                raise NotFound(f"{path}: no such file or directory")
            case Invalid(message):
                raise InvalidParameter(message)
            case Failed(message):
                raise SystemFault(message)
            case _:
                raise SystemFault("the worker that looks at files of a build died: see the daemon's log")


async def _beginning(chunks: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    """The first bytes, and whether they are all: of a small archive they are."""

    begun = b""
    async for chunk in chunks:
        begun += chunk
        if len(begun) > LARGEST_ARCHIVE:
            return begun, False
    return begun, True


async def _fill(directory: Path, archive: bytes) -> int | None:
    try:
        return await asyncio.to_thread(fill_small, directory, archive)
    except OSError as error:
        raise SystemFault(f"a context cannot be unpacked: {error}") from error


def _finish(path: Path, mode: int, owner: tuple[int, int], time: int) -> None:
    os.chown(path, *owner)
    os.chmod(path, mode)
    for each in (path, path.parent):
        os.utime(each, (time, time))


def _append(file: io.FileIO, digest: "hashlib._Hash", chunk: bytes) -> None:
    digest.update(chunk)
    remaining = memoryview(chunk)
    while remaining:
        remaining = remaining[file.write(remaining) :]


def _check(outcome: Answer | None) -> None:
    match outcome:
        case Done():
            return
        case Invalid(message) | Refused(message):
            raise InvalidParameter(message)
        case Failed(message):
            raise SystemFault(message)
        case _:
            raise SystemFault("the worker that unpacks a context died: see the daemon's log")


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
            _write(descriptor, entry, data)
    except OverflowError as error:
        raise OSError(f"a file cannot be written: {error}") from error
    finally:
        os.close(descriptor)
    return sum(len(data) for _, data in files)


def _plain_files(archive: bytes) -> list[tuple[TarEntry, bytes]] | None:
    """The files of an archive that has nothing else, no directory, and no more to tell of them than a header can."""
    buffers = iter([memoryview(archive)])
    stream = TarStream(lambda: next(buffers, memoryview(b"")))
    found: dict[bytes, tuple[TarEntry, bytes]] = {}
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


def _write(directory: int, entry: TarEntry, data: bytes) -> None:
    file = os.open(entry.name, CREATE, entry.mode & 0o777, dir_fd=directory)
    with open(file, "wb", buffering=0) as writer:
        if writer.write(data) != len(data):
            raise OSError("a file cannot be written: it was cut short")
        os.fchown(file, 0, 0)
        # Writing and changing the owner take special bits away; a directory may have given the file others.
        os.fchmod(file, entry.mode)
        set_time(file, entry)
