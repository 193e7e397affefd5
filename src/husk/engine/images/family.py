"""What is an image for several platforms? An OCI image index, and those of its manifests whose content is here.

The index and all manifests keep the bytes that they came with, so that a push or an archive has the same digests again.
A member whose content is not here is a reference: the index tells what it would be, a pull for its platform brings it.
A member for a platform is an ordinary image; other members (attestations) are a few blobs that nobody unpacks.

Everything here is pure; `ImageIndex` keeps the records.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, structs

from husk.engine.model.image import Image
from husk.registry.manifest import INDEX_TYPES, Descriptor, Index, Platform, host_platform, normalize, runnable

IMAGE_KIND: Final = "image"
ATTESTATION: Final = "attestation"
UNKNOWN: Final = "unknown"
_REFERENCE_TYPE = "vnd.docker.reference.type"
_REFERENCE_DIGEST = "vnd.docker.reference.digest"


Candidate = tuple[Platform, Image]
"""An image, and what it is for: an index may know that better than the image's own configuration."""


class Member(Struct, kw_only=True, omit_defaults=True):
    """One entry of an image index."""

    digest: str
    size: int
    media_type: str = ""
    platform: Platform | None = None
    kind: str = IMAGE_KIND
    about: str = ""
    """For an attestation: the digest of the manifest that it speaks of."""
    image: str = ""
    """The image's id, if it is here."""
    blobs: list[str] = []
    """What belongs to a member that is no image, if it is here."""

    @property
    def here(self) -> bool:
        return bool(self.image or self.blobs)


class Family(Struct, kw_only=True):
    """The record of one image index, by its digest."""

    digest: str
    size: int
    media_type: str
    members: list[Member]

    @property
    def images(self) -> list[str]:
        """The ids of the images that are here."""
        return [member.image for member in self.members if member.image]

    @property
    def content(self) -> list[str]:
        """The digests of all blobs that the store keeps for this record and not for its images."""
        return [self.digest, *(d for m in self.members if m.here for d in (m.digest, *m.blobs))]

    @property
    def complete(self) -> bool:
        return all(member.here for member in self.members)


def family_of(descriptor: Descriptor, index: Index) -> Family:
    """The record of an index of which nothing is here yet."""
    members = [
        Member(
            digest=entry.digest,
            size=entry.size,
            media_type=entry.media_type,
            platform=entry.platform,
            kind=_kind(entry),
            about=(entry.annotations or {}).get(_REFERENCE_DIGEST, ""),
        )
        for entry in index.manifests
    ]
    return Family(digest=descriptor.digest, size=descriptor.size, media_type=index.media_type, members=members)


def _kind(entry: Descriptor) -> str:
    if (entry.annotations or {}).get(_REFERENCE_TYPE) == "attestation-manifest":
        return ATTESTATION
    if entry.media_type in INDEX_TYPES or (entry.platform is not None and entry.platform.os == "unknown"):
        return UNKNOWN
    return IMAGE_KIND


def merged(known: Family, news: Family) -> Family:
    """Two states of one index: what is here in either is here."""
    members = [
        structs.replace(new, image=new.image or old.image, blobs=new.blobs or old.blobs)
        for old, new in zip(known.members, news.members, strict=True)
    ]
    return structs.replace(news, members=members)


def without(family: Family, images: Iterable[str]) -> Family:
    """The same index, these images not here any more; attestations go with what they speak of."""
    going = set(images)
    gone = {member.digest for member in family.members if member.image in going}
    members = [
        structs.replace(member, image="" if member.image in going else member.image,
                        blobs=[] if member.about in gone else member.blobs)
        for member in family.members
    ]  # fmt: skip
    return structs.replace(family, members=members)


def platform_of(image: Image) -> Platform:
    return Platform(image.architecture, image.os, image.variant)


def suits(actual: Platform, wanted: Platform) -> bool:
    """Whether what is for one platform serves another: the same, or an older variant of the same architecture."""
    actual, wanted = normalize(actual), normalize(wanted)
    same = (actual.os, actual.architecture) == (wanted.os, wanted.architecture)
    return same and (not wanted.variant or actual in _acceptable(wanted))


def choose_image(candidates: Iterable[Candidate], wanted: Platform) -> Image | None:
    """Of several images the one for a platform."""
    offered = [(normalize(platform), image) for platform, image in candidates]
    for acceptable in _acceptable(normalize(wanted)):
        for platform, image in offered:
            if platform == acceptable:
                return image
    return next((image for platform, image in offered if suits(platform, wanted)), None)


def face_of(candidates: Iterable[Candidate]) -> Image | None:
    """The image that stands for all: the one that this host runs best, else the first."""
    offered = [(normalize(platform), image) for platform, image in candidates]
    for acceptable in runnable(host_platform()):
        for platform, image in offered:
            if platform == acceptable:
                return image
    return offered[0][1] if offered else None


def _acceptable(wanted: Platform) -> list[Platform]:
    return [platform for platform in runnable(wanted) if platform.architecture == wanted.architecture]
