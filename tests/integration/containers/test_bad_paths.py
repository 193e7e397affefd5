"""Paths that cannot be are refused when the container is made, with a message and without a trace."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.support.daemon import Daemon

LONG = "/" + "/".join(["x" * 100] * 50)
LONG_NAME = "/" + "y" * 300
NUL = "/dev/\0"


def host_configs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {
        "blkio weight": {"BlkioWeightDevice": [{"Path": NUL, "Weight": 100}]},
        "blkio rate": {"BlkioDeviceReadBps": [{"Path": NUL, "Rate": 100}]},
        "device": {"Devices": [{"PathOnHost": "/dev/null", "PathInContainer": NUL, "CgroupPermissions": "rwm"}]},
        "device on the host": {"Devices": [{"PathOnHost": NUL, "PathInContainer": "/x", "CgroupPermissions": "rwm"}]},
        "cgroup parent": {"CgroupParent": "/a\0b"},
        "masked": {"MaskedPaths": [NUL]},
        "read-only": {"ReadonlyPaths": [NUL]},
        "volumes from": {"VolumesFrom": ["a\0b"]},
        "extra host": {"ExtraHosts": ["a\0b:10.0.0.1"]},
        "search": {"DnsSearch": ["a\0b"]},
        "sysctl": {"Sysctls": {"net.ipv4.ip_forward": "1\0"}},
        "log option": {"LogConfig": {"Type": "json-file", "Config": {"tag": "a\0b"}}},
        "runtime": {"Runtime": "a\0b"},
        "group": {"GroupAdd": ["a\0b"]},
        "security": {"SecurityOpt": ["apparmor=a\0b"]},
    }
    for what, path in (("long", LONG), ("long name", LONG_NAME), ("nul", NUL)):
        found[f"{what} bind source"] = {"Binds": [f"{path}:/x"]}
        found[f"{what} bind target"] = {"Binds": [f"/tmp:{path}"]}
        found[f"{what} volume target"] = {"Binds": [path]}
        found[f"{what} mount source"] = {"Mounts": [{"Type": "bind", "Source": path, "Target": "/x"}]}
        found[f"{what} mount target"] = {"Mounts": [{"Type": "tmpfs", "Target": path}]}
        found[f"{what} tmpfs"] = {"Tmpfs": {path: ""}}
    return found


@pytest.mark.parametrize("name", host_configs())
def test_settings_of_the_host(daemon: Daemon, name: str):
    body = {"Image": "busybox", "Cmd": ["true"], "HostConfig": host_configs()[name]}
    answer = daemon.http("POST", "/containers/create", body)
    assert answer.status == 400, answer.body
    assert answer.message
    assert daemon.docker("ps", "-aq").stdout == "" == daemon.docker("volume", "ls", "-q").stdout


@pytest.mark.parametrize("path", [LONG, LONG_NAME, NUL])
def test_settings_of_the_container(daemon: Daemon, path: str):
    configs: list[dict[str, Any]] = [{"WorkingDir": path}, {"Volumes": {path: {}}}]
    for config in configs:
        answer = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": ["true"], **config})
        assert answer.status == 400, answer.body
    assert daemon.docker("ps", "-aq").stdout == ""


@pytest.mark.parametrize("path", [LONG, LONG_NAME, NUL])
def test_copies(daemon: Daemon, path: str):
    daemon.docker("create", "--name", "box", "busybox")
    for method in ("HEAD", "GET", "PUT"):
        assert daemon.http(method, f"/containers/box/archive?path={quote(path)}", b"").status == 400


@pytest.mark.parametrize("name", ["a\0b", "v" * 300])
def test_volumes(daemon: Daemon, name: str):
    assert daemon.http("POST", "/volumes/create", {"Name": name}).status == 400
    options = {"type": "none", "o": "bind", "device": "/\0"}
    assert daemon.http("POST", "/volumes/create", {"Name": "v", "DriverOpts": options}).status == 400
    assert daemon.docker("volume", "ls", "-q").stdout == ""


def test_a_chain_of_links_has_an_end(daemon: Daemon):
    """Python would follow two thousand links, and recurse for each."""
    script = "cd /tmp; ln -s /etc l0; i=0; while [ $i -lt 1500 ]; do ln -s l$i l$((i+1)); i=$((i+1)); done"
    daemon.docker("run", "--name", "box", "busybox", "sh", "-c", script)
    assert daemon.http("PUT", "/containers/box/archive?path=/tmp/l1500", b"").status == 400
    answer = daemon.http("GET", "/containers/box/archive?path=/tmp/l1500/")
    assert answer.status in (400, 404, 500) and "symbolic links" in answer.message
