"""Manifests: what they hold, and which entry of an image index suits a platform.

Pure. OCI and Docker (version 2, schema 2) documents have the same shape and become the same types here; nobody above
needs to know which of the two a registry sent.
"""

import os
import re
from typing import Final

import msgspec

from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault
from husk.registry.reference import validate_digest
from husk.text.documents import MalformedDocument, decode
from husk.text.patterns import pattern

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
OCI_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar"

MANIFEST_TYPES: Final = (OCI_MANIFEST, DOCKER_MANIFEST)
INDEX_TYPES: Final = (OCI_INDEX, DOCKER_LIST)

SCHEMA1_TYPES: Final = (
    "application/vnd.docker.distribution.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v1+prettyjws",
)
# Far more than what anybody can mount or choose from: an index has some seven for each platform.
_MOST_VALUES = 1 << 16
# Of what a client, or a frontend, calls a platform.
_LONGEST_PLATFORM = 256
# Old Docker versions and some builders pushed configs under these.
_CONFIG_TYPES = (OCI_CONFIG, DOCKER_CONFIG, "application/octet-stream", "text/plain", "text/html", "")


class Platform(msgspec.Struct, frozen=True, omit_defaults=True):
    """The kind of host that a program needs to run: `linux/arm/v7`."""

    architecture: str = ""
    os: str = ""
    variant: str = ""
    os_version: str = msgspec.field(default="", name="os.version")
    os_features: tuple[str, ...] = msgspec.field(default=(), name="os.features")

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


