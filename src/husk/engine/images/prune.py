"""`docker image prune`: the images that nobody needs, and how much comes free when they go."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from husk.engine.images.listing import created_ns
from husk.engine.images.remove import ImageRemover
from husk.engine.images.store import ImageStore
from husk.engine.model.container import Container
from husk.engine.model.filters import Filters
from husk.engine.model.image import Image, Removal
from husk.errors import HuskError, InvalidParameter
from husk.registry import reference as references
from husk.registry.reference import Reference

FILTERS = ("dangling", "label", "label!", "until")

log = logging.getLogger(__name__)


class PrunedImages(msgspec.Struct):
    removals: list[Removal] = msgspec.field(default_factory=list)
    reclaimed: int = 0


class Pruner:
    def __init__(self, store: ImageStore, remover: ImageRemover) -> None:
        self._store = store
        self._remover = remover

    async def prune(self, filters: Filters) -> PrunedImages:
        """Remove what no container uses: images without a tag, or with `dangling=false` all of them.

        Then images that stay, for a container or for an image made from them, lose the tags that no container names.
        """
        dangling = filters.boolean("dangling", True)
        until = filters.until()
        result = PrunedImages()

        def meant(image: Image) -> bool:
            old = until is None or created_ns(image) <= until
            return old and filters.matches_labels(image.config.labels)

        for image in self._store.catalog.shown():
            if self._store.catalog.get(image.id) is None or not meant(image):
                continue
            if self._is_unused(image, dangling):
                # By its id and with force: an image that is not used goes with all its names.
                await self._remove(partial(self._remover.remove, image.id, force=True, noprune=False), result)
            elif not dangling and (names := self._unused_names(image)):
                await self._remove(partial(self._remover.untag, image, names), result)
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

    def _unused_names(self, image: Image) -> list[Reference]:
        """The names of an image that stays, but those that containers were made from; a tag is left if there are such.

        Digests stay with a tag of their repository.
        """
        together = {each.id for each in self._store.catalog.together(image)}
        users = [container for container in self._store.containers() if container.uses(together)]
        said = {name for container in users for text in _images_of(container) for name in _meanings(text)}
        names = self._store.catalog.names(image)
        tags = [name for name in names if not name.digest]
        kept = [tag for tag in tags if tag in said] or (tags[-1:] if users else [])
        repositories = {tag.name for tag in kept}
        return [n for n in names if n not in kept and n not in said and not (n.digest and n.name in repositories)]

    async def _remove(self, work: Callable[[], Awaitable[list[Removal]]], result: PrunedImages) -> None:
        sizes = {layer.chain_id: layer.size for layer in self._store.layers.all()}
        try:
            removals = await work()
        except HuskError as error:
            log.info("an image is not pruned: %s", error.message)
            return
        result.removals += removals
        result.reclaimed += sum(sizes.get(removal.deleted, 0) for removal in removals)


def _images_of(container: Container) -> list[str]:
    """Return the names that a container's client gave the images that the container was made of and mounts."""
    return [container.config.image, *(point.name for point in container.mounts if point.type == "image")]


def _meanings(text: str) -> list[Reference]:
    """The names that a client's text may stand for; none if it is an id or nonsense."""
    try:
        name = references.parse(text).tagged()
    except InvalidParameter:
        return []
    parts = Reference(name.domain, name.path, tag=name.tag), Reference(name.domain, name.path, digest=name.digest)
    return [part for part in parts if part.tag or part.digest]
