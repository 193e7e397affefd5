"""Powers that a body asks for beyond a container: privileges, capabilities, devices, namespaces, host paths.

It is told of what the engine understood, not of what was sent: of what was made by its record, of what was refused by
the request as it was read. Never told are environment, commands, labels, annotations and options of drivers, which may
hold secrets. All entries of a list are told: the size of a document bounds them, and a bound of our own would hide what
stands behind it.
"""

from collections.abc import Iterable, Mapping

import msgspec

from husk.api.types.networks import ConnectRequest, DisconnectRequest
from husk.engine.containers.exec import ExecRecord
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.container_config import ContainerConfig, ExecConfig, HostConfig, Mount
from husk.engine.model.network import NetworkRequest
from husk.engine.volumes.spec import VolumeSpec
from husk.swarm.model.services import ContainerSpec, ObjectSpec, ServiceSpec

Told = dict[str, object]

# What is told of a HostConfig where it is given, in this order and by its names in the API.
_OF_HOST = (
    "Privileged", "Binds", "VolumesFrom", "VolumeDriver", "CapAdd", "CapDrop", "Devices", "DeviceCgroupRules",
    "DeviceRequests", "NetworkMode", "PidMode", "IpcMode", "UTSMode", "UsernsMode", "CgroupnsMode", "CgroupParent",
    "SecurityOpt", "Sysctls", "GroupAdd", "Runtime", "PortBindings", "PublishAllPorts",
)  # fmt: skip
# With an empty list these shields of /proc and /sys are off.
_SHIELDS = ("MaskedPaths", "ReadonlyPaths")
_OF_SERVICE = ("CapabilityAdd", "CapabilityDrop", "Sysctls")
_OF_REQUEST = {"Driver", "Count", "DeviceIDs", "Capabilities"}


def powers(meant: object) -> Told:
    """The powers that are in what a handler has noted as the meaning of its request; empty where nothing is known."""
    match meant:
        case Container():
            return _of_container(meant)
        case (ContainerConfig() as config, HostConfig() as host):
            return {**_given(Image=config.image, User=config.user), **_of_host(host), **_of_mounts(host.mounts)}
        case ExecRecord():
            return {"Id": meant.id, "Container": meant.container_id, **_of_exec(meant.config)}
        case ExecConfig():
            return _of_exec(meant)
        case ServiceSpec():
            return _of_service(meant)
        case VolumeSpec():
            return _given(Name=meant.name, Driver=meant.driver, Device=_device(meant.options))
        case NetworkRequest():
            # The parent is an interface of the host, which a container gets a part of.
            return _given(Name=meant.name, Driver=meant.driver, Parent=meant.options.get("parent"))
        case ConnectRequest() | DisconnectRequest():
            return _given(Container=meant.container)
        case ObjectSpec():
            return _given(Name=meant.name)
    return {}


def _given(**values: object) -> Told:
    return {name: value for name, value in values.items() if value}


def _of_container(record: Container) -> Told:
    told = _of_host(record.host_config)
    for name in ("Binds", "VolumesFrom"):
        told.pop(name, None)  # the record says what became of them
    devices = {mount.target: _device_of(mount) for mount in record.host_config.mounts or ()}
    mounts = [{**_of_point(point), **_given(Device=devices.get(point.destination))} for point in record.mounts]
    config = record.config
    return {"Id": record.id, **_given(Image=config.image, User=config.user), **told, **_given(Mounts=mounts)}


def _of_point(point: MountPoint) -> Told:
    source = {"Source": point.source} if point.type == "bind" else _given(Name=point.name)
    return {"Type": point.type, **source, "Destination": point.destination, "RW": point.rw}


def _of_host(config: HostConfig) -> Told:
    fields = msgspec.to_builtins(config)
    told: Told = {name: fields[name] for name in _OF_HOST if fields[name]}
    if requests := told.get("DeviceRequests"):
        assert isinstance(requests, list)
        told["DeviceRequests"] = [{name: each[name] for name in each if name in _OF_REQUEST} for each in requests]
    return told | {name: [] for name in _SHIELDS if fields[name] == []}


def _of_mounts(mounts: Iterable[Mount] | None) -> Told:
    return _given(
        Mounts=[
            {
                **_given(Type=mount.type, Source=mount.source, Device=_device_of(mount)),
                "Destination": mount.target,
                "RW": not mount.read_only,
            }
            for mount in mounts or ()
        ]
    )


def _device_of(mount: Mount) -> str:
    options = mount.volume_options
    driver = options.driver_config if options is not None else None
    return _device(driver.options) if driver is not None else ""


def _device(options: Mapping[str, str] | None) -> str:
    """The path of the host or the device that a volume is made of; a name in a network may have a password with it."""
    device = (options or {}).get("device", "")
    return device if device.startswith("/") and not device.startswith("//") else ""


def _of_exec(config: ExecConfig) -> Told:
    return _given(User=config.user, Privileged=config.privileged)


def _of_service(spec: ServiceSpec) -> Told:
    container = spec.task_template.container_spec
    networks = [each.target for each in (*spec.task_template.networks, *spec.networks)]
    return _given(Name=spec.name, **(_of_tasks(container) if container is not None else {}), Networks=networks)


def _of_tasks(container: ContainerSpec) -> Told:
    fields = msgspec.to_builtins(container)
    told: Told = {name: fields[name] for name in ("Image", "User", *_OF_SERVICE) if fields.get(name)}
    privileges, modes = container.privileges, {}
    if privileges is not None:
        modes = _given(
            Seccomp=privileges.seccomp and privileges.seccomp.mode,
            AppArmor=privileges.app_armor and privileges.app_armor.mode,
            NoNewPrivileges=privileges.no_new_privileges,
        )
    return {**told, **_given(Privileges=modes), **_of_mounts(container.mounts)}
