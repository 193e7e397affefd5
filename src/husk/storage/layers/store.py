"""The store of layers: all that are there, and the making of new ones.

The life of a layer:

1. `ingest` gives it a directory below `l/` and a worker process; the pieces of its blob go in as they arrive.
2. `finish` tells its digests. The directory is complete and belongs to nobody yet; a start of the daemon removes it.
3. `commit` puts it on top of its parent: the blob appears under its digest, then one record in the state store makes
   the layer exist. From now on it never changes. (`discard` instead, if it is not wanted after all.) The blob is on
   the disk after `BlobStore.settle`, which comes before the record of the image that it is for.
4. Its files are on the disk some seconds later (`Writeback`), and then the record says so: `synced`. A start that finds
   a record without that unpacks the layer again from its blob (`recover`), for the power may have failed in between.
5. `remove` deletes the record, then moves the directory to `trash/`, where it is deleted in the background, and removes
   the blob when no other layer has the same.

One of an earlier daemon is looked at before it is used for another image (`sound`): whoever brings the content of a
damaged layer anew mends it.

Whatever has no record is rubbish, so that a daemon killed at any instruction leaves nothing that the next start would
not remove. Directories have short names, because all those of an image must fit into one mount call.
"""

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Self, TypeVar

import msgspec
from msgspec import structs

from husk.aio.tasks import Tasks
from husk.errors import DiskFault, NotFound, SystemFault
from husk.storage.blobs import BlobStore, validate_digest
from husk.storage.layers.chain import chain_id
from husk.storage.layers.directories import LAYER, Directories
from husk.storage.layers.ingest import Ingest, Unpacked
from husk.storage.layers.soundness import blob_fault, tree_fault
from husk.storage.state.store import Change, StateStore
from husk.storage.workers.answers import Done, Failed
from husk.storage.workers.handle import Worker
from husk.storage.workers.jobs import DiffJob, UnpackJob
from husk.storage.workers.nursery import Nursery

KIND = LAYER
DIFF_MEDIA_TYPE = "application/vnd.docker.image.rootfs.diff.tar"

T = TypeVar("T")

log = logging.getLogger(__name__)


class Layer(msgspec.Struct, frozen=True):
    """One layer at its place in a chain; `size` counts the files' bytes, `blob_size` those that came in.

    `synced` says that its files are known to be on the disk, not its blob alone.
    """

    chain_id: str
    diff_id: str
    parent: str
    directory: str
    size: int
    blob: str
    blob_size: int
    media_type: str
    synced: bool = True


