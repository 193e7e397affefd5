"""Diffs as the tars that registries know: made by workers, which hash them while they write.

To start a worker costs more than to pack what a small step has changed, so one worker packs several of those.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.builder.store.workers.jobs import DiffBlobsJob
from husk.errors import SystemFault
from husk.storage.blobs import BlobStore
from husk.storage.layers.diff_records import Packing
from husk.storage.layers.directories import Directories
from husk.storage.workers.answers import Blobs, Failed
from husk.storage.workers.handle import Worker
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import UpperBlob

# Packing reads, hashes and writes: two keep the disk and two processors busy.
_PACKED_AT_ONCE = 2
_SMALL = 256 << 10
_MOST_TOGETHER = 16


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
