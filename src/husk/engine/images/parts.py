"""The parts of images: blobs and layers, records, and the way to registries."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from husk.config import Config
from husk.engine.base import Base, as_far_as_possible
from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.held import HeldLayers
from husk.engine.images.late_registry import LateRegistry
from husk.engine.images.limiter import Limiter
from husk.engine.images.service import Images
from husk.engine.images.store import IMAGE_USERS, ImageStore
from husk.engine.model.container import Container
from husk.storage.blobs import BlobStore
from husk.storage.layers.power import PowerNote
from husk.storage.layers.recover import recover
from husk.storage.layers.store import LayerStore
from husk.storage.workers.nursery import Nursery


class ImageParts(NamedTuple):
    service: Images
    store: ImageStore
    registry: LateRegistry
    downloads: Limiter
    uploads: Limiter
    power_held: bool
    """Since the last daemon ran."""

    async def restored(self) -> None:
        """The containers are restored: clear away what none of them uses, and make the first image."""
        await as_far_as_possible(self.store.collect(), "what is left of images")
        await as_far_as_possible(self.service.collect(), "what is left of pushes")
        if not len(self.service):
            # A door: the first image, which only the first start of a data root makes.
            from husk.engine.images.bootstrap import make_busybox

            await as_far_as_possible(make_busybox(self.store), "the image busybox:latest")

    def reload(self, config: Config) -> None:
        """Take over what may change while the daemon runs."""
        self.registry.reload(config)
        self.downloads.resize(config.max_concurrent_downloads)
        self.uploads.resize(config.max_concurrent_uploads)


async def open_images(
    base: Base,
    nursery: Nursery,
    containers: Callable[[], Iterable[Container]],
    mounted: Callable[[str], bool],
    stack: AsyncExitStack,
) -> ImageParts:
    """`mounted` tells of a layer, by its chain id, if the root of a container is mounted on it."""
    config, state = base.config, base.state
    blobs = await asyncio.to_thread(BlobStore.open, config.data_root / "blobs")
    stack.callback(blobs.close)
    layers = await LayerStore.open(config.data_root / "layers", state, blobs, nursery, config.max_layer_size, mounted)
    stack.push_async_callback(layers.close)
    power_held = await _recover(config, layers, blobs)
    registry = LateRegistry(config)
    stack.push_async_callback(registry.close)
    catalog, aside = ImageCatalog(state, blobs.settle), partial(state.aside, *IMAGE_USERS)
    store = ImageStore(catalog, blobs, layers, containers, base.events, aside, held=HeldLayers(state))
    downloads, uploads = Limiter(config.max_concurrent_downloads), Limiter(config.max_concurrent_uploads)
    service = Images(store, registry.client, state, downloads, uploads, base.watch)
    return ImageParts(service, store, registry, downloads, uploads, power_held)


async def _recover(config: Config, layers: LayerStore, blobs: BlobStore) -> bool:
    """Make good what the last daemon, or the power, left half done; return True if the power has held."""
    power = PowerNote(config.exec_root, config.data_root)
    held = await asyncio.to_thread(power.held)
    await recover(layers, blobs, power_held=held)
    await as_far_as_possible(asyncio.to_thread(power.write), "note of this boot")
    return held
