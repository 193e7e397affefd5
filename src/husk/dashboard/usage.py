"""The things that take room on the disk, out of the document that `df` answers. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# How many of the largest things are told.
MOST = 15


class UsageKind(NamedTuple):
    """All things of one kind."""

    name: str
    things: int
    size: int


class Thing(NamedTuple):
    name: str
    kind: str
    size: int
    # Its page.
    path: str


def kinds(df: Mapping[str, Any]) -> list[UsageKind]:
    """Count the things of each kind, and the room that they take. Layers that images share are counted once."""
    images, containers = df.get("Images") or [], df.get("Containers") or []
    volumes, cache = df.get("Volumes") or [], df.get("BuildCache") or []
    own = [each for each in cache if not each.get("Shared")]
    return [
        UsageKind("Images", len(images), int(df.get("LayersSize") or 0)),
        UsageKind("Containers", len(containers), total(containers, "SizeRw")),
        UsageKind("Volumes", len(volumes), sum(map(_volume_size, volumes))),
        UsageKind("Build cache", len(cache), total(own, "Size")),
    ]


def largest(df: Mapping[str, Any]) -> list[Thing]:
    """The largest images, containers and volumes that take any room, the largest first."""
    found: list[Thing] = []
    for each in df.get("Images") or []:
        path = f"/images/{str(each['Id']).removeprefix('sha256:')[:12]}"
        found.append(Thing((_names(each, "RepoTags") or [each["Id"]])[0], "image", _size(each, "Size"), path))
    for each in df.get("Containers") or []:
        name = (_names(each, "Names") or [each["Id"]])[0].lstrip("/")
        found.append(Thing(name, "container", _size(each, "SizeRw"), f"/containers/{name}"))
    for each in df.get("Volumes") or []:
        found.append(Thing(str(each["Name"]), "volume", _volume_size(each), f"/volumes/{each['Name']}"))
    return sorted((thing for thing in found if thing.size), key=lambda thing: -thing.size)[:MOST]


def total(rows: Iterable[Mapping[str, Any]], key: str) -> int:
    """The sum of sizes; what is not known counts nothing."""
    return sum(_size(each, key) for each in rows)


def unused_volumes(df: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The volumes that no container has: (those without a name of their own, all)."""
    found = df.get("Volumes") or []
    unused = [each for each in found if not int((each.get("UsageData") or {}).get("RefCount") or 0)]
    return [each for each in unused if "com.docker.volume.anonymous" in (each.get("Labels") or {})], unused


def volumes_size(volumes: Iterable[Mapping[str, Any]]) -> int:
    return sum(map(_volume_size, volumes))


def _volume_size(volume: Mapping[str, Any]) -> int:
    return _size(volume.get("UsageData") or {}, "Size")


def _size(row: Mapping[str, Any], key: str) -> int:
    return max(0, int(row.get(key) or 0))


def _names(row: Mapping[str, Any], key: str) -> list[str]:
    return [str(name) for name in row.get(key) or []]
