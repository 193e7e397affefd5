"""What can be done with images? The engine's answer to every image operation of the edge."""

from collections.abc import Callable, Iterable, Sequence

from husk.engine.clock import now_ns, parse_rfc3339, rfc3339
from husk.engine.containers.model import Container
from husk.engine.events import Events
from husk.engine.filters import Filters
from husk.engine.images.index import ImageIndex
from husk.engine.images.listing import matches, select
from husk.engine.images.model import Image, Removal
from husk.engine.images.pull import Puller, Report, parse_pull_reference
from husk.engine.images.remove import Remover
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import Platform, normalize, parse_platform
from husk.registry.reference import Reference
from husk.storage.layers import LayerStore


class Images:
    def __init__(
        self,
        *,
        index: ImageIndex,
        layers: LayerStore,
        puller: Puller,
        remover: Remover,
        registry: RegistryClient,
        events: Events,
        containers: Callable[[], Iterable[Container]],
    ) -> None:
        self._index = index
        self._layers = layers
        self._puller = puller
        self._remover = remover
        self._registry = registry
        self._events = events
        self._containers = containers

    def __len__(self) -> int:
        return len(self._index)

    # --- looking

    def find(self, reference: str) -> Image:
        return self._index.find(reference)

    def find_for_container(self, reference: str, platform: str) -> Image:
        image = self._index.find(reference)
        if platform:
            wanted = normalize(parse_platform(platform))
            actual = normalize(Platform(image.architecture, image.os, image.variant))
            if (wanted.os, wanted.architecture) != (actual.os, actual.architecture):
                raise NotFound(
                    f"image with reference {reference} was found but does not provide the specified platform "
                    f"({wanted.os}/{wanted.architecture})"
                )
        return image

    def tags(self, image: Image, patterns: Sequence[str] = ()) -> list[str]:
        """The image's names with a tag; with patterns those that match one of them, as in a filtered list."""
        return [name.familiar for name in self._names(image, patterns) if not name.digest]

    def digests(self, image: Image, patterns: Sequence[str] = ()) -> list[str]:
        return [name.familiar for name in self._names(image, patterns) if name.digest]

    def _names(self, image: Image, patterns: Sequence[str]) -> list[Reference]:
        return [name for name in self._index.names(image) if not patterns or any(matches(name, p) for p in patterns)]

    def listing(self, all: bool, filters: Filters) -> list[Image]:
        return select(self._index, all, filters)

    def containers_of(self, image: Image) -> int:
        return sum(1 for container in self._containers() if container.image_id == image.id)

    def descendants(self, reference: str) -> set[str]:
        """Ids of the image and of all images made from it; empty if there is no such image."""
        try:
            return self._index.descendants(self._index.find(reference))
        except NotFound:
            return set()

    def size_of_layers(self, chain_ids: Iterable[str]) -> int:
        return sum(layer.size for chain_id in chain_ids if (layer := self._layers.get(chain_id)))

    def shared_size(self, image: Image) -> int:
        """Bytes of the image's layers that other images use too."""
        others = {chain_id for other in self._index if other.id != image.id for chain_id in other.chain_ids}
        return self.size_of_layers(chain_id for chain_id in image.chain_ids if chain_id in others)

    # --- changing

    async def pull(self, image: str, tag: str, platform: str, auth: Credentials | None, progress: Report) -> None:
        reference = parse_pull_reference(image, tag)
        if platform:
            parse_platform(platform)
        await self._puller.pull(reference, platform, auth, progress)

    async def tag(self, reference: str, repo: str, tag: str) -> None:
        image = self._index.find(reference)
        if not repo:
            raise InvalidParameter("invalid reference format: repository name is empty")
        name = references.parse(repo)
        if name.digest:
            raise InvalidParameter("refusing to create a tag with a digest reference")
        name = (name.with_tag(tag) if tag else name).tagged()
        image.last_tagged = rfc3339(now_ns())
        await self._index.add(image, name)
        self._events.publish("image", "tag", image.id, {"name": name.familiar})

    async def remove(self, reference: str, force: bool, noprune: bool) -> list[Removal]:
        return await self._remover.remove(reference, force, noprune)

    async def login(self, credentials: Credentials) -> str:
        """An identity token, or empty when name and password simply are right."""
        return await self._registry.login(credentials)


def created_seconds(image: Image) -> int:
    return parse_rfc3339(image.created) // 10**9 if image.created else 0
