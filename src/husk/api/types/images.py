"""Images on the wire: what `list`, `inspect`, `delete` and `commit` answer, and the credentials of `auth`."""

from collections.abc import Sequence

from msgspec import UNSET, Raw, Struct, UnsetType, field

from husk.api.types.containers import DriverData
from husk.registry.manifest import Descriptor, Platform


class ManifestSize(Struct, kw_only=True, rename="pascal"):
    total: int
    content: int


class UnpackedSize(Struct, kw_only=True, rename="pascal"):
    unpacked: int


class ManifestImageData(Struct, kw_only=True, rename="pascal"):
    platform: Platform
    containers: list[str]
    size: UnpackedSize


class ManifestAttestationData(Struct, kw_only=True, rename="pascal"):
    about: str = field(name="For")


class ManifestSummary(Struct, kw_only=True, rename="pascal"):
    """One manifest of an image: a platform of it, or what somebody attests of one."""

    id: str = field(name="ID")
    descriptor: Descriptor
    available: bool
    size: ManifestSize
    kind: str
    image_data: ManifestImageData | UnsetType = UNSET
    attestation_data: ManifestAttestationData | UnsetType = UNSET


class ImageSummary(Struct, kw_only=True, rename="pascal"):
    """One line of `docker images`; -1 stands for "not counted"."""

    id: str
    parent_id: str
    repo_tags: list[str] | None
    repo_digests: list[str] | None
    created: int
    size: int
    shared_size: int = -1
    virtual_size: int | UnsetType = UNSET
    labels: dict[str, str] | None
    containers: int = -1
    manifests: list[ManifestSummary] | UnsetType = UNSET
    descriptor: Descriptor | UnsetType = UNSET


class ImageRootFS(Struct, kw_only=True, rename="pascal"):
    type: str
    layers: Sequence[str]


class ImageMetadata(Struct, kw_only=True, rename="pascal"):
    last_tag_time: str


class ImageInspect(Struct, kw_only=True, rename="pascal"):
    """`docker inspect` of an image."""

    id: str
    repo_tags: list[str]
    repo_digests: list[str]
    parent: str | UnsetType = UNSET
    comment: str
    created: str
    container: str | UnsetType = UNSET
    container_config: dict[str, object] | UnsetType = UNSET
    docker_version: str | UnsetType = UNSET
    author: str
    config: dict[str, object]
    architecture: str
    variant: str | UnsetType = UNSET
    os: str
    size: int
    virtual_size: int | UnsetType = UNSET
    graph_driver: DriverData
    root_fs: ImageRootFS = field(name="RootFS")
    metadata: ImageMetadata
    descriptor: Descriptor | UnsetType = UNSET
    manifests: list[ManifestSummary] | UnsetType = UNSET


class ImageRemoval(Struct, kw_only=True, rename="pascal"):
    untagged: str | UnsetType = UNSET
    deleted: str | UnsetType = UNSET


class ImagePrune(Struct, kw_only=True, rename="pascal"):
    images_deleted: list[ImageRemoval] | None
    space_reclaimed: int


class AttestationStatement(Struct, kw_only=True, rename="pascal"):
    """One in-toto statement about an image."""

    descriptor: Descriptor
    predicate_type: str
    statement: Raw | UnsetType = UNSET


class HistoryItem(Struct, kw_only=True, rename="pascal"):
    id: str
    created: int
    created_by: str
    tags: list[str] | None
    size: int
    comment: str


class DistributionDescriptor(Struct, kw_only=True, rename="camel"):
    media_type: str
    digest: str
    size: int


class DistributionInspect(Struct, kw_only=True, rename="pascal"):
    """The manifest that a registry has under a name, and its platforms."""

    descriptor: DistributionDescriptor
    platforms: list[dict[str, object]]


class CommitResponse(Struct, kw_only=True, rename="pascal"):
    id: str


class AuthRequest(Struct, kw_only=True, rename=str.lower):
    """Credentials of one registry, as `docker login` sends them."""

    username: str = ""
    password: str = ""
    serveraddress: str = ""
    identitytoken: str = ""
    registrytoken: str = ""


class AuthResponse(Struct, kw_only=True, rename="pascal"):
    identity_token: str
    status: str
