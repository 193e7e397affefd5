"""Requests of a body are told as the engine understood them: whole, and without what may be a secret."""

import json
from typing import Any

import pytest

from husk.api.types.networks import ConnectRequest, DisconnectRequest
from husk.engine.containers.exec import ExecRecord
from husk.engine.model.container import MountPoint
from husk.engine.model.container_config import ContainerConfig, ExecConfig, HostConfig
from husk.engine.model.network import NetworkRequest
from husk.engine.volumes.spec import VolumeSpec
from husk.observe.audit.powers import powers
from husk.swarm.model.services import ObjectSpec, ServiceSpec
from husk.text.gojson import Reader
from tests.unit.api.fake_engine import container

SECRET = "hunter2"
ALL = {
    "Privileged": True,
    "Binds": ["/:/host"],
    "VolumesFrom": ["db"],
    "VolumeDriver": "local",
    "CapAdd": ["SYS_ADMIN"],
    "CapDrop": ["MKNOD"],
    "Devices": [{"PathOnHost": "/dev/sda", "PathInContainer": "/dev/x", "CgroupPermissions": "rwm"}],
    "DeviceCgroupRules": ["a *:* rwm"],
    "DeviceRequests": [{"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]]}],
    "NetworkMode": "host",
    "PidMode": "host",
    "IpcMode": "host",
    "UTSMode": "host",
    "UsernsMode": "host",
    "CgroupnsMode": "host",
    "CgroupParent": "/",
    "SecurityOpt": ["seccomp=unconfined"],
    "Sysctls": {"net.ipv4.ip_forward": "1"},
    "GroupAdd": ["0"],
    "Runtime": "other",
    "PortBindings": {"22/tcp": [{"HostIp": "", "HostPort": "22"}]},
    "PublishAllPorts": True,
    "MaskedPaths": [],
    "ReadonlyPaths": [],
}


def host(**changes: Any) -> HostConfig:
    return Reader(HostConfig).read(changes)


def test_all_powers_of_a_create_are_told() -> None:
    told = powers((ContainerConfig(image="busybox", user="0"), host(**ALL)))
    assert told == {"Image": "busybox", "User": "0", **ALL}
    assert powers((ContainerConfig(image="busybox"), HostConfig())) == {"Image": "busybox"}


def test_nothing_that_may_be_a_secret_is_told() -> None:
    config = ContainerConfig(image="x", env=[f"P={SECRET}"], cmd=[SECRET], labels={"a": SECRET})
    mount = {"Type": "volume", "Source": "v", "Target": "/v", "VolumeOptions": {"DriverConfig": {"Options": {}}}}
    options = mount["VolumeOptions"]["DriverConfig"]["Options"]  # type: ignore[index]
    options.update(type="cifs", device=f"//u:{SECRET}@nas/share", o=f"password={SECRET}")
    requests = [{"Count": 1, "Options": {"key": SECRET}}]
    asked = host(
        Annotations={"a": SECRET}, StorageOpt={"a": SECRET}, LogConfig={"Type": "x", "Config": {"a": SECRET}},
        DeviceRequests=requests, Mounts=[mount],
    )  # fmt: skip
    service = {
        "Labels": {"a": SECRET},
        "TaskTemplate": {"ContainerSpec": {"Env": [f"P={SECRET}"], "Command": [SECRET]}},
    }
    for meant in (
        (config, asked),
        container(config=config, host_config=asked),
        ExecConfig(cmd=[SECRET], env=[SECRET]),
        Reader(ServiceSpec).read(service),
        VolumeSpec("v", "local", options, {"a": SECRET}),
    ):
        assert SECRET not in json.dumps(powers(meant))


def test_dummies_hide_nothing() -> None:
    binds = [*(f"/nowhere/{number}:/{number}" for number in range(5000)), "/" + "./" * 20_000 + ":/host"]
    assert powers((ContainerConfig(), host(Binds=binds)))["Binds"] == binds


def test_of_what_was_made_the_record_tells() -> None:
    volume = {"Type": "volume", "Target": "/v", "VolumeOptions": {"DriverConfig": {"Options": {"device": "/etc"}}}}
    points = [
        MountPoint(type="bind", source="/", destination="/host"),
        MountPoint(type="volume", name="v", source="/data/volumes/v", destination="/v", rw=False),
    ]
    record = container(host_config=host(Binds=["/x/..:/host"], VolumesFrom=["a"], Mounts=[volume]), mounts=points)
    told = powers(record)
    assert (told["Id"], "Binds" in told, "VolumesFrom" in told) == (record.id, False, False)
    assert told["Mounts"] == [
        {"Type": "bind", "Source": "/", "Destination": "/host", "RW": True},
        {"Type": "volume", "Name": "v", "Destination": "/v", "RW": False, "Device": "/etc"},
    ]


def test_execs_volumes_and_services() -> None:
    config = ExecConfig(user="0", privileged=True, cmd=["sh"])
    assert powers(config) == {"User": "0", "Privileged": True}
    assert powers(ExecRecord(id="1", container_id="2", config=config)) == {
        "Id": "1",
        "Container": "2",
        **powers(config),
    }
    assert powers(VolumeSpec("v", "", {"o": "bind", "device": "/etc"})) == {"Name": "v", "Device": "/etc"}
    service: dict[str, object] = {
        "Name": "web",
        "Networks": [{"Target": "host"}],
        "TaskTemplate": {
            "ContainerSpec": {
                "Image": "busybox",
                "CapabilityAdd": ["SYS_ADMIN"],
                "Mounts": [{"Type": "bind", "Source": "/", "Target": "/host"}],
                "Privileges": {"Seccomp": {"Mode": "unconfined"}, "AppArmor": {"Mode": "disabled"}},
            }
        },
    }
    assert powers(Reader(ServiceSpec).read(service)) == {
        "Name": "web",
        "Image": "busybox",
        "CapabilityAdd": ["SYS_ADMIN"],
        "Privileges": {"Seccomp": "unconfined", "AppArmor": "disabled"},
        "Mounts": [{"Type": "bind", "Source": "/", "Destination": "/host", "RW": True}],
        "Networks": ["host"],
    }
    assert powers(ServiceSpec()) == {}


def test_networks_and_what_is_kept_for_services() -> None:
    network = NetworkRequest(name="lan", driver="macvlan", options={"parent": "eth0", "key": SECRET})
    assert powers(network) == {"Name": "lan", "Driver": "macvlan", "Parent": "eth0"}
    assert powers(ConnectRequest(container="web")) == powers(DisconnectRequest(container="web")) == {"Container": "web"}
    assert powers(ObjectSpec(name="key", data=SECRET)) == {"Name": "key"}


@pytest.mark.parametrize("meant", [None, "text", 5])
def test_of_what_is_not_known_nothing_is_told(meant: object) -> None:
    assert powers(meant) == {}
