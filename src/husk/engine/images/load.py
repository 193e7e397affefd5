"""`docker load`: the file is read once, as it arrives; each layer is unpacked while it streams by.

What a file of the archive is, is told only by documents that may come last. So small JSON files are kept in memory and
everything that looks like a layer is unpacked at once, to be put on top of its parent when the documents have told the
order. What no image turns out to need is dropped again.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing

import msgspec
from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.compression import compression_of
from husk.engine.images.archive import ArchivedImage, ArchivedIndex, digest_at, link_target, read_archive
from husk.engine.images.index import ImageIndex, suits
from husk.engine.images.make import chain_ids, compose_manifest, image_over, read_config_aside, require_depth
from husk.engine.images.singleflight import Report
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image, ImageConfig, Progress
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import DOCKER_LAYER, OCI_LAYER, Platform, normalize
from husk.registry.reference import Reference, digest_of
from husk.storage.layers.ingest import Ingest, Unpacked
from husk.storage.layers.store import Layer
from husk.storage.sources import read_pieces
from husk.storage.tar.entry import BLOCK, HARD_LINK, REGULAR, SYMLINK, TarEntry, TarError, clean_name
from husk.storage.tar.flow import TarFlow
from husk.storage.tar.header import is_tar
from husk.storage.tar.inflate import inflate

LARGEST_DOCUMENT = 8 << 20
# All documents, with what it takes to remember them and the names of files and links.
LARGEST_DOCUMENTS = 64 << 20
_NAMED, _UNPACKED = 256, 4096
# Entries that are read before others have their turn: four MiB of headers come at once out of a few bytes.
_AT_ONCE = 256
# Workers that still unpack while the next layer arrives already.
CONCURRENT_LAYERS = 3

_MEDIA_TYPES = {"": DOCKER_LAYER, "gzip": f"{DOCKER_LAYER}.gzip", "zstd": f"{OCI_LAYER}+zstd"}


class Loader:
    def __init__(self, store: ImageStore, largest_documents: int = LARGEST_DOCUMENTS) -> None:
        self._store, self._largest = store, largest_documents

    async def load(
        self, chunks: AsyncIterator[bytes], platforms: Sequence[Platform], quiet: bool, report: Report
    ) -> None:
        """Load all images of an archive, compressed or not; with `platforms` only those of them."""
        reading = _Reading(self._store, (lambda progress: None) if quiet else report, self._largest)
        try:
            async with aclosing(inflate(chunks)) as plain:
                try:
                    await reading.read(TarFlow(plain))
                except TarError as error:
                    raise InvalidParameter(str(error)) from error
            parents: dict[str, str] = {}
            # What they say may take a while to read, and nothing changes them any more.
            found = await asyncio.to_thread(read_archive, reading.documents, reading.has, platforms)
            for described in found:
                images = await self._add(described, platforms, reading, report)
                parents |= {image.id: "" for image in images}
                if isinstance(described, ArchivedImage):
                    parents[images[0].id] = described.parent
            await self._link(parents)
        finally:
            await asyncio.shield(reading.close())
            await asyncio.shield(self._store.release(reading.relied_on, []))

    async def _add(
        self,
        described: ArchivedImage | ArchivedIndex,
        platforms: Sequence[Platform],
        reading: "_Reading",
        report: Report,
    ) -> list[Image]:
        """Add one image, or all platforms of one, and name it."""
        group = described if isinstance(described, ArchivedIndex) else None
        members = [described] if isinstance(described, ArchivedImage) else list(described.images.values())
        names = described.names
        # Of an index, what is not for these platforms was left out before.
        read = [await self._read(member, platforms if group is None else (), reading) for member in members]
        chain = [chain_id for each in read for chain_id in chain_ids(each.document.rootfs.diff_ids)]
        content = [digest_of(each.config) for each in read]
        content += [digest_of(each.member.manifest[0]) for each in read if each.member.manifest]
        content += group.content if group is not None else []
        try:
            async with self._store.pins.hold([*chain, *content]):
                images = [await self._make(each, reading) for each in read]
                index = await self._record_index(group, members, images) if group is not None else None
                self._tell_of_former(index.digest if index is not None else images[0].id, names, report)
                await self._store.catalog.add_all(images, names, index)
        except BaseException:
            await asyncio.shield(self._store.release(chain, content))
            raise
        shown = (self._store.catalog.default_of(index) if index is not None else None) or images[0]
        for name in names:
            report(Progress(stream=f"Loaded image: {name.familiar}\n"))
        if not names:
            report(Progress(stream=f"Loaded image ID: {shown.id}\n"))
        self._store.tell("load", shown)
        return images

    async def _link(self, parents: Mapping[str, str]) -> None:
        """Note which image of an archive was made from which, as far as their histories agree with what it says."""
        for image_id, parent_id in parents.items():
            image, parent = self._store.catalog.get(image_id), self._store.catalog.get(parent_id)
            if image is None or parent is None or parent_id not in parents or image.parent:
                continue
            if len(image.history) > 0 and image.history[:-1] == parent.history:
                await self._store.catalog.add(replace(image, parent=parent_id))

    async def _read(self, member: ArchivedImage, platforms: Sequence[Platform], reading: "_Reading") -> "_Read":
        config = reading.documents.get(reading.resolve(member.config))
        if config is None:
            raise NotFound(f"the archive does not have the configuration {member.config}")
        document = await read_config_aside(config)
        own = Platform(document.architecture, document.os, document.variant)
        if platforms and not any(suits(own, wanted) for wanted in platforms):
            wanted = ", ".join(str(normalize(platform)) for platform in platforms)
            raise NotFound(f"requested platform ({wanted}) not found: the image is for {normalize(own)}")
        expected, given = len(document.rootfs.diff_ids), len(member.layers)
        if expected != given:
            raise InvalidParameter(f"invalid manifest, layers length mismatch: expected {expected}, got {given}")
        require_depth(expected)
        return _Read(member, config, document)

    async def _make(self, read: "_Read", reading: "_Reading") -> Image:
        diff_ids = read.document.rootfs.diff_ids
        layers: list[Layer] = []
        for path, chain_id, diff_id in zip(read.member.layers, chain_ids(diff_ids), diff_ids, strict=True):
            parent = layers[-1].chain_id if layers else ""
            known = self._store.layers.get(chain_id) if await self._store.layers.sound(chain_id) else None
            layers.append(known or await self._put(reading, path, diff_id, parent))
        # An image that is here already stays as it is: a registry may know it by its present manifest.
        here = self._store.catalog.get(digest_of(read.config))
        if here is not None and await self._has_documents(here, read, layers):
            return here
        blobs, manifest = self._store.blobs, read.member.manifest
        made = await image_over(blobs, read.config, read.document, layers, manifest=manifest)
        if here is not None:
            return replace(made, parent=here.parent, last_tagged=here.last_tagged)
        return made

    async def _has_documents(self, image: Image, read: "_Read", layers: list[Layer]) -> bool:
        """Write an image's documents anew from the archive; True if its configuration and manifest are whole then."""
        blobs, size = self._store.blobs, len(read.config)
        await blobs.put(read.config)
        brought = [compose_manifest(image.id, size, layers)[0], compose_manifest(image.id, size, layers, oci=True)[0]]
        brought += [read.member.manifest[0]] if read.member.manifest else []
        for body in brought:
            if digest_of(body) == image.manifest:
                await blobs.put(body)
                return True
        try:
            return digest_of(await blobs.read(image.manifest)) == image.manifest
        except NotFound:
            return False

    async def _record_index(
        self, group: ArchivedIndex, members: Sequence[ArchivedImage], images: Sequence[Image]
    ) -> ImageIndex:
        """Keep the documents of an index; its record, with all images and attachments that came."""
        ids = {member.config: image.id for member, image in zip(members, images, strict=True)}
        await self._store.blobs.put(group.document)
        entries = []
        for entry in group.index.manifests:
            if (member := group.images.get(entry.digest)) is not None:
                entry = replace(entry, image=ids[member.config])
                if member.manifest is not None:
                    await self._store.blobs.put(member.manifest[0])
            elif (attached := group.attached.get(entry.digest)) is not None:
                for body in attached.values():
                    await self._store.blobs.put(body)
                entry = replace(entry, blobs=[digest for digest in attached if digest != entry.digest])
            entries.append(entry)
        return replace(group.index, manifests=entries)

    def _tell_of_former(self, target: str, names: list[Reference], report: Report) -> None:
        for name in names:
            former = self._store.catalog.by_name(name)
            if former is not None and self._store.catalog.target(name) != target:
                report(
                    Progress(
                        stream=f"The image {name.familiar} already exists, renaming the old one with ID {former.id} "
                        "to empty string\n"
                    )
                )

    async def _put(self, reading: "_Reading", path: str, diff_id: str, parent: str) -> Layer:
        """Put the layer that came as `path` on top of `parent`."""
        unpacked = await reading.take(path)
        if unpacked is None:
            unpacked = await self._unpack_again(reading.resolve(path), diff_id)
        if unpacked.diff_id != diff_id:
            await self._store.layers.discard(unpacked)
            raise InvalidParameter(f"invalid diffID for layer {path}: expected {diff_id!r}, got {unpacked.diff_id!r}")
        return await self._store.layers.commit(unpacked, parent)

    async def _unpack_again(self, path: str, diff_id: str) -> Unpacked:
        """A layer that the store has on top of another parent is made anew from its blob."""
        digest = digest_at(path)
        known = next((la for la in self._store.layers.all() if la.diff_id == diff_id or la.blob == digest), None)
        if known is None:
            raise NotFound(f"the archive does not have the layer {path}")
        async with (
            self._store.layers.ingest(known.blob, known.media_type) as ingest,
            aclosing(read_pieces(self._store.blobs.path(known.blob))) as pieces,
        ):
            async for piece in pieces:
                await ingest.write(piece)
            return await ingest.finish()


