"""Disk usage on the wire: what `docker system df` reads. Its shape changed with 1.52."""

from msgspec import UNSET, Struct, UnsetType, field


class DiskUsage(Struct, kw_only=True, rename="pascal"):
    """Until 1.51: every thing, for the client to add up; None stands for what was not asked for."""

    layers_size: int
    images: list[object] | None
    containers: list[object] | None
    volumes: list[object] | None
    build_cache: list[object] | None
    builder_size: int | UnsetType = UNSET


class Usage(Struct, kw_only=True, rename="pascal"):
    """Since 1.52: sums of one kind of thing, and with `verbose` the things."""

    active_count: int
    total_count: int
    reclaimable: int
    total_size: int
    items: list[object] | UnsetType = UNSET


class DiskUsageSums(Struct, kw_only=True, rename="pascal"):
    image_usage: Usage | UnsetType = UNSET
    container_usage: Usage | UnsetType = UNSET
    volume_usage: Usage | UnsetType = UNSET
    build_cache_usage: Usage | UnsetType = UNSET


class BuildCacheRecord(Struct, kw_only=True, rename="pascal"):
    id: str = field(name="ID")
    parents: list[str] | UnsetType = UNSET
    type: str
    description: str
    in_use: bool
    shared: bool
    size: int
    created_at: str
    last_used_at: str
    usage_count: int


class BuildsPruned(Struct, kw_only=True, rename="pascal"):
    caches_deleted: list[str] | None = None
    space_reclaimed: int = 0
