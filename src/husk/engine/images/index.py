"""Which images are there, and under which names? All in memory, each change written through to the store."""

import re
from collections.abc import Iterator

import msgspec

from husk.engine.images.model import Image
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.reference import Reference
from husk.storage.state import Change, StateStore

IMAGE, NAME = "image", "image-name"
_HEX = re.compile(r"[0-9a-f]{1,64}")
_ID = re.compile(r"[0-9a-f]{64}")


class ImageIndex:
    """Names are full references: `docker.io/library/busybox:latest` or `docker.io/library/busybox@sha256:…`."""

    def __init__(self, state: StateStore) -> None:
        self._state = state
        self._images = {key: msgspec.json.decode(body, type=Image) for key, body in state.load(IMAGE).items()}
        self._names = {key: body.decode() for key, body in state.load(NAME).items()}

    def __iter__(self) -> Iterator[Image]:
        return iter(list(self._images.values()))

    def __len__(self) -> int:
        return len(self._images)

    def get(self, image_id: str) -> Image | None:
        return self._images.get(image_id)

    def by_name(self, name: Reference) -> Image | None:
        return self._images.get(self._names.get(str(name), ""))

    def find(self, text: str) -> Image:
        """By full id, name, digest reference, or unique leading part of an id, in that order."""
        if (image := self._images.get(text) or self._images.get("sha256:" + text)) is not None:
            return image
        if _ID.fullmatch(text):
            raise NotFound(f"No such image: sha256:{text}")
        reference = references.parse(text).tagged()
        if (image := self._named(reference)) is not None:
            return image
        prefix = text.removeprefix("sha256:")
        if _HEX.fullmatch(prefix):
            matches = [i for i in self._images if i.startswith("sha256:" + prefix)]
            if len(matches) == 1:
                return self._images[matches[0]]
            if matches:
                raise InvalidParameter(f"multiple IDs found with provided prefix: {text}")
        raise NotFound(f"No such image: {reference.familiar}")

    def _named(self, reference: Reference) -> Image | None:
        if (image := self.by_name(reference)) is not None or not reference.digest:
            return image
        # name:tag@digest and name@<image id> mean the image of that digest.
        plain = Reference(reference.domain, reference.path, digest=reference.digest)
        if (image := self.by_name(plain)) is not None:
            return image
        image = self._images.get(reference.digest)
        return image if image and any(n.name == reference.name for n in self.names(image)) else None

    def names(self, image: Image) -> list[Reference]:
        """All references of an image, tags before digests, in order."""
        own = sorted(name for name, owner in self._names.items() if owner == image.id)
        parsed = [references.parse(name) for name in own]
        return [r for r in parsed if not r.digest] + [r for r in parsed if r.digest]

    def tags_of(self, repository: Reference) -> list[Reference]:
        """All tagged names of a repository, in order."""
        head = f"{repository.name}:"
        return [references.parse(name) for name in sorted(self._names) if name.startswith(head) and "@" not in name]

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
        return {digest for image in self._images.values() for digest in (image.id, image.manifest, image.index)} - {""}

    async def add(self, image: Image, *names: Reference) -> None:
        """Write an image and point names to it, at once."""
        changes = [Change(IMAGE, image.id, msgspec.json.encode(image))]
        changes += [Change(NAME, str(name), image.id.encode()) for name in names]
        await self._state.commit(*changes)
        self._images[image.id] = image
        self._names.update({str(name): image.id for name in names})

    async def forget_names(self, *names: Reference) -> None:
        await self._state.commit(*(Change(NAME, str(name), None) for name in names))
        for name in names:
            self._names.pop(str(name), None)

    async def delete(self, image: Image) -> None:
        names = [name for name, owner in self._names.items() if owner == image.id]
        await self._state.commit(Change(IMAGE, image.id, None), *(Change(NAME, name, None) for name in names))
        self._images.pop(image.id, None)
        for name in names:
            self._names.pop(name, None)
