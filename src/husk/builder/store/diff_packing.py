"""Diffs as the tars that registries know: made by workers, which hash them while they write.

To start a worker costs more than to pack what a small step has changed, so one worker packs several of those.

Packs the little that a small step of a build has changed, without a worker, which takes longer to begin.

A step has ended when its files become a diff: nobody is there any more who could put a link into the way. All the same
nothing is followed (`walk`, `Members`), and it is done only where there is little to read.
"""

import asyncio
import hashlib
import io
import os
import stat
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.aio.thread_pool import ThreadPool
from husk.builder.store.workers.jobs import DiffBlobsJob
from husk.errors import SystemFault
from husk.kernel.thread_files import use_own
from husk.kernel.trees import walk
from husk.storage.blobs import BlobStore
from husk.storage.layers.diff_records import Packing
from husk.storage.layers.directories import Directories
from husk.storage.workers.answers import Blobs, Failed
from husk.storage.workers.diff import write_diff
from husk.storage.workers.handle import Worker
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Blob, UpperBlob

# Packing reads, hashes and writes: two keep the disk and two processors busy.
_PACKED_AT_ONCE = 2
_SMALL = 256 << 10
_MOST_TOGETHER = 16
_LARGEST = 1 << 16
_MOST_ENTRIES = 100


class Packable(Protocol):
    """A diff. `packings` has those that were made, by the latest time that was asked for."""

    @property
    def id(self) -> str: ...

    @property
    def directory(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def packings(self) -> Mapping[str, Packing]: ...


Remember = Callable[[Mapping[str, Packing], str], Awaitable[None]]


class Packer:
    """Packs each diff once, whoever wants it and however many do."""

    def __init__(
        self, nursery: Nursery, blobs: BlobStore, directories: Directories, remember: Remember, tasks: Tasks
    ) -> None:
        """`remember` is told the packings of diffs, by their ids."""
        self._nursery = nursery
        self._blobs = blobs
        self._directories = directories
        self._remember = remember
        self._tasks = tasks
        self._slots = asyncio.Semaphore(_PACKED_AT_ONCE)
        self._running: dict[tuple[str, str], asyncio.Task[dict[str, Packing]]] = {}

    async def packed(self, diff: Packable, clamp: str) -> Packing:
        """One who comes while it is packed waits for the same."""
        if (packing := self._known(diff, clamp)) is not None:
            return packing
        if (diff.id, clamp) not in self._running:
            self._begin([diff], clamp)
        return (await asyncio.shield(self._running[diff.id, clamp]))[diff.id]

    def begin(self, diffs: Sequence[Packable], clamp: str) -> None:
        """Somebody is going to want all of these: begin with the small ones, several at a time."""
        small = [
            diff
            for diff in diffs
            if diff.size <= _SMALL and (diff.id, clamp) not in self._running and self._known(diff, clamp) is None
        ]
        for first in range(0, len(small), _MOST_TOGETHER):
            self._begin(small[first : first + _MOST_TOGETHER], clamp)

    def _known(self, diff: Packable, clamp: str) -> Packing | None:
        packing = diff.packings.get(clamp)
        return packing if packing is not None and self._blobs.has(packing.digest) else None

    def _begin(self, diffs: Sequence[Packable], clamp: str) -> None:
        """Start the packing of these diffs by one worker."""
        task = self._tasks.spawn(self._pack(diffs, clamp), "pack diffs", awaited=True)
        keys = [(diff.id, clamp) for diff in diffs]
        self._running.update(dict.fromkeys(keys, task))

        def ended(_: object) -> None:
            for key in keys:
                del self._running[key]

        task.add_done_callback(ended)

    async def _pack(self, diffs: Sequence[Packable], clamp: str) -> dict[str, Packing]:
        for diff in diffs:
            self._directories.hold(diff.directory)
        blob_files: list[Path] = []
        try:
            blob_files += [self._blobs.make_temporary() for _ in diffs]
            uppers = [self._directories.path / diff.directory for diff in diffs]
            async with self._slots:
                packings = await pack(self._nursery, list(zip(uppers, blob_files, strict=True)), clamp)
            for blob_file, packing in zip(blob_files, packings, strict=True):
                self._blobs.adopt(blob_file, packing.digest)
        finally:
            for blob_file in blob_files:
                blob_file.unlink(missing_ok=True)
            for diff in diffs:
                self._directories.release(diff.directory)
        made = {diff.id: packing for diff, packing in zip(diffs, packings, strict=True)}
        await self._remember(made, clamp)
        return made


async def pack(nursery: Nursery, diffs: Sequence[tuple[Path, Path]], clamp: str) -> list[Packing]:
    """Write what overlays' upper directories change, each into its file; no entry is later than `clamp`, if given."""
    parts = [UpperBlob(str(upper), str(blob_file)) for upper, blob_file in diffs]
    match await Worker.ask(nursery, DiffBlobsJob(parts, int(clamp) if clamp else None)):
        case Blobs(blobs):
            return [Packing(blob.digest, blob.size) for blob in blobs]
        case Failed(message):
            raise SystemFault(message)
        case _:
            raise SystemFault("the worker that packs a step's files died: see the daemon's log")


class SmallDiffs:
    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        # Each has a working directory for itself, as the walk wants it.
        self._threads = ThreadPool(2, "small diffs")
        self._own = threading.local()

    async def pack(self, upper: Path) -> tuple[int, Blob] | None:
        """The bytes of an upper directory's files, and the blob of its tar; None if that is not small."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._pack, upper)

    def close(self) -> None:
        self._threads.shutdown()

    def _pack(self, upper: Path) -> tuple[int, Blob] | None:
        try:
            if not hasattr(self._own, "directory"):
                use_own()
                self._own.directory = True
            size = small_size(upper)
            if size is None:
                return None
            out = io.BytesIO()
            write_diff(upper, out)
            return size, self._put(out.getvalue())
        except OSError:
            return None  # a worker has the words for what is wrong

    def _put(self, data: bytes) -> Blob:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        temporary = self._blobs.make_temporary()
        try:
            temporary.write_bytes(data)
            self._blobs.adopt(temporary, digest)
        finally:
            temporary.unlink(missing_ok=True)
        return Blob(digest, len(data))


def small_size(upper: Path) -> int | None:
    """The bytes of its files, if they are few and small; a file with several names counts once."""
    found: dict[int, int] = {}
    fd = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for number, entry in enumerate(walk(fd)):
            if number >= _MOST_ENTRIES:
                return None
            if stat.S_ISREG(entry.status.st_mode):
                found[entry.status.st_ino] = entry.status.st_size
    finally:
        os.close(fd)
    size = sum(found.values())
    return size if size <= _LARGEST else None
