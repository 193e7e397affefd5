"""The layers of an image, or of a cache, are fetched: several at a time, each hashed and unpacked while it arrives.

Layers arrive in any order and are put on top of each other from the base up. Those who want the same layer at one
moment share one download, which ends when the last of them has gone; one that stalls or fails is given up for the next
client's own, which may be from another registry. Whoever calls pins the chain before.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from msgspec import Struct, structs

from husk.engine.images.limiter import Limiter
from husk.engine.images.make import chain_ids
from husk.engine.images.singleflight import PATIENCE, Listeners, Report, SingleFlight
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Progress
from husk.errors import InvalidParameter
from husk.registry.manifest import Descriptor
from husk.storage.layers.ingest import Unpacked

Again = Callable[[int, float, str], None]
OpenBlob = Callable[[Descriptor, Again], AsyncGenerator[bytes, None]]
"""The bytes of a blob, wherever it is; it is told when it has to be tried again."""


class WantedLayer(Struct, frozen=True):
    descriptor: Descriptor
    diff_id: str


class LayerFetcher:
    def __init__(self, store: ImageStore, slots: Limiter, patience: float = PATIENCE) -> None:
        """`slots` are those of all downloads of the daemon; `patience` is how many seconds a shared one may stall."""
        self._store = store
        self._slots = slots
        self._downloads = SingleFlight(patience)

    async def has(self, chain: Sequence[str]) -> bool:
        return all([await self._store.layers.sound(chain_id) for chain_id in chain])

    async def fetch(self, wanted: Sequence[WantedLayer], blobs: OpenBlob, report: Report) -> None:
        """All of a chain that is not here, base first."""
        chain = chain_ids([layer.diff_id for layer in wanted])
        missing = []
        for layer, chain_id, parent in zip(wanted, chain, ["", *chain], strict=False):
            known = await self._store.layers.sound(chain_id)
            report(Progress(status="Already exists" if known else "Pulling fs layer", id=_short(layer.descriptor)))
            if not known:
                missing.append((layer, chain_id, parent))

        async def fetch(layer: WantedLayer, chain_id: str, parent: str) -> None:
            name = _short(layer.descriptor)

            async def work(tell: Listeners) -> None:
                if not await self._store.layers.sound(chain_id):
                    await self._add(layer, parent, blobs, tell)

            # Another client's blob of the same layer may have another digest, hence another name.
            await self._downloads.join(chain_id, work, lambda told: report(structs.replace(told, id=name)))
            report(Progress(status="Pull complete", id=name))

        try:
            async with asyncio.TaskGroup() as group:
                for one in missing:
                    group.create_task(fetch(*one))
        except BaseExceptionGroup as failures:
            # One layer's failure cancels its siblings; the client wants that one failure.
            raise failures.exceptions[0] from None

    async def _add(self, layer: WantedLayer, parent: str, blobs: OpenBlob, report: Listeners) -> None:
        """Download a layer and put it on top of `parent`, whose own download began before."""
        below = self._downloads.task(parent)
        async with self._slots:
            unpacked = await self._download(layer.descriptor, blobs, report)
        try:
            if unpacked.diff_id != layer.diff_id:
                raise InvalidParameter(
                    f"layer {layer.descriptor.digest} does not have the content that the image's configuration names"
                )
            # Outside the slots: all of them could wait for one that has none.
            if below is not None:
                await asyncio.wait({below})
        except BaseException:
            await self._store.layers.discard(unpacked)
            raise
        size = layer.descriptor.size
        report(Progress(status="Extracting", id=_short(layer.descriptor), current=size, total=size))
        await self._store.layers.commit(unpacked, parent)

    async def _download(self, descriptor: Descriptor, blobs: OpenBlob, report: Listeners) -> Unpacked:
        name = _short(descriptor)

        def again(tries: int, seconds: float, why: str) -> None:
            report(Progress(status=f"Retrying in {max(1, round(seconds))} seconds", id=name))

        async with self._store.layers.ingest(descriptor.digest, descriptor.media_type) as ingest:
            received = 0
            async with aclosing(blobs(descriptor, again)) as chunks:
                while (chunk := await _next(chunks, report)) is not None:
                    await ingest.write(chunk)
                    received += len(chunk)
                    report(Progress(status="Downloading", id=name, current=received, total=descriptor.size))
            report(Progress(status="Verifying Checksum", id=name))
            unpacked = await ingest.finish()
        report(Progress(status="Download complete", id=name))
        return unpacked


async def _next(chunks: AsyncGenerator[bytes, None], listeners: Listeners) -> bytes | None:
    with listeners.expecting():
        return await anext(chunks, None)


def _short(descriptor: Descriptor) -> str:
    return descriptor.digest.removeprefix("sha256:")[:12]
