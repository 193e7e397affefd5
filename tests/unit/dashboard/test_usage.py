from typing import Any

from husk.dashboard.usage import Thing, UsageKind, kinds, largest, unused_volumes, volumes_size

DF: dict[str, Any] = {
    "LayersSize": 100,
    "Images": [{"Id": "i1", "RepoTags": ["app:1"], "Size": 80}, {"Id": "i2", "RepoTags": [], "Size": 60}],
    "Containers": [{"Id": "c1", "Names": ["/web"], "SizeRw": 7}, {"Id": "c2"}],
    "Volumes": [
        {"Name": "data", "UsageData": {"Size": 90, "RefCount": 1}},
        {"Name": "0ff", "UsageData": {"Size": -1, "RefCount": 0}, "Labels": {"com.docker.volume.anonymous": ""}},
        {"Name": "idle", "UsageData": {"Size": 4, "RefCount": 0}},
    ],
    "BuildCache": [{"Size": 5}, {"Size": 50, "Shared": True}],
}


def test_each_kind_is_summed_and_what_is_shared_counted_once() -> None:
    assert kinds(DF) == [
        UsageKind("Images", 2, 100),
        UsageKind("Containers", 2, 7),
        UsageKind("Volumes", 3, 94),
        UsageKind("Build cache", 2, 5),
    ]
    assert [kind.size for kind in kinds({})] == [0, 0, 0, 0]


def test_the_largest_come_first() -> None:
    found = largest(DF)
    assert found[:4] == [
        Thing("data", "volume", 90, "/volumes/data"),
        Thing("app:1", "image", 80, "/images/i1"),
        Thing("i2", "image", 60, "/images/i2"),
        Thing("web", "container", 7, "/containers/web"),
    ]
    assert all(thing.size for thing in found)


def test_volumes_that_no_container_has_are_found() -> None:
    nameless, unused = unused_volumes(DF)
    assert [each["Name"] for each in nameless] == ["0ff"] and [each["Name"] for each in unused] == ["0ff", "idle"]
    assert volumes_size(unused) == 4
