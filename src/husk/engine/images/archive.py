"""Reading of image archives: the images that are in one, the files they are made of, and their names.

Pure. Docker's own format (`manifest.json`) names files; an OCI layout (`index.json`) names digests. An archive may be
both: then Docker's part tells the names, and the layout gives the manifests, whose digests are worth keeping.
"""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import msgspec

from husk.engine.images.index import IMAGE_KIND, ImageIndex, IndexEntry, index_record, suits
from husk.engine.images.make import read_config
from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault
from husk.registry import reference as references
from husk.registry.manifest import (
    INDEX_TYPES,
    Descriptor,
    ImageManifest,
    Index,
    Platform,
    normalize,
    parse_manifest,
    referenced,
)
from husk.registry.reference import Reference
from husk.text.documents import MalformedDocument, decode

DOCKER_LIST = "manifest.json"
OCI_LIST = "index.json"
LEGACY_LIST = "repositories"
_BLOBS = "blobs/sha256/"


class ArchivedImage(msgspec.Struct, frozen=True):
    """One image of an archive: the files of its configuration and layers, its names, its manifest if it has one."""

    config: str
    layers: list[str]
    names: list[Reference] = msgspec.field(default_factory=list)
    manifest: tuple[bytes, str] | None = None
    # The id of the image that it was made from, if that is in the archive too.
    parent: str = ""


class ArchivedIndex(msgspec.Struct):
    """An image for several platforms: its index, and by their digests the manifests of which all is in the archive."""

    document: bytes
    index: ImageIndex
    images: dict[str, ArchivedImage] = msgspec.field(default_factory=dict)
    attached: dict[str, dict[str, bytes]] = msgspec.field(default_factory=dict)
    names: list[Reference] = msgspec.field(default_factory=list)

    @property
    def content(self) -> list[str]:
        """The digests of all documents that are to be kept, but for the images' configurations."""
        return [self.index.digest, *self.images, *(digest for blobs in self.attached.values() for digest in blobs)]

    @property
    def configs(self) -> set[str]:
        return {member.config for member in self.images.values()}


class _DockerEntry(msgspec.Struct, rename="pascal"):
    config: str
    layers: list[str] | None = None
    repo_tags: list[str] | None = None
    parent: str = ""


class _OCIEntry(msgspec.Struct, rename="camel"):
    digest: str
    size: int = 0
    media_type: str = ""
    platform: Platform | None = None
    annotations: dict[str, str] | None = None


class _OCIList(msgspec.Struct):
    manifests: list[_OCIEntry] = []


def read_archive(
    documents: Mapping[str, bytes], has: Callable[[str], bool], platforms: Sequence[Platform] = ()
) -> list[ArchivedImage | ArchivedIndex]:
    """The images that these files (by their names in the archive) describe; `has` tells which others came.

    With `platforms`, only those of an index are meant.
    """
    if DOCKER_LIST in documents:
        return _docker_members(documents, has, platforms)
    if OCI_LIST in documents:
        return _oci_members(documents, has, platforms)
    if LEGACY_LIST in documents:
        raise InvalidParameter(
            f"this archive was made before Docker 1.10: it has {LEGACY_LIST} but no {DOCKER_LIST}. "
            "Load it with an old Docker and save it again"
        )
    raise InvalidParameter(f"this is no archive of images: it has neither {DOCKER_LIST} nor {OCI_LIST}")


def path_of(digest: str) -> str:
    """Return the path of a blob in an archive; `digest_at` tells the digest back."""
    return _BLOBS + references.validate_digest(digest).removeprefix("sha256:")


def digest_at(path: str) -> str | None:
    """The digest that the file at `path` must have; None if its place says nothing about that."""
    name = path.removeprefix(_BLOBS)
    if name == path or len(name) != 64 or name.strip("0123456789abcdef"):
        return None
    return f"sha256:{name}"


def link_target(path: str, link: str, hard: bool) -> str:
    """Return the path that a link in the archive stands for; old Docker archives store an equal layer as a link."""
    return posixpath.normpath(link if hard else posixpath.join(posixpath.dirname(path), link)).lstrip("/")


def _docker_members(
    documents: Mapping[str, bytes], has: Callable[[str], bool], platforms: Sequence[Platform]
) -> list[ArchivedImage | ArchivedIndex]:
    try:
        entries = decode(documents[DOCKER_LIST], list[_DockerEntry])
    except MalformedDocument as error:
        raise InvalidParameter(f"invalid {DOCKER_LIST}: {error}") from error
    described = _layout_beside(documents, has, platforms)
    manifests = {each.config: each.manifest for each in described if isinstance(each, ArchivedImage)}
    groups = [each for each in described if isinstance(each, ArchivedIndex)]
    members: list[ArchivedImage | ArchivedIndex] = []
    for entry in entries:
        config, names = posixpath.normpath(entry.config), [_tagged(text) for text in entry.repo_tags or []]
        # Docker's part tells of one platform of an index; the layout has them all.
        whole = next((g for g in groups if config in g.configs and (not g.names or {*names} & {*g.names})), None)
        if whole is None:
            layers = [posixpath.normpath(layer) for layer in entry.layers or []]
            members.append(ArchivedImage(config, layers, names, manifests.get(config), entry.parent))
        else:
            whole.names.extend(name for name in names if name not in whole.names)
    return members + groups