class _Read(msgspec.Struct, frozen=True):
    """An image of the archive whose configuration was read."""

    member: ArchivedImage
    config: bytes
    document: ImageConfig


class _Reading:
    """An archive that streams by: its documents, its links, and its layers on their way into the store."""

    def __init__(self, store: ImageStore, report: Report, largest: int) -> None:
        self._largest = largest
        self.documents: dict[str, bytes] = {}
        self.relied_on: list[str] = []
        self._store = store
        self._held = AsyncExitStack()
        self._report = report
        self._links: dict[str, str] = {}
        self._known: set[str] = set()
        self._unpacking: dict[str, asyncio.Task[Unpacked]] = {}
        self._slots = asyncio.Semaphore(CONCURRENT_LAYERS)
        self._tasks = Tasks()
        self._size = 0

    async def read(self, flow: TarFlow) -> None:
        count = 0
        while (entry := await flow.next()) is not None:
            if (count := count + 1) % _AT_ONCE == 0:
                await asyncio.sleep(0)
            path = clean_name(entry.name).decode("utf-8", "replace")
            if entry.kind in (SYMLINK, HARD_LINK):
                self._remember(_NAMED + len(path) + len(entry.link))
                self._links[path] = link_target(path, entry.link.decode("utf-8", "replace"), entry.kind == HARD_LINK)
            elif entry.kind == REGULAR and await self._rely_on(digest_at(path)):
                self._remember(_NAMED + len(path))
                self._known.add(path)
            elif entry.kind == REGULAR:
                await self._file(path, entry, flow)
        await flow.drain()

    def _remember(self, size: int) -> None:
        self._size += size
        if self._size > self._largest:
            raise InvalidParameter("the archive has more than 64 MiB of documents and names")

    async def _rely_on(self, blob: str | None) -> bool:
        """Keep a layer from going before the images that it is for are there; True if the store has it whole."""
        chain = self._store.layers.of_blob(blob) if blob else []
        if not chain:
            return False
        await self._held.enter_async_context(self._store.pins.hold(chain))
        self.relied_on += chain
        return all([await self._store.layers.sound(chain_id) for chain_id in chain])

    def has(self, path: str) -> bool:
        """Return True if a file came with the archive, or the store has had it as a layer."""
        path = self.resolve(path)
        return path in self.documents or path in self._unpacking or path in self._known

    def resolve(self, path: str) -> str:
        for _ in range(8):
            if path not in self._links:
                break
            path = self._links[path]
        return path

    async def take(self, path: str) -> Unpacked | None:
        """The layer that came as `path`, for whoever asks first; None afterwards, or when the store has had it."""
        task = self._unpacking.pop(self.resolve(path), None)
        return await task if task is not None else None

    async def close(self) -> None:
        """Drop what nobody took."""
        await self._held.aclose()
        await self._tasks.cancel_all()
        for task in self._unpacking.values():
            if not task.cancelled() and task.exception() is None:
                await self._store.layers.discard(task.result())

    async def _file(self, path: str, entry: TarEntry, flow: TarFlow) -> None:
        head = await flow.read(BLOCK)
        compression = compression_of(head)
        if compression or is_tar(head) or head == bytes(BLOCK):
            await self._layer(path, entry, head, compression, flow)
        elif head[:1] in (b"{", b"[") and entry.size <= LARGEST_DOCUMENT:
            self._remember(_NAMED + len(path) + entry.size)
            document = head + await flow.read(entry.size)
            _check_digest(digest_at(path), digest_of(document))
            self.documents[path] = document

    async def _layer(self, path: str, entry: TarEntry, head: bytes, compression: str, flow: TarFlow) -> None:
        name, received = _short(path), 0
        self._remember(_UNPACKED + len(path))

        async def arriving() -> AsyncGenerator[bytes | memoryview, None]:
            nonlocal received
            yield head
            received = len(head)
            async for piece in flow.pieces():
                yield piece
                received += len(piece)
                self._report(Progress(status="Loading layer", id=name, current=received, total=entry.size))

        digest = digest_at(path)
        pieces: AsyncGenerator[bytes | memoryview, None] | AsyncGenerator[bytes, None] = arriving()
        if compression not in _MEDIA_TYPES:
            # xz and bzip2 are no form of a layer that registries know: it is kept as a plain tar.
            pieces, digest = inflate(_verified(pieces, digest)), None
        await self._slots.acquire()
        try:
            async with AsyncExitStack() as stack:
                kind = _MEDIA_TYPES.get(compression, DOCKER_LAYER)
                ingest = await stack.enter_async_context(self._store.layers.ingest(digest, kind))
                async with aclosing(pieces):
                    async for piece in pieces:
                        await ingest.write(piece)
                finishing = self._finish(ingest, stack.pop_all())
        except BaseException:
            self._slots.release()
            raise
        self._unpacking[path] = self._tasks.spawn(finishing, f"load {path}", awaited=True)

    async def _finish(self, ingest: Ingest, stack: AsyncExitStack) -> Unpacked:
        try:
            async with stack:
                return await ingest.finish()
        finally:
            self._slots.release()


async def _verified(pieces: AsyncIterator[bytes | memoryview], digest: str | None) -> AsyncIterator[bytes]:
    """The same pieces; an error at their end if they do not have the digest that their place in the archive tells."""
    hashed = hashlib.sha256()
    async for piece in pieces:
        hashed.update(piece)
        yield bytes(piece)
    _check_digest(digest, "sha256:" + hashed.hexdigest())


def _check_digest(expected: str | None, actual: str) -> None:
    """A file that is named by its digest has it, or the archive is damaged."""
    if expected not in (None, actual):
        raise InvalidParameter(f"the archive's file {expected} has the digest {actual}")


def _short(path: str) -> str:
    """Return a layer's name in the progress: the beginning of the hexadecimal part of its path."""
    parts = [part.removesuffix(".tar") for part in path.split("/")]
    return next((part[:12] for part in reversed(parts) if len(part) == 64), parts[-1][:12])
