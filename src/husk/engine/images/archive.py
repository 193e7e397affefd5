"""What does an image archive say? Which images are in it, of which files, under which names.

Pure. Docker's own format (`manifest.json`) names files; an OCI layout (`index.json`) names digests. An archive may be
both: then Docker's part tells the names, and the layout gives the manifests, whose digests are worth keeping.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from husk.errors import HuskError, InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.manifest import (
    INDEX_TYPES,
    Descriptor,
    ImageManifest,
    Index,
    Platform,
    choose_platform,
    parse_manifest,
)
from husk.registry.reference import Reference

DOCKER_LIST = "manifest.json"
OCI_LIST = "index.json"
_BLOBS = "blobs/sha256/"


@dataclass(frozen=True, slots=True)
class Member:
    """One image of an archive: the files of its configuration and layers, its names, its manifest if it has one."""

    config: str
    layers: list[str]
    names: list[Reference] = field(default_factory=list)
    manifest: tuple[bytes, str] | None = None


class _DockerEntry(msgspec.Struct, rename="pascal"):
    config: str
    layers: list[str] | None = None
    repo_tags: list[str] | None = None


class _OCIEntry(msgspec.Struct, rename="camel"):
    digest: str
    size: int = 0
    media_type: str = ""
    platform: Platform | None = None
    annotations: dict[str, str] | None = None


class _OCIList(msgspec.Struct):
    manifests: list[_OCIEntry] = []


def read_archive(documents: Mapping[str, bytes], platform: Platform) -> list[Member]:
    """The images that these files (by their names in the archive) describe."""
    if DOCKER_LIST in documents:
        return _docker_members(documents)
    if OCI_LIST in documents:
        return _oci_members(documents, platform)
    raise InvalidParameter(f"this is no archive of images: it has neither {DOCKER_LIST} nor {OCI_LIST}")


def path_of(digest: str) -> str:
    return _BLOBS + references.validate_digest(digest).removeprefix("sha256:")


def digest_at(path: str) -> str | None:
    """The digest that the file at `path` must have; None if its place says nothing about that."""
    name = path.removeprefix(_BLOBS)
    if name == path or len(name) != 64 or name.strip("0123456789abcdef"):
        return None
    return f"sha256:{name}"


def link_target(path: str, link: str, hard: bool) -> str:
    """What a link in the archive stands for; old Docker archives store an equal layer as a link."""
    return posixpath.normpath(link if hard else posixpath.join(posixpath.dirname(path), link)).lstrip("/")


def _docker_members(documents: Mapping[str, bytes]) -> list[Member]:
    try:
        entries = msgspec.json.decode(documents[DOCKER_LIST], type=list[_DockerEntry])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"invalid {DOCKER_LIST}: {error}") from error
    manifests = _manifests_by_config(documents)
    return [
        Member(
            config=posixpath.normpath(entry.config),
            layers=[posixpath.normpath(layer) for layer in entry.layers or []],
            names=[_tagged(text) for text in entry.repo_tags or []],
            manifest=manifests.get(posixpath.normpath(entry.config)),
        )
        for entry in entries
    ]


def _tagged(text: str) -> Reference:
    name = references.parse(text)
    if name.digest:
        raise InvalidParameter(f"invalid tag {text!r} in {DOCKER_LIST}: it is a digest")
    return name.tagged()


def _manifests_by_config(documents: Mapping[str, bytes]) -> dict[str, tuple[bytes, str]]:
    """The image manifests of the layout that is in the archive too, by the path of the configuration they name."""
    found: dict[str, tuple[bytes, str]] = {}
    if OCI_LIST not in documents:
        return found
    try:
        for entry in msgspec.json.decode(documents[OCI_LIST], type=_OCIList).manifests:
            body = documents.get(path_of(entry.digest))
            parsed = parse_manifest(body, entry.media_type) if body is not None else None
            if body is not None and isinstance(parsed, ImageManifest):
                found[path_of(parsed.config.digest)] = (body, parsed.media_type)
    except (msgspec.DecodeError, UnicodeDecodeError, HuskError):
        return {}  # Docker's part alone is enough
    return found


def _oci_members(documents: Mapping[str, bytes], platform: Platform) -> list[Member]:
    try:
        entries = msgspec.json.decode(documents[OCI_LIST], type=_OCIList).manifests
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"invalid {OCI_LIST}: {error}") from error
    if not entries:
        raise InvalidParameter(f"there is no image in this archive: its {OCI_LIST} is empty")
    members: dict[str, Member] = {}
    for entry in entries:
        body, manifest = _resolve(documents, entry.digest, entry.media_type, platform)
        member = members.setdefault(
            manifest.config.digest,
            Member(
                config=path_of(manifest.config.digest),
                layers=[path_of(layer.digest) for layer in manifest.layers],
                manifest=(body, manifest.media_type),
            ),
        )
        if (name := _annotated(entry.annotations or {})) is not None and name not in member.names:
            member.names.append(name)
    return list(members.values())


def _resolve(
    documents: Mapping[str, bytes], digest: str, media_type: str, platform: Platform
) -> tuple[bytes, ImageManifest]:
    body = documents.get(path_of(digest))
    if body is None:
        raise NotFound(f"the archive does not have the manifest {digest}")
    parsed = parse_manifest(body, media_type)
    if isinstance(parsed, ImageManifest):
        return body, parsed
    present = [entry for entry in parsed.manifests if path_of(entry.digest) in documents]
    chosen = _choose(Index(present, parsed.media_type), platform)
    if chosen.media_type in INDEX_TYPES:
        raise InvalidParameter("an image index inside an image index is not supported")
    return _resolve(documents, chosen.digest, chosen.media_type, platform)


def _choose(index: Index, platform: Platform) -> Descriptor:
    """The entry for this platform; the only one that is there, if there is but one."""
    try:
        return choose_platform(index, platform)
    except NotFound:
        images = [e for e in index.manifests if e.platform is None or e.platform.os != "unknown"]
        if len(images) != 1:
            raise
        return images[0]


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
