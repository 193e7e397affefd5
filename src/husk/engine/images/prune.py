"""Which images does nobody need, and how much comes free when they go?"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from husk.engine.clock import parse_timestamp
from husk.engine.containers.model import Container
from husk.engine.events import Events
from husk.engine.filters import Filters
from husk.engine.images.index import ImageIndex
from husk.engine.images.listing import created_ns
from husk.engine.images.model import Image, Removal
from husk.engine.images.remove import Remover
from husk.errors import HuskError
from husk.storage.layers import LayerStore

FILTERS = ("dangling", "label", "label!", "until")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Pruned:
    removals: list[Removal] = field(default_factory=list)
    reclaimed: int = 0


class Pruner:
    def __init__(
        self,
        *,
        index: ImageIndex,
        layers: LayerStore,
        remover: Remover,
        containers: Callable[[], Iterable[Container]],
        events: Events,
    ) -> None:
        self._index = index
        self._layers = layers
        self._remover = remover
        self._containers = containers
        self._events = events

    async def prune(self, filters: Filters) -> Pruned:
        """Remove what no container uses: images without a tag, or with `dangling=false` all of them."""
        dangling = filters.boolean("dangling", True)
        untils = [moment for text in filters.get("until") if (moment := parse_timestamp(text)) is not None]
        result = Pruned()
        for image in list(self._index):
            if (
                self._index.get(image.id) is not None
                and self._is_unused(image, dangling)
                and not any(created_ns(image) > moment for moment in untils)
                and filters.matches_labels(image.config.labels)
            ):
                await self._remove(image, result)
        self._events.publish("image", "prune", "", {"reclaimed": str(result.reclaimed)})
        return result

    def _is_unused(self, image: Image, dangling: bool) -> bool:
        if self._index.children(image) or any(c.image_id == image.id for c in self._containers()):
            return False
        return not dangling or all(name.digest for name in self._index.names(image))

    async def _remove(self, image: Image, result: Pruned) -> None:
        sizes = {layer.chain_id: layer.size for layer in self._layers.all()}
        try:
            # By its id and with force: an image that is not used goes with all its names.
            removals = await self._remover.remove(image.id, force=True, noprune=False)
        except HuskError as error:
            log.info("image %s is not pruned: %s", image.id, error.message)
            return
        result.removals += removals
        result.reclaimed += sum(sizes.get(removal.deleted, 0) for removal in removals)
