"""An image for several platforms: an OCI image index, and those of its manifests whose content is here.

The index and all manifests keep the bytes that they came with, so that a push or an archive has the same digests
again. An entry whose content is not here is a reference: the index tells what it would be, a pull for its platform
brings it. An entry for a platform is an ordinary image; other entries (attestations) are a few blobs that nobody
unpacks.

Everything here is pure; `ImageCatalog` keeps the records.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, field, structs

from husk.engine.model.image import Image
from husk.registry.manifest import INDEX_TYPES, Descriptor, Index, Platform, host_platform, normalize, runnable

IMAGE_KIND: Final = "image"
ATTESTATION: Final = "attestation"
UNKNOWN: Final = "unknown"
REFERENCE_TYPE = "vnd.docker.reference.type"
REFERENCE_DIGEST = "vnd.docker.reference.digest"


Candidate = tuple[Platform, Image]
"""An image, and what it is for: an index may know that better than the image's own configuration."""


class IndexEntry(Struct, kw_only=True, omit_defaults=True, frozen=True):
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
    blobs: Sequence[str] = []
    """Blobs that belong to a member that is no image, if it is here; of an image, blobs of layers that the store has in
    another form too (`Image.packed`)."""

    @property
    def here(self) -> bool:
        return bool(self.image or self.blobs)


class ImageIndex(Struct, kw_only=True, frozen=True):
    """The record of one image index, by its digest."""

    digest: str
    size: int
    media_type: str
    manifests: Sequence[IndexEntry] = field(name="members")

    @property
    def images(self) -> list[str]:
        """The ids of the images that are here."""
        return [member.image for member in self.manifests if member.image]

    @property
    def content(self) -> list[str]:
        """The digests of all blobs that the store keeps for this record and not for its images."""
        return [self.digest, *(d for m in self.manifests if m.here for d in (m.digest, *m.blobs))]

    @property
    def complete(self) -> bool:
        return all(member.here for member in self.manifests)


def index_record(descriptor: Descriptor, document: Index) -> ImageIndex:
    """The record of an index of which nothing is here yet."""
    entries = [
        IndexEntry(
            digest=entry.digest,
            size=entry.size,
            media_type=entry.media_type,
            platform=entry.platform,
            kind=_kind(entry),
            about=(entry.annotations or {}).get(REFERENCE_DIGEST, ""),
        )
        for entry in document.manifests
    ]
    return ImageIndex(digest=descriptor.digest, size=descriptor.size, media_type=document.media_type, manifests=entries)


def _kind(entry: Descriptor) -> str:
    if (entry.annotations or {}).get(REFERENCE_TYPE) == "attestation-manifest":
        return ATTESTATION
    if entry.media_type in INDEX_TYPES or (entry.platform is not None and entry.platform.os == "unknown"):
        return UNKNOWN
    return IMAGE_KIND


def merged(known: ImageIndex, news: ImageIndex) -> ImageIndex:
    """Two states of one index: what is here in either is here."""
    entries = [
        structs.replace(new, image=new.image or old.image, blobs=new.blobs or old.blobs)
        for old, new in zip(known.manifests, news.manifests, strict=True)
    ]
    return structs.replace(news, manifests=entries)


def without(index: ImageIndex, images: Iterable[str]) -> ImageIndex:
    """The same index, these images not here any more; attestations go with what they speak of."""
    going = set(images)
    gone = {member.digest for member in index.manifests if member.image in going}
    entries = [
        structs.replace(member, image="" if member.image in going else member.image,
                        blobs=[] if {member.about, member.digest} & gone else member.blobs)
        for member in index.manifests
    ]  # fmt: skip
    return structs.replace(index, manifests=entries)


def platform_of(image: Image) -> Platform:
    return Platform(image.architecture, image.os, image.variant)


def suits(actual: Platform, wanted: Platform) -> bool:
    """Return True if `actual` serves `wanted`: the same platform, or an older variant of the same architecture."""
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


def default_image(candidates: Iterable[Candidate]) -> Image | None:
    """The image that stands for all: the one that this host runs best, else the first."""
    offered = [(normalize(platform), image) for platform, image in candidates]
    for acceptable in runnable(host_platform()):
        for platform, image in offered:
            if platform == acceptable:
                return image
    return offered[0][1] if offered else None


def _acceptable(wanted: Platform) -> list[Platform]:
    return [platform for platform in runnable(wanted) if platform.architecture == wanted.architecture]
