"""`docker image prune`: the images that nobody needs, and how much comes free when they go."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from husk.engine.images.listing import created_ns
from husk.engine.images.remove import Remover
from husk.engine.images.store import ImageStore
from husk.engine.model.filters import Filters
from husk.engine.model.image import Image, Removal
from husk.errors import HuskError

FILTERS = ("dangling", "label", "label!", "until")

log = logging.getLogger(__name__)


class Pruned(msgspec.Struct):
    removals: list[Removal] = msgspec.field(default_factory=list)
    reclaimed: int = 0


class Pruner:
    def __init__(self, store: ImageStore, remover: Remover) -> None:
        self._store = store
        self._remover = remover

    async def prune(self, filters: Filters) -> Pruned:
        """Remove what no container uses: images without a tag, or with `dangling=false` all of them."""
        dangling = filters.boolean("dangling", True)
        until = filters.until()
        result = Pruned()

        def meant(image: Image) -> bool:
            old = until is None or created_ns(image) <= until
            return old and filters.matches_labels(image.config.labels)

        for image in self._store.catalog.shown():
            if self._store.catalog.get(image.id) is not None and self._is_unused(image, dangling) and meant(image):
                # By its id and with force: an image that is not used goes with all its names.
                await self._remove(partial(self._remover.remove, image.id, force=True, noprune=False), result)
        for index in self._store.catalog.nameless():
            if (
                (default := self._store.catalog.default_of(index)) is not None
                and self._store.catalog.names(default)
                and meant(default)
            ):
                # The image that stands for it has other names; what only the index needs can go.
                await self._remove(partial(self._remover.remove_index, index), result)
        self._store.events.publish("image", "prune", "", {"reclaimed": str(result.reclaimed)})
        return result

    def _is_unused(self, image: Image, dangling: bool) -> bool:
        together = {each.id for each in self._store.catalog.together(image)}
        if any(other.parent in together for other in self._store.catalog):
            return False
        if any(container.uses(together) for container in self._store.containers()):
            return False
        return not dangling or all(name.digest for name in self._store.catalog.names(image))

    async def _remove(self, work: Callable[[], Awaitable[list[Removal]]], result: Pruned) -> None:
        sizes = {layer.chain_id: layer.size for layer in self._store.layers.all()}
        try:
            removals = await work()
        except HuskError as error:
            log.info("an image is not pruned: %s", error.message)
            return
        result.removals += removals
        result.reclaimed += sum(sizes.get(removal.deleted, 0) for removal in removals)
