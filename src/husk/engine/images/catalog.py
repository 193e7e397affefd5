"""The images that are there, and their names. All in memory, each change written through to the store.

A name points to an image, or to an image index, which has the same image for several platforms. An index is shown as
one image, its default: the one of its images that this host runs best. Images that no name and no index shows
otherwise are found by their id, and live as long as their index.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from husk.engine.images.index import Candidate, ImageIndex, default_image, merged, platform_of, without
from husk.engine.model.image import Image
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.reference import Reference
from husk.storage.state.store import Change, StateStore
from husk.text.patterns import pattern

# An index is called so on disk since the first release.
IMAGE, INDEX, NAME = "image", "image-family", "image-name"
_HEX = pattern(r"[0-9a-f]{1,64}")
_ID = pattern(r"[0-9a-f]{64}")


class FoundImage(NamedTuple):
    """The meaning of a client's text: one image, and the index that the text stands for, if it does."""

    image: Image
    image_index: ImageIndex | None


class ImageCatalog:
    """Names are full references: `docker.io/library/busybox:latest` or `docker.io/library/busybox@sha256:…`."""

    def __init__(self, state: StateStore, settle: Callable[[], Awaitable[None]] | None = None) -> None:
        """`settle` puts contents on the disk; it is called before records name them."""
        self._state = state
        self._settle = settle
        self._changing = asyncio.Lock()
        # How often it has changed: what was made of it is as it was while this is.
        self.revision = 0
        self._images = state.records(IMAGE, Image)
        self._indexes = state.records(INDEX, ImageIndex)
        self._names = state.read(NAME, bytes.decode)
        self._defaults: dict[str, str] = {}
        self._find_defaults(*self._indexes.values())

    def __iter__(self) -> Iterator[Image]:
        return iter(list(self._images.values()))

    def __len__(self) -> int:
        return len(self._images)

    # --- looking

    def get(self, image_id: str) -> Image | None:
        return self._images.get(image_id)

    def by_name(self, name: Reference) -> Image | None:
        target = self.target(name)
        return self._images.get(self._defaults.get(target, target))

    def target(self, name: Reference) -> str:
        """Return the target of a name: an image's id or an index's digest, or nothing."""
        return self._names.get(str(name), "")

    def index_by_name(self, name: Reference) -> ImageIndex | None:
        return self._indexes.get(self.target(name))

    def find(self, text: str) -> Image:
        return self.look_up(text).image

    def look_up(self, text: str) -> FoundImage:
        """By full id, name, digest reference, or unique leading part of an id, in that order."""
        if (image := self._images.get(text) or self._images.get("sha256:" + text)) is not None:
            return self._by_id(image)
        index = self._indexes.get(text) or self._indexes.get("sha256:" + text)
        if index is not None and (default := self.default_of(index)) is not None:
            return FoundImage(default, index)
        if _ID.fullmatch(text):
            raise NotFound(f"No such image: sha256:{text}")
        reference = references.parse(text).tagged()
        if (found := self._named(reference)) is not None:
            return found
        prefix = text.removeprefix("sha256:")
        if _HEX.fullmatch(prefix):
            matches = [i for i in self._images if i.startswith("sha256:" + prefix)]
            if len(matches) == 1:
                return self._by_id(self._images[matches[0]])
            if matches:
                raise InvalidParameter(f"multiple IDs found with provided prefix: {text}")
        raise NotFound(f"No such image: {reference.familiar}")

    def _named(self, reference: Reference) -> FoundImage | None:
        names = [reference]
        if reference.digest:
            # name:tag@digest and name@<image id> mean the image of that digest.
            names.append(Reference(reference.domain, reference.path, digest=reference.digest))
        for name in names:
            if (image := self.by_name(name)) is not None:
                return FoundImage(image, self.index_by_name(name))
        image = self._images.get(reference.digest)
        known = image is not None and any(n.name == reference.name for n in self.names(image))
        return self._by_id(image) if image is not None and known else None

    def _by_id(self, image: Image) -> FoundImage:
        """An id means the index that it is shown for, unless the image has a name of its own."""
        shown = self.shown_by(image)
        return FoundImage(image, shown[0] if shown and not self.is_named(image) else None)

    def is_named(self, thing: Image | ImageIndex) -> bool:
        """Return True if a name points to this very image or index."""
        return self.is_target(thing.id if isinstance(thing, Image) else thing.digest)

    def is_target(self, digest: str) -> bool:
        """Return True if a name points to the image or index of this digest."""
        return digest in self._names.values()

    def names(self, image: Image) -> list[Reference]:
        """All references that an image is shown with, tags before digests, in order."""
        return self._names_of({image.id, *(index.digest for index in self.shown_by(image))})

    def known_as(self, image: Image) -> list[Reference]:
        """All references through which an image can be had, also those that show another platform of it."""
        return self._names_of({image.id, *(index.digest for index in self.indexes_of(image))})

    def _names_of(self, targets: set[str]) -> list[Reference]:
        own = sorted(name for name, target in self._names.items() if target in targets)
        parsed = [references.parse(name) for name in own]
        return [r for r in parsed if not r.digest] + [r for r in parsed if r.digest]

    def tags_of(self, repository: Reference) -> list[Reference]:
        """All tagged names of a repository, in order."""
        head = f"{repository.name}:"
        return [references.parse(name) for name in sorted(self._names) if name.startswith(head) and "@" not in name]

    def shown(self) -> list[Image]:
        """The images of a list: all but those that only another platform's image stands for."""
        inner = {image_id for index in self._indexes.values() for image_id in index.images}
        inner -= set(self._defaults.values()) | set(self._names.values())
        return [image for image in self._images.values() if image.id not in inner]

    def shown_by(self, image: Image) -> list[ImageIndex]:
        """The indexes that an image stands for."""
        return [self._indexes[digest] for digest, default in self._defaults.items() if default == image.id]

    def index(self, digest: str) -> ImageIndex | None:
        return self._indexes.get(digest)

    def default_of(self, index: ImageIndex) -> Image | None:
        """The image that stands for an index."""
        return self._images.get(self._defaults.get(index.digest, ""))

    def nameless(self) -> list[ImageIndex]:
        """The indexes that no name points to."""
        named = set(self._names.values())
        return [index for index in self._indexes.values() if index.digest not in named]

    def indexes_of(self, image: Image) -> list[ImageIndex]:
        """All indexes that an image is in."""
        return [index for index in self._indexes.values() if image.id in index.images]

    def candidates(self, found: FoundImage) -> list[Candidate]:
        """List the images that can be chosen from: all of an index that are here, or one image."""
        image, index = found
        return self._offered(index) if index is not None else [(platform_of(image), image)]

    def _offered(self, index: ImageIndex) -> list[Candidate]:
        here = [(member.platform, self._images.get(member.image)) for member in index.manifests]
        return [(platform or platform_of(image), image) for platform, image in here if image is not None]

    def images_of(self, index: ImageIndex) -> list[Image]:
        """The images of an index that are here, in the order of its index."""
        return [image for image_id in dict.fromkeys(index.images) if (image := self._images.get(image_id))]

    def together(self, image: Image) -> list[Image]:
        """An image and all those that it is shown for."""
        others = [other for index in self.shown_by(image) for other in self.images_of(index)]
        return list({each.id: each for each in (image, *others)}.values())

    def children(self, image: Image) -> list[Image]:
        return [other for other in self._images.values() if other.parent == image.id]

    def descendants(self, image: Image) -> set[str]:
        found, edge = {image.id}, [image]
        while edge:
            for child in self.children(edge.pop()):
                if child.id not in found:
                    found.add(child.id)
                    edge.append(child)
        return found

    def content(self) -> set[str]:
        """The digests of all blobs that records name; layers own theirs themselves."""
        named = {digest for image in self._images.values() for digest in image.content}
        return named.union(*(index.content for index in self._indexes.values())) - {""}

    def names_content(self, digest: str) -> bool:
        """Return True if a record names this blob."""
        return (
            digest in self._images
            or any(digest == image.manifest or digest in image.packed for image in self._images.values())
            or any(digest in index.content for index in self._indexes.values())
        )

    # --- changing

    @contextlib.asynccontextmanager
    async def _change(self) -> AsyncIterator[None]:
        """One at a time; noted when memory says what the store does."""
        async with self._changing:
            try:
                yield
            finally:
                self.revision += 1

    async def add(self, image: Image, *names: Reference, index: ImageIndex | None = None) -> None:
        """Write an image and point names to it, or to its index, at once."""
        await self.add_all([image], names, index)

    async def add_all(self, images: Sequence[Image], names: Iterable[Reference], index: ImageIndex | None) -> None:
        """Write images and the index that they belong to, and point names to that, at once."""
        if self._settle is not None:
            await self._settle()
        async with self._change():
            if index is not None and (known := self._indexes.get(index.digest)) is not None:
                index = merged(known, index)
            target = index.digest if index is not None else images[0].id
            named = {str(name): target for name in names}
            changes = [Change(IMAGE, image.id, msgspec.json.encode(image)) for image in images]
            changes += [Change(INDEX, index.digest, msgspec.json.encode(index))] if index is not None else []
            changes += [Change(NAME, name, target.encode()) for name in named]

            def believe() -> None:
                self._images.update({image.id: image for image in images})
                if index is not None:
                    self._indexes[index.digest] = index
                    self._find_defaults(index)
                self._names.update(named)

            # Nobody was promised the time at which an image got the name once more that it has.
            lazy = index is None and self._is_known(images, named)
            await self._state.commit(*changes, lazy=lazy, then=believe)

    def _is_known(self, images: Sequence[Image], named: Mapping[str, str]) -> bool:
        """Return True if all of this is here already, but for the times at which images were tagged."""
        for image in images:
            known = self._images.get(image.id)
            if known is None or structs.replace(known, last_tagged=image.last_tagged) != image:
                return False
        return all(self._names.get(name) == target for name, target in named.items())

    async def forget_names(self, *names: Reference) -> None:
        def believe() -> None:
            for name in names:
                self._names.pop(str(name), None)

        async with self._change():
            await self._state.settle(*(Change(NAME, str(name), None) for name in names), then=believe)

    async def delete(self, image: Image) -> None:
        await self.delete_all([image.id])

    async def delete_all(
        self,
        image_ids: Iterable[str],
        indexes: Iterable[ImageIndex] = (),
        stays: Callable[[str], bool] = lambda digest: False,
    ) -> set[str]:
        """Forget images and indexes with all their names; an index of which no image stays goes too.

        `stays` is asked when nobody else changes anything any more: somebody may have come to need an image meanwhile.
        Returns the ids that went.
        """
        async with self._change():
            going = {image_id for image_id in image_ids if not stays(image_id)}
            whole = {index.digest for index in indexes if not stays(index.digest)}
            if not going and not whole:
                return going
            others = [index for index in self._indexes.values() if index.digest not in whole]
            touched = [without(index, going) for index in others if going.intersection(index.images)]
            whole |= {index.digest for index in touched if not index.images}
            kept = [index for index in touched if index.images]
            names = [name for name, target in self._names.items() if target in going | whole]
            changes = [Change(IMAGE, image_id, None) for image_id in going]
            changes += [Change(INDEX, digest, None) for digest in whole]
            changes += [Change(INDEX, index.digest, msgspec.json.encode(index)) for index in kept]
            changes += [Change(NAME, name, None) for name in names]

            def believe() -> None:
                for digest in going | whole:
                    self._images.pop(digest, None)
                    self._indexes.pop(digest, None)
                    self._defaults.pop(digest, None)
                self._indexes.update({index.digest: index for index in kept})
                self._find_defaults(*kept)
                for name in names:
                    self._names.pop(name, None)

            await self._state.settle(*changes, then=believe)
            return going

    async def dissolve(self, index: ImageIndex) -> None:
        """Make single images of an index; its names go to its default."""
        async with self._change():
            default = self._defaults.get(index.digest, "")
            names = [name for name, target in self._names.items() if target == index.digest]
            changes = [Change(NAME, name, default.encode() if default else None) for name in names]

            def believe() -> None:
                self._defaults.pop(index.digest, None)
                del self._indexes[index.digest]
                for name in names:
                    self._names[name] = default
                    if not default:
                        del self._names[name]

            await self._state.settle(Change(INDEX, index.digest, None), *changes, then=believe)

    def _find_defaults(self, *indexes: ImageIndex) -> None:
        for index in indexes:
            if (default := default_image(self._offered(index))) is not None:
                self._defaults[index.digest] = default.id
