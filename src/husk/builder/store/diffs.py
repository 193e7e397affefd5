"""The changes that steps of a build have made: the diffs of builds, and the stacks that diffs make.

A file system in a build is a *stack*: diffs on top of each other, the base first, written with spaces between them.
`layer:<chain id>` is a layer of an image, `diff:<id>` is what one step has changed: the upper directory of an overlay.
The empty stack is an empty file system.

The life of a diff:

1. `workspace` gives a directory to write to, on top of a stack. If the block is left, all of it goes.
2. `keep` makes it a diff: one record in the state store. From now on it never changes. Its files are on the disk some
   seconds later (`Writeback`), and then the record says so: `synced`.
3. `chain_ids` packs each diff of a stack as the tar that registries know, and remembers its digest; one that is small,
   and known to become a layer, is packed when it is kept. `layers` makes the stack a chain of layers that an image can
   have: the layer gets the blob, and shares the diff's directory as it is.
4. `remove`, when no record of the build's cache names it any more. Layers that were made of it stay.

After a power cut diffs whose files were not synced are dropped when the store is opened: a cache may be lost, and
nothing but the diff could give its files again. Whoever has named a diff asks `has` after a start.
"""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

import msgspec
from msgspec import structs

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.builder.store.diff_packing import Packer, SmallDiffs
from husk.builder.store.workspaces import Workspace, look_like
from husk.errors import NotFound
from husk.kernel.trees import tree_size
from husk.storage.blobs import BlobStore
from husk.storage.layers.chain import chain_id
from husk.storage.layers.diff_records import DiffRecord, Packing
from husk.storage.layers.directories import DIFF
from husk.storage.layers.ingest import Unpacked
from husk.storage.layers.store import DIFF_MEDIA_TYPE, Layer, LayerStore
from husk.storage.sources import read_pieces
from husk.storage.state.store import Change, StateStore
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Blob

KIND = DIFF
_LAYER, _DIFF = "layer:", "diff:"

log = logging.getLogger(__name__)


class _Part(msgspec.Struct, frozen=True):
    """One element of a stack as a layer's content; without a directory it is to be unpacked."""

    diff_id: str
    blob: str
    blob_size: int
    media_type: str
    size: int
    directory: str


