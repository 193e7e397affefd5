"""Which images are there, and under which names? All in memory, each change written through to the store.

A name points to an image, or to a family: an image index with the same image for several platforms. A family is shown
as one image, its face: the member that this host runs best. Members that no name and no family shows otherwise are
found by their id, and live as long as their family.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from husk.engine.images.family import Candidate, Family, face_of, merged, platform_of, without
from husk.engine.model.image import Image
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.reference import Reference
from husk.storage.state import Change, StateStore

IMAGE, FAMILY, NAME = "image", "image-family", "image-name"
_HEX = re.compile(r"[0-9a-f]{1,64}")
_ID = re.compile(r"[0-9a-f]{64}")


class Found(NamedTuple):
    """What a client's text means: one image, and the family that it stands for, if it does."""

    image: Image
    family: Family | None


class ImageIndex:
    """Names are full references: `docker.io/library/busybox:latest` or `docker.io/library/busybox@sha256:…`."""

    def __init__(self, state: StateStore, settle: Callable[[], Awaitable[None]] | None = None) -> None:
        """`settle` puts contents on the disk; it is called before records name them."""
        self._state = state
        self._settle = settle
        self._changing = asyncio.Lock()
        self._images = state.records(IMAGE, Image)
        self._families = state.records(FAMILY, Family)
        self._names = state.read(NAME, bytes.decode)
        self._faces: dict[str, str] = {}
        self._find_faces(*self._families.values())

    def __iter__(self) -> Iterator[Image]:
        return iter(list(self._images.values()))

    def __len__(self) -> int:
        return len(self._images)

    # --- looking

    def get(self, image_id: str) -> Image | None:
        return self._images.get(image_id)

    def by_name(self, name: Reference) -> Image | None:
        target = self.target(name)
        return self._images.get(self._faces.get(target, target))

    def target(self, name: Reference) -> str:
        """What a name points to: an image's id or a family's digest, or nothing."""
        return self._names.get(str(name), "")

    def family_by_name(self, name: Reference) -> Family | None:
        return self._families.get(self.target(name))

    def find(self, text: str) -> Image:
        return self.look_up(text).image

    def look_up(self, text: str) -> Found:
        """By full id, name, digest reference, or unique leading part of an id, in that order."""
        if (image := self._images.get(text) or self._images.get("sha256:" + text)) is not None:
            return self._by_id(image)
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

    def _named(self, reference: Reference) -> Found | None:
        names = [reference]
        if reference.digest:
            # name:tag@digest and name@<image id> mean the image of that digest.
            names.append(Reference(reference.domain, reference.path, digest=reference.digest))
        for name in names:
            if (image := self.by_name(name)) is not None:
                return Found(image, self.family_by_name(name))
        image = self._images.get(reference.digest)
        known = image is not None and any(n.name == reference.name for n in self.names(image))
        return self._by_id(image) if image is not None and known else None

    def _by_id(self, image: Image) -> Found:
        """An id means the family that it is shown for, unless the image has a name of its own."""
        faced = self.faced(image)
        return Found(image, faced[0] if faced and not self.is_named(image) else None)

    def is_named(self, thing: Image | Family) -> bool:
        """Whether a name points to this very image or family."""
        return self.is_target(thing.id if isinstance(thing, Image) else thing.digest)

    def is_target(self, digest: str) -> bool:
        """Whether a name points to the image or family of this digest."""
        return digest in self._names.values()

    def names(self, image: Image) -> list[Reference]:
        """All references that an image is shown with, tags before digests, in order."""
        return self._names_of({image.id, *(family.digest for family in self.faced(image))})

    def known_as(self, image: Image) -> list[Reference]:
        """All references through which an image can be had, also those that show another platform of it."""
        return self._names_of({image.id, *(family.digest for family in self.families_of(image))})

    def names_of_family(self, family: Family) -> list[Reference]:
        return self._names_of({family.digest})

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
        inner = {image_id for family in self._families.values() for image_id in family.images}
        inner -= set(self._faces.values()) | set(self._names.values())
        return [image for image in self._images.values() if image.id not in inner]

    def faced(self, image: Image) -> list[Family]:
        """The families that an image stands for."""
        return [self._families[digest] for digest, face in self._faces.items() if face == image.id]

    def family(self, digest: str) -> Family | None:
        return self._families.get(digest)

    def face(self, family: Family) -> Image | None:
        """The image that stands for a family."""
        return self._images.get(self._faces.get(family.digest, ""))

    def nameless(self) -> list[Family]:
        """The families that no name points to."""
        named = set(self._names.values())
        return [family for family in self._families.values() if family.digest not in named]

    def families(self) -> list[Family]:
        return list(self._families.values())

    def families_of(self, image: Image) -> list[Family]:
        """All families that an image is in."""
        return [family for family in self._families.values() if image.id in family.images]

    def candidates(self, found: Found) -> list[Candidate]:
        """What can be chosen from: all of a family that is here, or one image."""
        image, family = found
        return self._offered(family) if family is not None else [(platform_of(image), image)]

    def _offered(self, family: Family) -> list[Candidate]:
        here = [(member.platform, self._images.get(member.image)) for member in family.members]
        return [(platform or platform_of(image), image) for platform, image in here if image is not None]

    def members(self, family: Family) -> list[Image]:
        """The images of a family that are here, in the order of its index."""
        return [image for image_id in dict.fromkeys(family.images) if (image := self._images.get(image_id))]

    def together(self, image: Image) -> list[Image]:
        """An image and all those that it is shown for."""
        others = [other for family in self.faced(image) for other in self.members(family)]
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
        named = {digest for image in self._images.values() for digest in (image.id, image.manifest)}
        return named.union(*(family.content for family in self._families.values())) - {""}

    def names_content(self, digest: str) -> bool:
        """Whether a record names this blob."""
        return (
            digest in self._images
            or any(image.manifest == digest for image in self._images.values())
            or any(digest in family.content for family in self._families.values())
        )

    # --- changing

    async def add(self, image: Image, *names: Reference, family: Family | None = None) -> None:
        """Write an image and point names to it, or to its family, at once."""
        await self.add_all([image], names, family)

    async def add_all(self, images: Sequence[Image], names: Iterable[Reference], family: Family | None) -> None:
        """Write images and the family that they belong to, and point names to that, at once."""
        if self._settle is not None:
            await self._settle()
        async with self._changing:
            if family is not None and (known := self._families.get(family.digest)) is not None:
                family = merged(known, family)
            target = family.digest if family is not None else images[0].id
            named = {str(name): target for name in names}
            changes = [Change(IMAGE, image.id, msgspec.json.encode(image)) for image in images]
            changes += [Change(FAMILY, family.digest, msgspec.json.encode(family))] if family is not None else []
            changes += [Change(NAME, name, target.encode()) for name in named]
            await self._state.commit(*changes)
            self._images.update({image.id: image for image in images})
            if family is not None:
                self._families[family.digest] = family
                self._find_faces(family)
            self._names.update(named)

    async def forget_names(self, *names: Reference) -> None:
        async with self._changing:
            await self._state.commit(*(Change(NAME, str(name), None) for name in names))
            for name in names:
                self._names.pop(str(name), None)

    async def delete(self, image: Image) -> None:
        await self.delete_all([image.id])

    async def delete_all(
        self,
        image_ids: Iterable[str],
        families: Iterable[Family] = (),
        stays: Callable[[str], bool] = lambda digest: False,
    ) -> set[str]:
        """Forget images and families with all their names; a family of which no image stays goes too.

        `stays` is asked when nobody else changes anything any more: somebody may have come to need an image meanwhile.
        Returns the ids that went.
        """
        async with self._changing:
            going = {image_id for image_id in image_ids if not stays(image_id)}
            whole = {family.digest for family in families if not stays(family.digest)}
            if not going and not whole:
                return going
            others = [family for family in self._families.values() if family.digest not in whole]
            touched = [without(family, going) for family in others if going.intersection(family.images)]
            whole |= {family.digest for family in touched if not family.images}
            kept = [family for family in touched if family.images]
            names = [name for name, target in self._names.items() if target in going | whole]
            changes = [Change(IMAGE, image_id, None) for image_id in going]
            changes += [Change(FAMILY, digest, None) for digest in whole]
            changes += [Change(FAMILY, family.digest, msgspec.json.encode(family)) for family in kept]
            changes += [Change(NAME, name, None) for name in names]
            await self._state.settle(*changes)
            for digest in going | whole:
                self._images.pop(digest, None)
                self._families.pop(digest, None)
                self._faces.pop(digest, None)
            self._families.update({family.digest: family for family in kept})
            self._find_faces(*kept)
            for name in names:
                self._names.pop(name, None)
            return going

    async def dissolve(self, family: Family) -> None:
        """Make single images of a family; its names go to its face."""
        async with self._changing:
            face = self._faces.pop(family.digest, "")
            names = [name for name, target in self._names.items() if target == family.digest]
            changes = [Change(NAME, name, face.encode() if face else None) for name in names]
            await self._state.settle(Change(FAMILY, family.digest, None), *changes)
            del self._families[family.digest]
            for name in names:
                self._names[name] = face
                if not face:
                    del self._names[name]

    def _find_faces(self, *families: Family) -> None:
        for family in families:
            if (face := face_of(self._offered(family))) is not None:
                self._faces[family.digest] = face.id
