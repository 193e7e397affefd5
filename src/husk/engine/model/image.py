"""The model of an image: a configuration and a stack of layers, named by the digest of its configuration.

An image is one type however it arrived. Pull, commit and import are ways to make one; run, push and save are ways to
use one; nothing branches on where it came from.
"""

from collections.abc import Sequence

from msgspec import Struct, field

from husk.engine.model.container_config import ContainerConfig
from husk.registry.manifest import Descriptor


class HistoryEntry(Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One step of an image's making, as its configuration records it."""

    created: str = ""
    created_by: str = ""
    author: str = ""
    comment: str = ""
    empty_layer: bool = False


class RootFS(Struct, kw_only=True):
    type: str = "layers"
    diff_ids: list[str] = []


class ImageConfig(Struct, kw_only=True, omit_defaults=True):
    """The configuration blob of an image, as far as the engine reads and writes it."""

    architecture: str = ""
    os: str = ""
    variant: str = ""
    os_version: str = field(default="", name="os.version")
    created: str = ""
    author: str = ""
    comment: str = ""
    docker_version: str = ""
    config: ContainerConfig | None = None
    rootfs: RootFS = field(default_factory=RootFS)
    history: list[HistoryEntry] = []


class Image(Struct, kw_only=True, frozen=True):
    """The record of one image: what the store holds and the engine works on."""

    id: str
    created: str
    architecture: str
    os: str
    variant: str = ""
    author: str = ""
    comment: str = ""
    docker_version: str = ""
    config: ContainerConfig
    diff_ids: Sequence[str]
    chain_ids: Sequence[str]
    history: Sequence[HistoryEntry] = []
    size: int = 0
    parent: str = ""
    manifest: str = ""
    manifest_media_type: str = ""
    manifest_size: int = 0
    last_tagged: str = ""
    packed: Sequence[str] = []
    """Blobs that the manifest names for layers which the store has in another form: a build's, compressed."""

    @property
    def content(self) -> list[str]:
        """The digests of all blobs that the store keeps for this record; layers own theirs themselves."""
        return [self.id, self.manifest, *self.packed]


class Pushed(Struct, kw_only=True, rename="pascal", frozen=True):
    """The result of a push: the manifest under one tag."""

    tag: str
    digest: str
    size: int


class PushedInsteadOfIndex(Struct, kw_only=True, rename="camel", frozen=True):
    """Said before the end of a push that left other platforms out, because they are not here."""

    manifest_pushed_instead_of_index: bool = True
    original_index: Descriptor
    selected_manifest: Descriptor


class BuiltImage(Struct, kw_only=True, frozen=True):
    """The result of a build: the image's id."""

    id: str = field(name="ID")


class Traced(Struct, kw_only=True, frozen=True):
    """News of a build in BuildKit's own messages."""

    message: bytes


class Progress(Struct, kw_only=True, frozen=True):
    """One record of the progress of work on an image; `stream` is a line of text instead of a status."""

    status: str = ""
    id: str = ""
    current: int = 0
    total: int = 0
    stream: str = ""
    aux: Pushed | PushedInsteadOfIndex | BuiltImage | Traced | None = None


class Removal(Struct, kw_only=True, frozen=True):
    """One thing that an image's removal did: a name taken off it, or an image gone."""

    untagged: str = ""
    deleted: str = ""


class ImportOptions(Struct, kw_only=True, frozen=True):
    repo: str = ""
    tag: str = ""
    message: str = ""
    changes: Sequence[str] = []
    platform: str = ""


class HistoryStep(Struct, kw_only=True):
    """One line of `docker history`; an id only where the step is an image of its own here."""

    id: str
    created: str
    created_by: str
    tags: list[str]
    size: int
    comment: str


class CommitOptions(Struct, kw_only=True, frozen=True):
    repo: str = ""
    tag: str = ""
    author: str = ""
    comment: str = ""
    changes: Sequence[str] = []
    pause: bool = True
    config: ContainerConfig | None = None
