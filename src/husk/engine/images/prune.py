"""Which images does nobody need, and how much comes free when they go?"""

import logging
from dataclasses import dataclass, field

from husk.engine.clock import parse_timestamp
from husk.engine.filters import Filters
from husk.engine.images.listing import created_ns
from husk.engine.images.model import Image, Removal
from husk.engine.images.remove import Remover
from husk.engine.images.store import ImageStore
from husk.errors import HuskError

FILTERS = ("dangling", "label", "label!", "until")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Pruned:
    removals: list[Removal] = field(default_factory=list)
    reclaimed: int = 0


class Pruner:
    def __init__(self, store: ImageStore, remover: Remover) -> None:
        self._store = store
        self._remover = remover

    async def prune(self, filters: Filters) -> Pruned:
        """Remove what no container uses: images without a tag, or with `dangling=false` all of them."""
        dangling = filters.boolean("dangling", True)
        untils = [moment for text in filters.get("until") if (moment := parse_timestamp(text)) is not None]
        result = Pruned()
        for image in list(self._store.index):
            if (
                self._store.index.get(image.id) is not None
                and self._is_unused(image, dangling)
                and not any(created_ns(image) > moment for moment in untils)
                and filters.matches_labels(image.config.labels)
            ):
                await self._remove(image, result)
        self._store.events.publish("image", "prune", "", {"reclaimed": str(result.reclaimed)})
        return result

    def _is_unused(self, image: Image, dangling: bool) -> bool:
        if self._store.index.children(image) or any(c.image_id == image.id for c in self._store.containers()):
            return False
        return not dangling or all(name.digest for name in self._store.index.names(image))

    async def _remove(self, image: Image, result: Pruned) -> None:
        sizes = {layer.chain_id: layer.size for layer in self._store.layers.all()}
        try:
            # By its id and with force: an image that is not used goes with all its names.
            removals = await self._remover.remove(image.id, force=True, noprune=False)
        except HuskError as error:
            log.info("image %s is not pruned: %s", image.id, error.message)
            return
        result.removals += removals
        result.reclaimed += sum(sizes.get(removal.deleted, 0) for removal in removals)