class LayerStore:
    """All layers of a daemon, below one directory."""

    def __init__(
        self,
        directories: Directories,
        state: StateStore,
        blobs: BlobStore,
        nursery: Nursery,
        max_size: int = 0,
        mounted: Callable[[str], bool] = lambda chain: False,
    ) -> None:
        """`max_size` is what a layer may have when it is unpacked; 0 is no limit.

        `mounted` tells whether a layer's directory is in use, so that it must stay.
        """
        self._mounted = mounted
        self._looked_at: dict[str, bool] = {}
        self._nursery = nursery
        self._max_size = max_size
        self.directories = directories
        self._state = state
        self._blobs = blobs
        self._records: dict[str, Layer] = {}
        # The chain ids of all layers that have a blob: an image may have the same layer many times.
        self._of_blob: dict[str, set[str]] = {}
        self._coming: frozenset[str] = frozenset()  # the blob of the layer whose record is being written
        # How often they have changed.
        self.revision = 0
        self._lock = asyncio.Lock()
        self._tasks = Tasks()
        directories.listen(self._synced)

    @classmethod
    async def open(
        cls,
        root: Path,
        state: StateStore,
        blobs: BlobStore,
        nursery: Nursery,
        max_size: int = 0,
        mounted: Callable[[str], bool] = lambda chain: False,
    ) -> Self:
        """Load the records and sweep what has none; before layers are used, `recover` sees to those in doubt."""
        store = cls(Directories.open(root, state), state, blobs, nursery, max_size, mounted)
        for layer in state.records(KIND, Layer).values():
            store._keep(layer)
            if not store.path(layer).exists():
                log.error("the directory of layer %s is missing: images with it cannot be used", layer.chain_id)
        return store

    async def close(self) -> None:
        """Stop deleting, the rest is deleted after the next start; and wait until the files of layers are synced."""
        await self._tasks.join()
        await self.directories.close()

    def get(self, chain: str) -> Layer | None:
        return self._records.get(chain)

    async def sound(self, chain: str) -> bool:
        """Tell if there is such a layer and it is whole, before it is used again. One of this daemon's own is."""
        layer = self._records.get(chain)
        if layer is None:
            return False
        if (known := self._looked_at.get(chain)) is None:
            fault = await asyncio.to_thread(self._fault, layer)
            if self._records.get(chain) is not layer:
                return await self.sound(chain)
            known = self._looked_at[chain] = not fault
            if fault:
                log.error("layer %s is damaged: %s; whatever brings it again mends it", chain, fault)
        # What containers run on is not exchanged below them.
        return known or self._mounted(chain)

    def _fault(self, layer: Layer) -> str:
        return tree_fault(self.path(layer), layer.size) or blob_fault(
            self._blobs.path(layer.blob), layer.blob, layer.blob_size
        )

    def all(self) -> list[Layer]:
        """As of now: whoever goes through them may remove some."""
        return list(self._records.values())

    def blobs(self) -> set[str]:
        """The digests of the blobs that layers own; `BlobStore.sweep` must keep them."""
        return self._of_blob.keys() | self._coming

    def owns(self, blob: str) -> bool:
        """Tell if this blob is one of `blobs`."""
        return blob in self._of_blob or blob in self._coming

    def of_blob(self, blob: str) -> list[str]:
        """The chain ids of the layers that have this blob."""
        return list(self._of_blob.get(blob, ()))

    def path(self, layer: Layer) -> Path:
        """Return the directory that overlayfs mounts for this layer."""
        return self.directories.path / layer.directory

    def lower(self, chain_ids: Sequence[str]) -> list[str]:
        """The chain's layers (base first) as overlayfs wants them: topmost first."""
        layers = []
        for chain in reversed(chain_ids):
            layer = self._records.get(chain)
            if layer is None:
                raise NotFound(f"layer does not exist: {chain}")
            layers.append(str(self.path(layer)))
        return layers

    def expect(self) -> None:
        """Layers are about to come: what unpacks them may make ready."""
        self._nursery.wake()

    @contextlib.asynccontextmanager
    async def ingest(self, digest: str | None, media_type: str, limited: bool = True) -> AsyncIterator[Ingest]:
        """Take in one layer; if the block is left before `finish` has returned, no trace of it stays.

        Unless it is `limited`, it may be larger than layers may be now.
        """

        expected = "" if digest is None else validate_digest(digest)
        staging, blob_file = self._make_staging()
        try:
            job = self._unpacking(staging, blob_file, expected, self._max_size if limited else 0)
            worker = await Worker.start(self._nursery, job)
        except BaseException:
            self._drop(staging, blob_file)
            raise
        ingest = Ingest(worker, media_type, staging, blob_file)
        with self.directories.writeback.coming():
            try:
                yield ingest
            finally:
                self._end(ingest)

    async def ingest_diff(self, upper: Path) -> Unpacked:
        """Make a layer of what a container changed; its data goes from worker to worker, past the daemon."""

        staging, blob_file = self._make_staging()
        try:
            unpacking = self._unpacking(staging, blob_file, "", self._max_size)
            producer, worker = await Worker.start_pair(self._nursery, DiffJob(str(upper)), unpacking)
        except BaseException:
            self._drop(staging, blob_file)
            raise
        ingest = Ingest(worker, DIFF_MEDIA_TYPE, staging, blob_file)
        try:
            whole = await producer.outcome() == Done()
            if not whole and not isinstance(await worker.outcome(), Failed):
                raise SystemFault(f"reading the changes in {upper} failed: see the daemon's log")
            return await ingest.finish()
        finally:
            producer.stop()
            self._end(ingest)

    async def commit(self, unpacked: Unpacked, parent: str) -> Layer:
        """Put a layer on top of `parent` (a chain id, or ""); if the same is there already, that one is returned."""
        return await self._whole(self._commit(unpacked, parent))

    async def discard(self, unpacked: Unpacked) -> None:
        """Drop a layer that was not committed; nothing happens when it was dropped before."""
        self._drop(unpacked.staging, unpacked.blob_file)

    async def remove(self, chain: str, needed: Callable[[str], bool] = lambda chain: False) -> bool:
        """Remove a layer; False when there is none, or when it is needed.

        A commit of the same layer that has begun is waited for, then `needed` is asked: whoever does not say by then
        that the layer must stay does not find it any more.
        """
        return await self._whole(self._remove(chain, needed))

    async def renew(self, chain: str, unpacked: Unpacked) -> Layer:
        """Give a damaged layer the same content anew, directory and blob; nobody may have it mounted."""
        return await self._whole(self._renew(chain, unpacked))

    async def emptied(self) -> None:
        """Wait until what was thrown away is deleted."""
        await self.directories.emptied()

    def doubt(self, layer: Layer) -> None:
        """Note that the files or the blob of this layer are damaged: whoever brings the layer again mends it."""
        self._looked_at[layer.chain_id] = False

    def sync_later(self, layer: Layer) -> None:
        """Sync the files of a layer whose record does not say that they are, and let it say so."""
        self.directories.sync_later(layer.directory)

    async def _commit(self, unpacked: Unpacked, parent: str) -> Layer:
        async with self._lock:
            if parent and parent not in self._records:
                self._drop(unpacked.staging, unpacked.blob_file)
                raise NotFound(f"layer does not exist: {parent}")
            chain = chain_id(parent, unpacked.diff_id)
            existing = self._records.get(chain)
            if existing is None:
                return await self._take_over(unpacked, chain, parent)
            if await self.sound(chain):
                self._drop(unpacked.staging, unpacked.blob_file)
                return existing
            log.warning("layer %s came again: it is whole now", chain)
            return await self._exchange(existing, unpacked)

    async def _remove(self, chain: str, needed: Callable[[str], bool]) -> bool:
        async with self._lock:
            layer = self._records.get(chain)
            if layer is None or needed(chain):
                return False
            self._forget(layer)
            self.revision += 1
            self._looked_at.pop(chain, None)
            try:
                # Whoever needed it is gone for good: should it come back without its files, the next start removes it.
                await self._state.commit(Change(KIND, chain, None), lazy=True)
            except BaseException:
                self._keep(layer)
                self.revision += 1
                raise
            self.directories.release(layer.directory)
            if not self.owns(layer.blob):
                await self._blobs.remove(layer.blob)
        return True

    async def _whole(self, work: Coroutine[object, object, T]) -> T:
        """Finish `work` though the caller may be cancelled: memory and disk must say the same."""
        return await asyncio.shield(self._tasks.spawn(work, "layers", awaited=True))

    async def _renew(self, chain: str, unpacked: Unpacked) -> Layer:
        async with self._lock:
            old = self._records.get(chain)
            if old is None or old.diff_id != unpacked.diff_id:
                self._drop(unpacked.staging, unpacked.blob_file)
                raise NotFound(f"there is no layer {chain} with this content")
            return await self._exchange(old, unpacked)

    async def _exchange(self, old: Layer, unpacked: Unpacked) -> Layer:
        """Give a layer that images have already new content: it must be on the disk before the old one goes."""
        layer = await self._take_over(unpacked, old.chain_id, old.parent, settled=True)
        self.directories.release(old.directory)
        if not self.owns(old.blob):
            await self._blobs.remove(old.blob)
        return layer

    async def _take_over(self, unpacked: Unpacked, chain: str, parent: str, settled: bool = False) -> Layer:
        """Make what was unpacked the content of a layer, old or new; if it is `settled` it is on the disk at once.

        Else its blob is when an image has it, its files are later. A layer that no image has yet goes at the next
        start, however much of it a power cut has left.
        """
        layer = Layer(
            chain_id=chain,
            diff_id=unpacked.diff_id,
            parent=parent,
            directory=unpacked.staging,
            size=unpacked.size,
            blob=unpacked.blob,
            blob_size=unpacked.blob_size,
            media_type=unpacked.media_type,
            synced=settled,
        )
        self._give_root(layer, unpacked)
        self._coming = frozenset((unpacked.blob,))
        try:
            self._blobs.adopt(unpacked.blob_file, unpacked.blob)
            if settled:
                await self._blobs.settle()
                await self.directories.writeback.settle()
            await self._state.commit(_record(layer), lazy=not settled)
        except DiskFault:
            self._coming = frozenset()
            self.directories.release(unpacked.staging)
            if not self.owns(unpacked.blob):
                await self._blobs.remove(unpacked.blob)
            raise
        finally:
            self._coming = frozenset()
        self._keep(layer)
        self.revision += 1
        self._looked_at[chain] = True
        if not settled:
            self._blobs.settle_ahead()
            self.directories.sync_later(layer.directory)
        return layer

    async def _synced(self, directories: frozenset[str]) -> None:
        """The files of these are on the disk: their records may say so."""
        async with self._lock:
            synced = [
                structs.replace(layer, synced=True)
                for layer in self._records.values()
                if layer.directory in directories and not layer.synced
            ]
            await self._state.commit(*(_record(layer) for layer in synced), lazy=True)
            for layer in synced:
                self._keep(layer)

    def _keep(self, layer: Layer) -> None:
        if (before := self._records.get(layer.chain_id)) is not None and before.blob != layer.blob:
            self._forget(before)
        self._records[layer.chain_id] = layer
        self._of_blob.setdefault(layer.blob, set()).add(layer.chain_id)

    def _forget(self, layer: Layer) -> None:
        del self._records[layer.chain_id]
        same = self._of_blob[layer.blob]
        same.discard(layer.chain_id)
        if not same:
            del self._of_blob[layer.blob]

    def _give_root(self, layer: Layer, unpacked: Unpacked) -> None:
        """The union's root directory looks like the topmost layer's."""
        below = self._records.get(layer.parent)
        if below is not None and not unpacked.describes_root:
            status = self.path(below).stat()
            os.chown(self.path(layer), status.st_uid, status.st_gid)
            os.chmod(self.path(layer), stat.S_IMODE(status.st_mode))

    def _unpacking(self, staging: str, blob_file: Path, expected: str, limit: int) -> UnpackJob:
        return UnpackJob(str(self.directories.path / staging), str(blob_file), expected, limit)

    def _make_staging(self) -> tuple[str, Path]:
        blob_file = self._blobs.make_temporary()
        try:
            return self.directories.make(), blob_file
        except OSError:
            blob_file.unlink()
            raise

    def _end(self, ingest: Ingest) -> None:
        ingest.stop()
        if not ingest.finished:
            self._drop(ingest.staging, ingest.blob_file)

    def _drop(self, staging: str, blob_file: Path) -> None:
        blob_file.unlink(missing_ok=True)
        self.directories.release(staging)


def _record(layer: Layer) -> Change:
    return Change(KIND, layer.chain_id, msgspec.json.encode(layer))
