"""Volumes on the wire."""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType


class VolumeRequest(Struct, kw_only=True, rename="pascal"):
    name: str = ""
    driver: str = ""
    driver_opts: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    cluster_volume_spec: dict[str, object] | None = None


class UsageData(Struct, kw_only=True, rename="pascal"):
    size: int
    ref_count: int


class Volume(Struct, kw_only=True, rename="pascal"):
    created_at: str
    driver: str
    labels: Mapping[str, str] | None
    mountpoint: str
    name: str
    options: Mapping[str, str] | None
    scope: str = "local"
    usage_data: UsageData | UnsetType = UNSET


class VolumeList(Struct, kw_only=True, rename="pascal"):
    volumes: list[Volume]
    warnings: list[str] | None = None


class VolumesPruned(Struct, kw_only=True, rename="pascal"):
    volumes_deleted: list[str]
    space_reclaimed: int
