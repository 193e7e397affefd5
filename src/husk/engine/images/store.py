"""The store that all work with images shares: records, blobs and layers, and the one judgement of what nobody needs.

Pull, load, commit and the others each take an `ImageStore` and add to it or remove from it. Whatever work relies on
before a record names it is pinned; whoever lets go of something calls `release`, which removes what is then nobody's.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager

import msgspec

from husk.engine.images.catalog import IMAGE, INDEX, ImageCatalog
from husk.engine.images.held import KIND as HELD
from husk.engine.images.held import HeldLayers
from husk.engine.model.container import KIND as CONTAINER
from husk.engine.model.container import Container
from husk.engine.model.events import Events
from husk.engine.model.image import Image
from husk.registry.reference import Reference
from husk.storage.blobs import BlobStore
from husk.storage.layers.store import KIND as LAYER
from husk.storage.layers.store import LayerStore

log = logging.getLogger(__name__)


class Pins:
    """Layers (by chain id) and blobs that work under way relies on: they must stay although no image names them yet."""

    def __init__(self) -> None:
        self._pins: Counter[str] = Counter()

    @asynccontextmanager
    async def hold(self, names: Iterable[str]) -> AsyncIterator[None]:
        held = list(names)
        self.add(held)
        try:
            yield
        finally:
            self.drop(held)

    def add(self, names: Iterable[str]) -> None:
        self._pins.update(names)

    def drop(self, names: Iterable[str]) -> None:
        """As often as they were added."""
        self._pins.subtract(names)
        self._pins += Counter()

    def __contains__(self, name: str) -> bool:
        return self._pins[name] > 0


# What became of layers in pushes.
PACKED = "packed-layer"
IMAGE_USERS = (IMAGE, INDEX, LAYER, CONTAINER, HELD)
"""The kinds of records that need layers and blobs."""


def _nobody() -> frozenset[str]:
    return frozenset()


class ImageStore(msgspec.Struct, frozen=True):
    """Everything that images consist of, and who uses it."""

    catalog: ImageCatalog
    blobs: BlobStore
    layers: LayerStore
    containers: Callable[[], Iterable[Container]]
    events: Events
    unreadable: Callable[[], Collection[str]] = _nobody
    """Records that may need layers and blobs, though nobody can tell which: while there are such, all stay."""
    pins: Pins = msgspec.field(default_factory=Pins)
    held: HeldLayers | None = None
    """Layers that the cache of builds needs."""

    async def release(self, chain: Iterable[str], content: Iterable[str] = ()) -> list[str]:
        """Remove those of these layers and blobs that nothing uses; the chain ids of the layers that went."""
        for digest in set(content) - {""} if not self.unreadable() else ():
            # Judged anew for each: while one goes, somebody may have come to need the next.
            if not self._needs_blob(digest):
                await self.blobs.remove(digest)
        return [
            chain_id
            for chain_id in reversed(list(dict.fromkeys(chain)))
            if not self._needs_layer(chain_id) and await self.layers.remove(chain_id, self._needs_layer)
        ]

    def _needs_blob(self, digest: str) -> bool:
        return digest in self.pins or self.catalog.names_content(digest) or self.layers.owns(digest)

    def _needs_layer(self, chain_id: str) -> bool:
        return (
            chain_id in self.pins
            or (self.held is not None and chain_id in self.held)
            or bool(self.unreadable())
            or any(chain_id in image.chain_ids for image in self.catalog)
            or any(chain_id in container.used_layers for container in self.containers())
        )

    def tell(self, action: str, image: Image, name: str = "") -> None:
        """Publish what has happened to an image, with the labels by which clients may choose it."""
        self.events.publish("image", action, image.id, {"name": name or image.id}, image.config.labels)

    def tell_of_transfer(self, action: str, name: Reference, image: Image | None) -> None:
        """Publish that something came or went under a name; `image` is what it is here, if it is."""
        labels = image.config.labels if image is not None else None
        self.events.publish("image", action, name.familiar, {"name": name.familiar_name}, labels)

    def layer_elements(self) -> frozenset[str]:
        """The layers of all images, as stacks of builds name them."""
        return frozenset(f"layer:{chain_id}" for image in self.catalog for chain_id in image.chain_ids)

    async def collect(self) -> None:
        """At start: drop what a pull, commit or removal that was cut off has left behind."""
        if self.unreadable():
            log.warning("layers and blobs that nothing seems to use stay while records of images cannot be read")
            return
        used = {chain_id for image in self.catalog for chain_id in image.chain_ids}
        used |= {chain_id for container in self.containers() for chain_id in container.used_layers}
        used |= self.held.all if self.held is not None else frozenset()
        for layer in self.layers.all():
            if layer.chain_id not in used:
                await self.layers.remove(layer.chain_id, self._needs_layer)
        await self.blobs.sweep(self.catalog.content() | self.layers.blobs())