class DiffStore:
    """All diffs of builds; their directories are beside those of layers."""

    def __init__(self, layers: LayerStore, state: StateStore, blobs: BlobStore, nursery: Nursery) -> None:
        self._layers = layers
        self.directories = layers.directories
        self._state = state
        self._blobs = blobs
        self._records: dict[str, DiffRecord] = {}
        self.listeners: list[Callable[[str], None]] = []  # they hear of each diff that is removed
        self._lock = asyncio.Lock()
        self._tasks = Tasks()
        self._packer = Packer(nursery, blobs, layers.directories, self._remember, self._tasks)
        self._small = SmallDiffs(blobs)
        self.directories.listen(self._synced)

    @classmethod
    async def open(
        cls, layers: LayerStore, state: StateStore, blobs: BlobStore, nursery: Nursery, *, power_held: bool = False
    ) -> Self:
        """Load the records. Unless the power is known to have held (`PowerNote`), those not synced are dropped."""
        store = cls(layers, state, blobs, nursery)
        store._records = state.records(KIND, DiffRecord)
        gone = [
            diff.id
            for diff in store._records.values()
            if not (diff.synced or power_held) or not store.path(diff.directory).is_dir()
        ]
        if gone:
            log.warning("%d steps of builds were not on the disk when the power failed: they run again", len(gone))
            await store.remove(_DIFF + diff for diff in gone)
        for diff in store._records.values():
            if not diff.synced:
                store.directories.sync_later(diff.directory)
        return store

    async def close(self) -> None:
        """Before the layer store is closed, which syncs what is not synced yet."""
        await self._tasks.join()
        self._small.close()

    def has(self, element: str) -> bool:
        """Tell if this element of a stack (`diff:…` or `layer:…`) is there."""
        kind, name = _parsed(element)
        return name in self._records if kind == _DIFF else self._layers.get(name) is not None

    def size(self, element: str) -> int:
        """The bytes of the files that this element brings."""
        kind, name = _parsed(element)
        return self._diff(name).size if kind == _DIFF else self._layer(name).size

    def all(self) -> list[str]:
        """The elements of all diffs that there are."""
        return [_DIFF + name for name in self._records]

    def shared(self) -> frozenset[str]:
        """The diffs that are layers, too."""
        layers = {layer.directory for layer in self._layers.all()}
        return frozenset(_DIFF + name for name, diff in self._records.items() if diff.directory in layers)

    def disk_size(self) -> int:
        """The bytes of the disk that all of this lies on; it blocks."""
        found = os.statvfs(self.directories.path)
        return found.f_blocks * found.f_frsize

    def path(self, directory: str) -> Path:
        return self.directories.path / directory

    def lower(self, stack: str) -> list[str]:
        """The directories of a stack as overlayfs wants them: topmost first. The empty stack has an empty one."""
        names = dict.fromkeys(reversed(self._names(stack)))
        # What comes twice counts where it is uppermost, and overlayfs takes nothing twice.
        directories = [str(self.path(name)) for name in names]
        return directories or [str(self.directories.empty)]

    @contextlib.asynccontextmanager
    async def held(self, *stacks: str) -> AsyncIterator[None]:
        """Keep the files of these stacks where they are, though all their records be removed meanwhile."""
        names = [name for stack in stacks for name in self._names(stack)]
        for name in names:
            self.directories.hold(name)
        try:
            yield
        finally:
            for name in names:
                self.directories.release(name)

    @contextlib.asynccontextmanager
    async def workspace(self, stack: str) -> AsyncIterator[Workspace]:
        """A place to write on top of a stack, whose files stay as long as the block lasts."""
        async with self.held(stack):
            lower = self.lower(stack)
            directory = self.directories.make()
            space = Workspace(self, lower, directory)
            try:
                look_like(space.upper, Path(lower[0]) if stack else None)
                yield space
            finally:
                self._leave(space)

    @contextlib.asynccontextmanager
    async def reopened(self, element: str) -> AsyncIterator[Workspace]:
        """A place to write that has the files of a diff, which is none any more. Only for one that is `alone`."""
        diff = self._diff(_parsed(element)[1])
        self.directories.hold(diff.directory)
        space = Workspace(self, [], diff.directory)
        try:
            await self.remove([element])
            yield space
        finally:
            self._leave(space)

    def make_work(self, directory: str) -> Path:
        return self.directories.make_work(directory)

    def _leave(self, space: Workspace) -> None:
        if space.has_work:
            self.directories.remove_work(space.directory)
        if not space.kept:
            self.directories.release(space.directory)

    def alone(self, element: str) -> bool:
        """Tell if this is a diff whose directory nobody else names or holds, and that is part of no image."""
        kind, name = _parsed(element)
        diff = self._records.get(name) if kind == _DIFF else None
        return diff is not None and not diff.packings and self.directories.holders(diff.directory) == 1

    @property
    def blob_directory(self) -> Path:
        """The directory of the tars of diffs, which are named by the digits of their digests."""
        return self._blobs.directory

    def make_blob_file(self) -> Path:
        """An empty file for the tar of a diff, to be adopted or unlinked."""
        return self._blobs.make_temporary()

    @contextlib.contextmanager
    def blob_file(self, wanted: bool) -> Iterator[str]:
        """The path of an empty file for the tar of a diff, until the block is left; "" if it is not wanted."""
        blob_file = self.make_blob_file() if wanted else None
        try:
            yield str(blob_file or "")
        finally:
            if blob_file is not None:
                blob_file.unlink(missing_ok=True)

    def adopt(self, blob_file: str, blob: Blob) -> None:
        """Such a file has become this blob."""
        self._blobs.adopt(Path(blob_file), blob.digest)

    async def keep(
        self, space: Workspace, size: int | None = None, packed: Blob | None = None, layered: bool = False
    ) -> str:
        if space.kept:
            return ""
        if size is None and layered and (small := await self._small.pack(space.upper)) is not None:
            size, packed = small
        if size is None:
            size = await threads.trees(tree_size, space.upper)
        packings = {_key(None): Packing(packed.digest, packed.size)} if packed is not None else {}
        diff = DiffRecord(id=secrets.token_hex(8), directory=space.directory, size=size, packings=packings)
        try:
            await self._tasks.to_its_end(self._add(space, diff), "keep a diff")
        except asyncio.CancelledError:
            if space.kept:  # and nobody will ever know by which name
                await self.remove([_DIFF + diff.id])
            raise
        return _DIFF + diff.id

    async def remove(self, elements: Iterable[str]) -> None:
        """Forget diffs that nobody's record names any more; nothing happens for those that are not there."""
        wanted = {name for kind, name in map(_parsed, elements) if kind == _DIFF}
        await self._tasks.to_its_end(self._remove(wanted), "remove diffs")

    async def chain_ids(self, stack: str, clamp: int | None = None) -> list[str]:
        """The chain ids that a stack's layers have, base first; what has no blob yet is packed.

        With a `clamp` (SOURCE_DATE_EPOCH, in seconds) no file of the diffs has a later time in the archive.
        """
        async with self.held(stack):
            return _chained(await self._parts(stack, clamp))

    async def layers(self, stack: str, clamp: int | None = None) -> list[Layer]:
        """Make a stack a chain of layers that an image can have, base first.

        Nobody needs those layers yet, so that whoever removes an image with the same may remove them: the caller holds
        them before, until his image's record names them.

            async with image_store.pins.hold(await diffs.chain_ids(stack)):
                layers = await diffs.layers(stack)
                ...
        """
        async with self.held(stack):
            made: list[Layer] = []
            chain = _chained(await self._parts(stack, clamp))
            for element, wanted in zip(stack.split(), chain, strict=True):
                layer = self._layers.get(wanted)
                if layer is None or not await self._layers.sound(wanted):
                    layer = await self._commit(element, clamp, made[-1].chain_id if made else "")
                made.append(layer)
            return made

    # --- diffs

    async def _add(self, space: Workspace, diff: DiffRecord) -> None:
        await self._state.commit(_record(diff), lazy=True)
        self._records[diff.id] = diff
        space.kept = True
        self.directories.sync_later(diff.directory)

    async def _remove(self, names: set[str]) -> None:
        async with self._lock:
            gone = [diff for name in names if (diff := self._records.pop(name, None)) is not None]
            # Never refused: what only deletes is written as soon as the disk lets us.
            await self._state.commit(*(Change(KIND, diff.id, None) for diff in gone), lazy=True)
        for diff in gone:
            for tell in self.listeners:
                tell(_DIFF + diff.id)
            self.directories.release(diff.directory)
            for packing in diff.packings.values():
                # Asked for each: a layer with the same, which any step that did nothing has, may come meanwhile.
                if not self._layers.owns(packing.digest):
                    await self._blobs.remove(packing.digest)

    async def _synced(self, directories: frozenset[str]) -> None:
        """The files of these are on the disk: their records may say so."""
        async with self._lock:
            synced = [diff for diff in self._records.values() if diff.directory in directories and not diff.synced]
            await self._replace(*(structs.replace(diff, synced=True) for diff in synced))

    async def _replace(self, *diffs: DiffRecord) -> None:
        """With the lock: so that no record comes back that is being removed."""
        await self._state.commit(*(_record(diff) for diff in diffs), lazy=True)
        self._records.update({diff.id: diff for diff in diffs})

    def _diff(self, name: str) -> DiffRecord:
        if (diff := self._records.get(name)) is None:
            raise NotFound(f"what a step of a build has changed is not there any more: {_DIFF}{name}")
        return diff

    def _layer(self, chain: str) -> Layer:
        if (layer := self._layers.get(chain)) is None:
            raise NotFound(f"layer does not exist: {chain}")
        return layer

    def _names(self, stack: str) -> list[str]:
        """The directories of a stack, base first."""
        return [
            self._diff(name).directory if kind == _DIFF else self._layer(name).directory
            for kind, name in map(_parsed, stack.split())
        ]

    # --- layers

    async def _parts(self, stack: str, clamp: int | None) -> list[_Part]:
        names = dict.fromkeys(name for kind, name in map(_parsed, stack.split()) if kind == _DIFF)
        self._packer.begin([self._diff(name) for name in names], _key(clamp))
        return await asyncio.gather(*(self._part(element, clamp) for element in stack.split()))

    async def _part(self, element: str, clamp: int | None) -> _Part:
        kind, name = _parsed(element)
        if kind == _LAYER:
            layer = self._layer(name)
            return _Part(layer.diff_id, layer.blob, layer.blob_size, layer.media_type, layer.size, layer.directory)
        diff = self._diff(name)
        packing = await self._packer.packed(diff, _key(clamp))
        # The files of the directory have times of their own, which a clamped archive has not.
        directory = diff.directory if clamp is None else ""
        return _Part(packing.digest, packing.digest, packing.size, DIFF_MEDIA_TYPE, diff.size, directory)

    async def _remember(self, made: Mapping[str, Packing], clamp: str) -> None:
        async with self._lock:
            there = [diff for name in made if (diff := self._records.get(name)) is not None]
            await self._replace(
                *(structs.replace(diff, packings={**diff.packings, clamp: made[diff.id]}) for diff in there)
            )

    async def _commit(self, element: str, clamp: int | None, parent: str) -> Layer:
        # Once more: a blob that no layer needed any more may have been removed meanwhile.
        part = await self._part(element, clamp)
        if not part.directory:
            return await self._layers.commit(await self._unpack(part), parent)
        blob_file = self._blobs.lend(part.blob)
        self.directories.hold(part.directory)
        unpacked = Unpacked(
            blob=part.blob,
            blob_size=part.blob_size,
            diff_id=part.diff_id,
            size=part.size,
            media_type=part.media_type,
            staging=part.directory,
            blob_file=blob_file,
            # It has looked right from the beginning, and may be on top of other layers as well.
            describes_root=True,
        )
        return await self._layers.commit(unpacked, parent)

    async def _unpack(self, part: _Part) -> Unpacked:
        async with self._layers.ingest(part.blob, part.media_type, limited=False) as ingest:
            async with contextlib.aclosing(read_pieces(self._blobs.path(part.blob))) as pieces:
                async for piece in pieces:
                    await ingest.write(piece)
            return await ingest.finish()


def _parsed(element: str) -> tuple[str, str]:
    for kind in (_LAYER, _DIFF):
        if element.startswith(kind):
            return kind, element.removeprefix(kind)
    raise ValueError(f"{element!r} is no element of a stack")


def _key(clamp: int | None) -> str:
    """Return the key of a packing among those of its diff."""
    return "" if clamp is None else str(clamp)


def _chained(parts: list[_Part]) -> list[str]:
    chain = [""]
    for part in parts:
        chain.append(chain_id(chain[-1], part.diff_id))
    return chain[1:]


def _record(diff: DiffRecord) -> Change:
    return Change(KIND, diff.id, msgspec.json.encode(diff))
