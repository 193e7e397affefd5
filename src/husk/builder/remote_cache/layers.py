"""Brings layers here that a cache elsewhere has; they stay as long as our own has a record on them."""

from collections.abc import Sequence

from husk.builder.remote_cache.records import RemoteLayer
from husk.builder.solver.interfaces import Watcher
from husk.builder.sources.images import Heard
from husk.engine.images.fetch import OpenBlob, WantedLayer
from husk.engine.images.make import chain_ids
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore


class LayerLoader:
    def __init__(self, images: Images, store: ImageStore) -> None:
        self._images = images
        self._store = store

    async def load(self, layers: Sequence[RemoteLayer], blobs: OpenBlob, watcher: Watcher) -> None:
        wanted = [WantedLayer(layer.descriptor, layer.diff_id) for layer in layers]
        chain = chain_ids([layer.diff_id for layer in layers])
        async with self._store.pins.hold(chain):
            await self._images.fetcher.fetch(wanted, blobs, Heard(watcher).report)
            assert self._store.held is not None
            await self._store.held.add(chain)
