"""An image as seen from outside: `docker images` and `docker inspect`."""

from collections.abc import Sequence

from msgspec import UNSET, Raw

from husk.api.types.containers import DriverData
from husk.api.types.images import (
    AttestationStatement,
    HistoryItem,
    ImageInspect,
    ImageMetadata,
    ImageRootFS,
    ImageSummary,
    ManifestAttestationData,
    ManifestImageData,
    ManifestSize,
    ManifestSummary,
    UnpackedSize,
)
from husk.api.versioning import Version
from husk.api.views.containers import without_empty
from husk.engine.images.attestations import Attestation
from husk.engine.images.index import ATTESTATION, IMAGE_KIND
from husk.engine.images.manifests import ManifestFacts
from husk.engine.model.clock import parse_rfc3339
from husk.engine.model.container import ZERO_TIME
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import HistoryStep, Image
from husk.engine.system import STORAGE_DRIVER
from husk.errors import InvalidParameter

# Until 1.50 an image's configuration was shown as a container's, with its fields; until 1.52 with `null` for what is
# empty, but for these.
_OPTIONAL = (
    "ArgsEscaped", "ExposedPorts", "Healthcheck", "MacAddress", "NetworkDisabled", "Shell", "StopSignal", "StopTimeout",
)  # fmt: skip
_OF_CONTAINERS = (
    "Hostname", "Domainname", "AttachStdin", "AttachStdout", "AttachStderr", "Tty", "OpenStdin", "StdinOnce", "Image",
    "MacAddress", "NetworkDisabled", "StopTimeout",
)  # fmt: skip
WITHOUT_CONTAINER_FIELDS = Version(1, 50)
WITHOUT_EMPTY_FIELDS = Version(1, 52)
WITHOUT_VIRTUAL_SIZE = Version(1, 44)
# What the container was like that the first builders made an image of. Nothing fills it any more, but clients of then
# (Compose v1) look into it.
WITHOUT_CONTAINER_CONFIG = Version(1, 45)
WITHOUT_LEGACY_BUILDER_FIELDS = Version(1, 52)
WITHOUT_NONE_TAGS = Version(1, 43)


def summary(
    image: Image,
    tags: list[str],
    digests: list[str],
    version: Version,
    *,
    size: int | None = None,
    shared_size: int = -1,
    containers: int = -1,
) -> ImageSummary:
    size = image.size if size is None else size
    if version < WITHOUT_NONE_TAGS and not tags and not digests:
        tags, digests = ["<none>:<none>"], ["<none>@<none>"]
    return ImageSummary(
        id=image.id,
        parent_id=image.parent,
        repo_tags=tags,
        repo_digests=digests,
        created=_seconds(image.created),
        size=size,
        shared_size=shared_size,
        virtual_size=size if version < WITHOUT_VIRTUAL_SIZE else UNSET,
        labels=image.config.labels or None,
        containers=containers,
    )


def manifest(facts: ManifestFacts) -> ManifestSummary:
    """One manifest of an image; platforms whose content is not here are known by reference."""
    summary = ManifestSummary(
        id=facts.descriptor.digest,
        descriptor=facts.descriptor,
        available=facts.available,
        size=ManifestSize(total=facts.content + facts.unpacked, content=facts.content),
        kind=facts.kind,
    )
    if facts.kind == IMAGE_KIND:
        summary.image_data = ManifestImageData(
            platform=facts.platform, containers=facts.containers, size=UnpackedSize(unpacked=facts.unpacked)
        )
    elif facts.kind == ATTESTATION:
        summary.attestation_data = ManifestAttestationData(about=facts.about)
    return summary


def attestation(found: Attestation) -> AttestationStatement:
    statement = UNSET if found.statement is None else Raw(found.statement)
    return AttestationStatement(descriptor=found.descriptor, predicate_type=found.predicate_type, statement=statement)


def history_item(step: HistoryStep) -> HistoryItem:
    return HistoryItem(
        id=step.id,
        created=_seconds(step.created),
        created_by=step.created_by,
        tags=step.tags or None,
        size=step.size,
        comment=step.comment,
    )


def inspect(
    image: Image, tags: list[str], digests: list[str], version: Version, directories: Sequence[str] = ()
) -> ImageInspect:
    """`directories` are those of its layers, topmost first."""
    legacy = version < WITHOUT_LEGACY_BUILDER_FIELDS
    return ImageInspect(
        id=image.id,
        repo_tags=tags,
        repo_digests=digests,
        parent=image.parent if legacy or image.parent else UNSET,
        comment=image.comment,
        created=image.created,
        container="" if version < WITHOUT_CONTAINER_CONFIG else UNSET,
        container_config=_config(ContainerConfig(), version) if version < WITHOUT_CONTAINER_CONFIG else UNSET,
        docker_version=image.docker_version if legacy or image.docker_version else UNSET,
        author=image.author,
        config=_config(image.config, version),
        architecture=image.architecture,
        variant=image.variant or UNSET,
        os=image.os,
        size=image.size,
        virtual_size=image.size if version < WITHOUT_VIRTUAL_SIZE else UNSET,
        graph_driver=DriverData(name=STORAGE_DRIVER, data=_graph_data(directories)),
        root_fs=ImageRootFS(type="layers", layers=image.diff_ids),
        metadata=ImageMetadata(last_tag_time=image.last_tagged or ZERO_TIME),
    )


def _config(config: ContainerConfig, version: Version) -> dict[str, object]:
    shown = without_empty(config, _OPTIONAL)
    hidden = _OF_CONTAINERS if version >= WITHOUT_CONTAINER_FIELDS else ()
    shown = {name: value if value not in ([], {}) else None for name, value in shown.items() if name not in hidden}
    if version < WITHOUT_EMPTY_FIELDS:
        return shown
    return {name: value for name, value in shown.items() if value not in (None, "")}


def _graph_data(directories: Sequence[str]) -> dict[str, str]:
    data = {"UpperDir": directories[0]} if directories else {}
    return data | ({"LowerDir": ":".join(directories[1:])} if directories[1:] else {})


def _seconds(moment: str) -> int:
    """Images come from anywhere: a date that cannot be read must not break the list of all images."""
    try:
        return parse_rfc3339(moment) // 10**9
    except InvalidParameter:
        return 0
