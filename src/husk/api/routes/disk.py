"""The room that things take on the disk: `docker system df`."""

from typing import TYPE_CHECKING

from msgspec import UNSET

from husk.api.calls.call import Call
from husk.api.calls.encoded import ImageNames
from husk.api.calls.router import change, read
from husk.api.http.response import Answer
from husk.api.types.containers import ContainerSummary
from husk.api.types.disk import BuildCacheRecord, BuildsPruned, DiskUsage, DiskUsageSums, Usage
from husk.api.types.images import ImageSummary
from husk.api.types.volumes import Volume
from husk.api.versioning import Version
from husk.api.views import containers as container_views
from husk.api.views import images as image_views
from husk.api.views import volumes as volume_views
from husk.engine.model.clock import rfc3339
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter

if TYPE_CHECKING:
    from husk.builder.cache.prune import Item

TYPES = ("container", "image", "volume", "build-cache")
BUILD_CACHE_FILTERS = (
    "until", "unused-for", "id", "parent", "type", "description", "inuse", "shared", "private", "label", "label!",
)  # fmt: skip
LABELS = ("label", "label!")
KEPT = ("max-used-space", "reserved-space", "keep-storage")
WITH_SUMS = Version(1, 52)
WITHOUT_BUILDER_SIZE = Version(1, 42)


async def usage(call: Call) -> Answer:
    wanted = call.query.getall("type") or list(TYPES)
    for kind in wanted:
        if kind not in TYPES:
            raise InvalidParameter(f"unknown object type: {kind}")
    images = _images(call) if "image" in wanted else None
    containers = await _containers(call) if "container" in wanted else None
    volumes = await _volumes(call) if "volume" in wanted else None
    builds = await _builds(call) if "build-cache" in wanted else None
    if call.version >= WITH_SUMS:
        return call.json(_sums(call, images, containers, volumes, builds))
    for image in images or ():
        # Only here: `docker images` has empty lists.
        image.repo_tags, image.repo_digests = image.repo_tags or None, image.repo_digests or None
    return call.json(
        DiskUsage(
            layers_size=call.engine.images.layers_size() if images is not None else 0,
            images=_listed(images),
            containers=_listed(containers),
            volumes=_listed(volumes),
            build_cache=_listed(builds),
            builder_size=sum(build.size for build in builds or ()) if call.version < WITHOUT_BUILDER_SIZE else UNSET,
        )
    )


def _images(call: Call) -> list[ImageSummary]:
    images = call.engine.images
    return [
        image_views.summary(
            image,
            images.tags(image),
            images.digests(image),
            call.version,
            size=images.size(image),
            shared_size=images.shared_size(image),
            containers=images.containers_of(image),
        )
        for image in images.listing(False, Filters())
    ]


async def _containers(call: Call) -> list[ContainerSummary]:
    names = ImageNames(call.engine)
    containers = call.engine.containers
    found = containers.listing(True, 0, Filters())
    sizes = await containers.sizes_of(found)
    called = containers.names()
    return [
        container_views.summary(container, called[container.id], names.of(container), size, call.version)
        for container, size in zip(found, sizes, strict=True)
        if container.id in called
    ]


async def _volumes(call: Call) -> list[Volume]:
    volumes = call.engine.volumes
    return [volume_views.usage(measured, volumes.mountpoint(measured.volume)) for measured in await volumes.usage()]


def _sums(
    call: Call,
    images: list[ImageSummary] | None,
    containers: list[ContainerSummary] | None,
    volumes: list[Volume] | None,
    builds: list[BuildCacheRecord] | None,
) -> DiskUsageSums:
    verbose = call.flag("verbose")
    sums = DiskUsageSums()
    if images is not None:
        sums.image_usage = Usage(
            active_count=sum(1 for image in images if image.containers > 0),
            total_count=len(images),
            reclaimable=call.engine.images.reclaimable(),
            total_size=call.engine.images.layers_size(),
        )
        sums.image_usage.items = (_listed(images) or []) if verbose else UNSET
    if containers is not None:
        sizes = [(container.size_rw or 0, container.state) for container in containers]
        sums.container_usage = Usage(
            active_count=sum(1 for _, state in sizes if state in ("running", "paused", "restarting")),
            total_count=len(containers),
            reclaimable=sum(size for size, state in sizes if state not in ("running", "paused", "restarting")),
            total_size=sum(size for size, _ in sizes),
        )
        sums.container_usage.items = (_listed(containers) or []) if verbose else UNSET
    if volumes is not None:
        measured = [data for volume in volumes if (data := volume.usage_data)]
        sums.volume_usage = Usage(
            active_count=sum(1 for data in measured if data.ref_count),
            total_count=len(volumes),
            reclaimable=sum(data.size for data in measured if not data.ref_count),
            total_size=sum(data.size for data in measured),
        )
        sums.volume_usage.items = (_listed(volumes) or []) if verbose else UNSET
    if builds is not None:
        sums.build_cache_usage = Usage(
            active_count=sum(1 for build in builds if build.in_use),
            total_count=len(builds),
            reclaimable=sum(build.size for build in builds if not build.in_use and not build.shared),
            total_size=sum(build.size for build in builds),
        )
        sums.build_cache_usage.items = (_listed(builds) or []) if verbose else UNSET
    return sums


async def _builds(call: Call) -> list[BuildCacheRecord]:
    return [_build(item) for item in await call.engine.builder.cache()]


def _build(item: "Item") -> BuildCacheRecord:
    return BuildCacheRecord(
        id=item.id,
        parents=item.parents or UNSET,
        type=item.type,
        description=item.description,
        in_use=item.in_use,
        shared=item.shared,
        size=item.size,
        created_at=rfc3339(item.created),
        last_used_at=rfc3339(item.last_used),
        usage_count=item.uses,
    )


def _listed(
    things: list[ImageSummary] | list[ContainerSummary] | list[Volume] | list[BuildCacheRecord] | None,
) -> list[object] | None:
    return None if things is None else list[object](things)


async def prune_builds(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), BUILD_CACHE_FILTERS)
    for key in filters:
        if key not in LABELS and (len(filters.get(key)) > 1 or "" in filters.get(key)):
            raise InvalidParameter(f"failed to prune build cache: invalid filter '{key}': one value is expected")
    # Records of builds have no labels: dockerd takes these filters and looks at none of them.
    wanted = Filters({key: filters.get(key) for key in filters if key not in LABELS})
    keep = next((size for name in KEPT if (size := call.integer(name))), 0)
    builder = await call.engine.builder.get()
    pruned = await builder.prune(wanted, all=call.flag("all"), keep=max(keep, 0))
    return call.json(
        BuildsPruned(caches_deleted=[item.id for item in pruned.items] or None, space_reclaimed=pruned.freed)
    )


ROUTES = (
    change("POST", "/build/prune", prune_builds),
    read("/system/df", usage),
)
