"""Images on the wire: what `list`, `inspect`, `delete` and `commit` answer, and the credentials of `auth`."""

from msgspec import UNSET, Struct, UnsetType, field

from husk.api.types.containers import DriverData


class ImageSummary(Struct, kw_only=True, rename="pascal"):
    """One line of `docker images`; -1 stands for "not counted"."""

    id: str
    parent_id: str
    repo_tags: list[str]
    repo_digests: list[str]
    created: int
    size: int
    shared_size: int = -1
    virtual_size: int | UnsetType = UNSET
    labels: dict[str, str] | None
    containers: int = -1


class ImageRootFS(Struct, kw_only=True, rename="pascal"):
    type: str
    layers: list[str]


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


class ImageRemoval(Struct, kw_only=True, rename="pascal"):
    untagged: str | UnsetType = UNSET
    deleted: str | UnsetType = UNSET


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