class Descriptor(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """A pointer to content: its digest, its exact size, what it is, and (in an index) what it runs on."""

    media_type: str = ""
    digest: str
    size: int
    platform: Platform | None = None
    annotations: dict[str, str] | None = None


class ImageManifest(msgspec.Struct, frozen=True):
    """One image: its configuration and its layers, base first."""

    config: Descriptor
    layers: list[Descriptor]
    media_type: str = OCI_MANIFEST


class Index(msgspec.Struct, frozen=True):
    """The same image for several platforms."""

    manifests: list[Descriptor]
    media_type: str = OCI_INDEX


class _Document(msgspec.Struct, rename="camel"):
    schema_version: int = 0
    media_type: str | None = None
    config: Descriptor | None = None
    layers: list[Descriptor] | None = None
    manifests: list[Descriptor] | None = None


def parse_manifest(body: bytes, media_type: str) -> ImageManifest | Index:
    """Decode what a registry sent under this Content-Type; `SystemFault` says what is wrong with it."""
    announced = media_type.partition(";")[0].strip().lower()
    refuse_schema1(announced)
    try:
        document = decode(body, _Document, most=_MOST_VALUES)
    except MalformedDocument as error:
        raise SystemFault(f"error unmarshalling content: not an image manifest: {error}") from error
    if document.schema_version == 1:
        raise _schema1()
    kind = _media_type(document, announced)
    if kind in INDEX_TYPES:
        entries = document.manifests or []
        _check(entries)
        return Index(entries, kind)
    if document.config is None:
        raise SystemFault("error unmarshalling content: the image manifest names no config")
    if document.config.media_type not in _CONFIG_TYPES:
        raise SystemFault(f"unsupported media type {document.config.media_type}: this is not a container image")
    layers = document.layers or []
    _check([document.config, *layers])
    return ImageManifest(document.config, layers, kind)


def _media_type(document: _Document, announced: str) -> str:
    """Header, `mediaType` field and shape must agree, or one digest would mean two different images."""
    known = MANIFEST_TYPES + INDEX_TYPES
    declared = (document.media_type or "").lower()
    if document.manifests is not None and (document.layers is not None or document.config is not None):
        raise SystemFault("error unmarshalling content: a manifest that is both an image and an index is ambiguous")
    if declared and announced in known and declared != announced:
        raise SystemFault(f"error unmarshalling content: sent as {announced} but says it is {declared}")
    kind = announced if announced in known else declared
    if not kind:
        # OCI makes the field optional and simple file servers announce application/json: the shape decides.
        kind = OCI_INDEX if document.manifests is not None else OCI_MANIFEST
    if kind not in known:
        raise SystemFault(f"unsupported manifest media type {kind}")
    if (kind in INDEX_TYPES) != (document.manifests is not None):
        raise SystemFault(f"error unmarshalling content: the manifest does not have the fields of a {kind}")
    return kind


def _check(descriptors: list[Descriptor]) -> None:
    for descriptor in descriptors:
        try:
            validate_digest(descriptor.digest)
        except HuskError as error:
            raise SystemFault(f"invalid descriptor {descriptor.digest!r} in manifest: {error.message}") from error
        if not 0 <= descriptor.size < 1 << 63:
            wrong = "negative size" if descriptor.size < 0 else "a size of more than 63 bits"
            raise SystemFault(f"invalid descriptor {descriptor.digest} in manifest: {wrong}")


def refuse_schema1(media_type: str) -> None:
    """Raise if a manifest is announced as one of schema 1, of which a digest names a part only."""
    if media_type.lower() in SCHEMA1_TYPES:
        raise _schema1()


def _schema1() -> SystemFault:
    return SystemFault(
        "Docker image manifest version 2, schema 1 is not supported: "
        "ask the author of the image to push it again in the OCI format or as manifest version 2, schema 2"
    )


def referenced(body: bytes) -> list[Descriptor]:
    """List the config and layers that any manifest names, also one of no container image; empty if unreadable."""
    try:
        document = decode(body, _Document, most=_MOST_VALUES)
        found = [*([document.config] if document.config else []), *(document.layers or [])]
        _check(found)
    except (MalformedDocument, SystemFault):
        return []
    return found


def choose_platform(index: Index, wanted: Platform) -> Descriptor:
    """The entry that runs best on `wanted`: the exact platform, else the nearest one that it can execute."""
    offered: dict[Platform, Descriptor] = {}
    for entry in index.manifests:
        if entry.platform is not None:
            offered.setdefault(normalize(entry.platform), entry)
    for candidate in runnable(normalize(wanted)):
        if candidate in offered:
            return offered[candidate]
    for entry in index.manifests:
        if entry.platform is None:
            return entry
    raise NotFound(f"no matching manifest for {wanted} in the manifest list entries")


_ARM_VARIANTS = ("v8", "v7", "v6", "v5")


def runnable(wanted: Platform) -> list[Platform]:
    """List the platforms whose programs a host of this (normalised) platform executes, best first."""
    variants = [(wanted.architecture, wanted.variant)]
    if wanted.architecture == "arm" and wanted.variant in _ARM_VARIANTS:
        variants += [("arm", variant) for variant in _ARM_VARIANTS[_ARM_VARIANTS.index(wanted.variant) + 1 :]]
    elif wanted.architecture in ("arm64", "amd64") and (level := re.fullmatch(r"v(\d)", wanted.variant)):
        variants += [(wanted.architecture, f"v{lower}") for lower in range(int(level[1]) - 1, 0, -1)]
        variants.append((wanted.architecture, ""))
    if wanted.architecture == "arm64":
        variants += [("arm", variant) for variant in _ARM_VARIANTS]
    elif wanted.architecture == "amd64":
        variants.append(("386", ""))
    return [Platform(architecture, wanted.os, variant) for architecture, variant in variants]


_OS_ALIASES = {"macos": "darwin"}
_ARCHITECTURE_ALIASES = {
    "x86_64": ("amd64", ""),
    "x86-64": ("amd64", ""),
    "aarch64": ("arm64", ""),
    "armhf": ("arm", "v7"),
    "armel": ("arm", "v6"),
    "armv5l": ("arm", "v5"),
    "armv6l": ("arm", "v6"),
    "armv7l": ("arm", "v7"),
    "armv8l": ("arm", "v8"),
    "i386": ("386", ""),
    "i486": ("386", ""),
    "i586": ("386", ""),
    "i686": ("386", ""),
}
_BASELINE = {"amd64": "v1", "arm64": "v8"}
_ARCHITECTURES = (
    *("386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle"),
    *("ppc64", "ppc64le", "riscv64", "s390x", "wasm"),
)
_SYSTEMS = ("darwin", "freebsd", "linux", "netbsd", "openbsd", "solaris", "wasi", "windows")
_COMPONENT = pattern(r"[A-Za-z0-9_.-]+")


def normalize(platform: Platform) -> Platform:
    """One spelling per platform: aliases resolved, the baseline variant left out, 32-bit arm with its variant."""
    system = platform.os.lower()
    architecture, variant = platform.architecture.lower(), platform.variant.lower()
    alias, implied = _ARCHITECTURE_ALIASES.get(architecture, (architecture, ""))
    variant = variant or implied
    if variant.isascii() and variant.isdigit():
        variant = "v" + variant
    if alias == "arm" and not variant:
        variant = "v7"
    if _BASELINE.get(alias) == variant:
        variant = ""
    return Platform(alias, _OS_ALIASES.get(system, system), variant)


def host_platform() -> Platform:
    """Return the platform of this host, normalised."""
    return normalize(Platform(os.uname().machine, "linux"))


def detected_platform() -> Platform:
    """Return this host's platform as dockerd tells users: with arm64's variant, which is left out everywhere else."""
    here = host_platform()
    return msgspec.structs.replace(here, variant="v8") if here.architecture == "arm64" else here


def parse_platform(text: str) -> Platform:
    """The platform that `os/architecture[/variant]`, an OS or an architecture alone means; `""` is this host."""
    here = host_platform()
    if not text:
        return here
    if len(text) > _LONGEST_PLATFORM:
        raise InvalidParameter(f'"{text[:_LONGEST_PLATFORM]}...": cannot parse platform specifier: invalid argument')
    parts = text.split("/")
    for part in parts:
        if not _COMPONENT.fullmatch(part):
            raise InvalidParameter(
                f'"{part}" is an invalid component of "{text}": '
                f'platform specifier component must match "{_COMPONENT.pattern}": invalid argument'
            )
    if len(parts) == 1:
        alone = normalize(Platform(parts[0], parts[0]))
        if alone.os in _SYSTEMS:
            return Platform(here.architecture, alone.os, here.variant)
        if alone.architecture in _ARCHITECTURES:
            return Platform(alone.architecture, here.os, alone.variant)
        raise InvalidParameter(f'"{text}": unknown operating system or architecture: invalid argument')
    if len(parts) > 3:
        raise InvalidParameter(f'"{text}": cannot parse platform specifier: invalid argument')
    return normalize(Platform(parts[1], parts[0], parts[2] if len(parts) == 3 else ""))
