"""Nothing as dockerd 28.5 writes it: `{}`, `[]`, `null` or no field, for each thing its own.

Go's clients write into maps that they were given, Python's look into lists: each was made for what dockerd answers. The
expected values are those of dockerd 28.5.2 (API 1.51).
"""

from typing import Any

import pytest

from tests.support.daemon import Daemon

API = "/v1.51"
# What a container's HostConfig has for nothing, but for what it leaves out.
NULL = (
    "Binds", "PortBindings", "VolumesFrom", "CapAdd", "CapDrop", "Dns", "DnsOptions", "DnsSearch", "ExtraHosts",
    "GroupAdd", "Links", "SecurityOpt", "BlkioWeightDevice", "BlkioDeviceReadBps", "BlkioDeviceWriteBps",
    "BlkioDeviceReadIOps", "BlkioDeviceWriteIOps", "Devices", "DeviceCgroupRules", "DeviceRequests",
    "MemorySwappiness", "PidsLimit", "Ulimits",
)  # fmt: skip


def shown(daemon: Daemon, path: str) -> Any:
    answer = daemon.http("GET", API + path)
    assert answer.status == 200, answer.body
    return answer.json()


def test_containers(daemon: Daemon) -> None:
    assert daemon.http("POST", API + "/containers/create?name=plain", {"Image": "busybox"}).json()["Warnings"] == []
    found = shown(daemon, "/containers/plain/json")
    host, config, networks = found["HostConfig"], found["Config"], found["NetworkSettings"]
    assert sorted(name for name, value in host.items() if value is None) == sorted(NULL)
    assert {name: value for name, value in host.items() if value in ([], {})} == {}
    assert (config["Labels"], config["Volumes"], config["OnBuild"], config["Entrypoint"]) == ({}, None, None, None)
    assert (found["Mounts"], found["ExecIDs"], networks["Ports"]) == ([], None, {})
    [listed] = shown(daemon, '/containers/json?all=1&filters={"name":["plain"]}')
    assert (listed["Ports"], listed["Labels"], listed["Mounts"]) == ([], {}, [])
    assert shown(daemon, "/containers/plain/changes") is None
    daemon.http("POST", API + "/containers/create?name=linked", {"Image": "busybox", "HostConfig": {"Links": []}})
    assert shown(daemon, "/containers/linked/json")["HostConfig"]["Links"] is None


def test_images(daemon: Daemon) -> None:
    found = shown(daemon, "/images/busybox/json")
    assert {name: found["Config"][name] for name in ("Labels", "OnBuild", "Volumes")} == {
        "Labels": None,
        "OnBuild": None,
        "Volumes": None,
    }
    assert found["RepoDigests"] == []
    [listed] = shown(daemon, "/images/json")
    assert (listed["RepoDigests"], listed["Labels"]) == ([], None)
    [counted] = shown(daemon, "/system/df")["Images"]
    assert (counted["RepoDigests"], counted["Labels"]) == (None, None)
    assert shown(daemon, '/images/json?filters={"dangling":["true"]}') == []


@pytest.mark.parametrize(("ipam", "options"), [(None, None), ({}, None), ({"Options": {}}, {})])
def test_networks(daemon: Daemon, ipam: object, options: object) -> None:
    assert daemon.http("POST", API + "/networks/create", {"Name": "some", "IPAM": ipam}).status == 201
    try:
        found = shown(daemon, "/networks/some")
        assert (found["Containers"], found["Options"], found["Labels"]) == ({}, {}, {})
        assert found["IPAM"]["Options"] == options
        for name in ("host", "none"):
            assert shown(daemon, f"/networks/{name}")["IPAM"] == {"Driver": "default", "Options": None, "Config": None}
    finally:
        daemon.http("DELETE", API + "/networks/some")


def test_volumes(daemon: Daemon) -> None:
    assert shown(daemon, "/volumes") == {"Volumes": [], "Warnings": None}
    for labels, options in ((None, None), ({}, {})):
        made = daemon.http("POST", API + "/volumes/create", {"Name": "some", "Labels": labels, "DriverOpts": options})
        try:
            assert (made.json()["Labels"], made.json()["Options"]) == (labels, options)
        finally:
            daemon.http("DELETE", API + "/volumes/some")


def test_the_engine(daemon: Daemon) -> None:
    found = shown(daemon, "/info")
    assert found["RegistryConfig"]["Mirrors"] is None
    assert found["RegistryConfig"]["IndexConfigs"]["docker.io"]["Mirrors"] == []
    assert found["Labels"] == [] and found["Warnings"] != []


def test_prunes_of_nothing(daemon: Daemon) -> None:
    for path, told in (
        ("/containers/prune", {"ContainersDeleted": None, "SpaceReclaimed": 0}),
        ("/images/prune", {"ImagesDeleted": None, "SpaceReclaimed": 0}),
        ("/networks/prune", {"NetworksDeleted": None}),
        ("/volumes/prune", {"VolumesDeleted": [], "SpaceReclaimed": 0}),
    ):
        assert daemon.http("POST", API + path).json() == told