def _layout_beside(
    documents: Mapping[str, bytes], has: Callable[[str], bool], platforms: Sequence[Platform]
) -> list[ArchivedImage | ArchivedIndex]:
    """Read the layout that is in a Docker archive too; without a sound one Docker's part alone is enough."""
    try:
        return _oci_members(documents, has, platforms) if OCI_LIST in documents else []
    except NotFound:
        if platforms:
            raise
        return []
    except HuskError:
        return []


def _tagged(text: str) -> Reference:
    name = references.parse(text)
    if name.digest:
        raise InvalidParameter(f"invalid tag {text!r} in {DOCKER_LIST}: it is a digest")
    return name.tagged()


def _oci_members(
    documents: Mapping[str, bytes], has: Callable[[str], bool], platforms: Sequence[Platform]
) -> list[ArchivedImage | ArchivedIndex]:
    try:
        entries = decode(documents[OCI_LIST], _OCIList).manifests
    except MalformedDocument as error:
        raise InvalidParameter(f"invalid {OCI_LIST}: {error}") from error
    if not entries:
        raise InvalidParameter(f"there is no image in this archive: its {OCI_LIST} is empty")
    members: dict[str, ArchivedImage | ArchivedIndex] = {}
    for entry in entries:
        if entry.digest not in members:
            body = documents.get(path_of(entry.digest))
            if body is None:
                raise NotFound(f"the archive does not have the manifest {entry.digest}")
            parsed = _parsed(body, entry)
            members[entry.digest] = (
                _member(body, parsed)
                if isinstance(parsed, ImageManifest)
                else _group(documents, has, body, parsed, platforms)
            )
        names = members[entry.digest].names
        if (name := _annotated(entry.annotations or {})) is not None and name not in names:
            names.append(name)
    return list(members.values())


def _parsed(body: bytes, entry: _OCIEntry | IndexEntry) -> ImageManifest | Index:
    """Parse a manifest or index of the archive; what is wrong with it is its sender's fault, not a registry's."""
    try:
        return parse_manifest(body, entry.media_type)
    except SystemFault as error:
        raise InvalidParameter(f"invalid manifest {entry.digest} in the archive: {error.message}") from error


def _member(body: bytes, manifest: ImageManifest) -> ArchivedImage:
    layers = [path_of(layer.digest) for layer in manifest.layers]
    return ArchivedImage(path_of(manifest.config.digest), layers, manifest=(body, manifest.media_type))


def _group(
    documents: Mapping[str, bytes],
    has: Callable[[str], bool],
    body: bytes,
    document: Index,
    platforms: Sequence[Platform],
) -> ArchivedIndex:
    """An index with all that is in the archive of what it names, or with what is for some platforms."""
    descriptor = Descriptor(media_type=document.media_type, digest=references.digest_of(body), size=len(body))
    group = ArchivedIndex(body, index_record(descriptor, document))
    # An index may name one manifest as often as it likes, for other platforms each time: it is read once.
    read: dict[str, ArchivedImage | None] = {}
    attached: set[str] = set()
    platform_of = cache(lambda config: _platform_in(documents[config]))
    for entry in group.index.manifests:
        manifest = documents.get(path_of(entry.digest))
        if manifest is None or entry.media_type in INDEX_TYPES:
            continue
        if entry.kind != IMAGE_KIND:
            if not platforms and entry.digest not in attached and (blobs := _attachment(documents, manifest)):
                group.attached[entry.digest] = blobs | {entry.digest: manifest}
            attached.add(entry.digest)
            continue
        if entry.digest not in read:
            read[entry.digest] = _complete(documents, has, manifest, entry)
        member = read[entry.digest]
        if member is None or entry.digest in group.images:
            continue
        if not platforms or any(suits(entry.platform or platform_of(member.config), wanted) for wanted in platforms):
            group.images[entry.digest] = member
    if not group.images:
        wanted = ", ".join(str(normalize(platform)) for platform in platforms)
        raise NotFound(
            f"requested platform ({wanted}) not found" if platforms
            else f"the archive has no image of the index {descriptor.digest} complete"
        )  # fmt: skip
    return group


def _attachment(documents: Mapping[str, bytes], manifest: bytes) -> dict[str, bytes]:
    """All that the manifest of something that is no image names; nothing if some of it did not come."""
    named = {descriptor.digest for descriptor in referenced(manifest)}
    blobs = {digest: found for digest in named if (found := documents.get(path_of(digest))) is not None}
    return blobs if blobs.keys() == named else {}


def _complete(
    documents: Mapping[str, bytes], has: Callable[[str], bool], manifest: bytes, entry: IndexEntry
) -> ArchivedImage | None:
    """The image of a manifest, if all that it names came."""
    parsed = _parsed(manifest, entry)
    member = _member(manifest, parsed) if isinstance(parsed, ImageManifest) else None
    return member if member and all(has(path) for path in (member.config, *member.layers)) else None


def _platform_in(config: bytes) -> Platform:
    document = read_config(config)
    return Platform(document.architecture, document.os, document.variant)


def _annotated(annotations: Mapping[str, str]) -> Reference | None:
    for text in (
        annotations.get("io.containerd.image.name", ""),
        annotations.get("org.opencontainers.image.ref.name", ""),
    ):
        # The second may be a tag alone (`latest`), which names nothing.
        if ":" in text or "/" in text:
            try:
                name = references.parse(text)
            except HuskError:
                continue
            return None if name.digest else name.tagged()
    return None
