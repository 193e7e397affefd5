"""A create request of an older API's client, read as that version of the API would have had it.

A field that is newer than the client is no wish of its: it is taken out, or refused where ignoring it would be
dangerous. Defaults that have changed are filled in as they were. Pure.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from husk.api.versioning import Version
from husk.engine.model.container_config import BindOptions, ContainerConfig, EndpointRequest, HostConfig, Mount
from husk.errors import InvalidParameter

WITH_AUTO_REMOVE = Version(1, 25)
WITH_PRIVATE_IPC = Version(1, 40)
WITH_PLATFORM = Version(1, 41)
WITH_CGROUPNS = Version(1, 41)
WITH_CONSOLE_SIZE = Version(1, 42)
WITH_CREATE_MOUNTPOINT = Version(1, 42)
WITH_STRICT_MOUNTS = Version(1, 42)
WITH_ANNOTATIONS = Version(1, 43)
WITH_RECURSIVE_READ_ONLY = Version(1, 44)
WITH_START_INTERVAL = Version(1, 44)
WITH_SEVERAL_NETWORKS = Version(1, 44)
WITH_ENDPOINT_MAC = Version(1, 44)
WITH_SUBPATH = Version(1, 45)
WITH_IMAGE_MOUNTS = Version(1, 48)

MAC_DEPRECATED = (
    "The container-wide MacAddress field is now deprecated. It should be specified in EndpointsConfig instead."
)


class Adapted(NamedTuple):
    """A request as its client means it, and warnings for the client."""

    config: ContainerConfig
    host: HostConfig
    endpoints: dict[str, EndpointRequest]
    warnings: list[str]


def adapt(
    config: ContainerConfig,
    host: HostConfig,
    endpoints: Mapping[str, EndpointRequest],
    version: Version,
    *,
    cgroup_v2: bool = True,
) -> Adapted:
    """Read the request as its client means it on a host with such cgroups."""
    changes: dict[str, object] = {"links": host.links or None}
    if version < WITH_AUTO_REMOVE:
        changes["auto_remove"] = False  # such a client removes its containers itself
    if version < WITH_PRIVATE_IPC:
        changes["ipc_mode"] = host.ipc_mode or "shareable"
    if version < WITH_CGROUPNS and not cgroup_v2:
        changes["cgroupns_mode"] = host.cgroupns_mode or "host"
    if version < WITH_CONSOLE_SIZE:
        changes["console_size"] = [0, 0]
    if version < WITH_ANNOTATIONS:
        changes["annotations"] = None
    if host.mounts:
        changes["mounts"] = [_adapted_mount(mount, version) for mount in host.mounts]
    if version < WITH_START_INTERVAL and config.healthcheck is not None:
        config = replace(config, healthcheck=replace(config.healthcheck, start_interval=0))
    if version < WITH_SEVERAL_NETWORKS and len(endpoints) > 1:
        raise InvalidParameter(f"Container cannot be created with multiple network endpoints: {', '.join(endpoints)}")
    endpoints, warnings = _with_mac(config, host, endpoints, version)
    return Adapted(replace(config, mac_address=""), replace(host, **changes), endpoints, warnings)


def _adapted_mount(mount: Mount, version: Version) -> Mount:
    bind = mount.bind_options
    if version >= WITH_STRICT_MOUNTS:
        _check_options(mount)
    if bind is not None and version < WITH_PRIVATE_IPC:
        bind = replace(bind, non_recursive=False)
    if bind is not None and version < WITH_CREATE_MOUNTPOINT:
        bind = replace(bind, create_mountpoint=False)
    if mount.type == "bind" and version < WITH_RECURSIVE_READ_ONLY:
        if bind is not None and bind.read_only_force_recursive:
            raise InvalidParameter("BindOptions.ReadOnlyForceRecursive needs API v1.44 or newer")
        if mount.read_only:
            # What was mounted inside a read-only mount stayed writable then.
            bind = replace(bind or BindOptions(), read_only_non_recursive=True)
    if version < WITH_SUBPATH and mount.volume_options is not None and mount.volume_options.subpath:
        raise InvalidParameter("VolumeOptions.Subpath needs API v1.45 or newer")
    if version < WITH_IMAGE_MOUNTS and mount.type == "image":
        raise InvalidParameter('Mount type "image" needs API v1.48 or newer')
    return replace(mount, bind_options=bind)


def _check_options(mount: Mount) -> None:
    for name, options, kind in (
        ("VolumeOptions", mount.volume_options, "volume"),
        ("BindOptions", mount.bind_options, "bind"),
        ("TmpfsOptions", mount.tmpfs_options, "tmpfs"),
        ("ImageOptions", mount.image_options, "image"),
    ):
        if options is not None and mount.type != kind:
            raise InvalidParameter(f'{name} must not be specified on mount type "{mount.type}"')


def _with_mac(
    config: ContainerConfig, host: HostConfig, endpoints: Mapping[str, EndpointRequest], version: Version
) -> tuple[dict[str, EndpointRequest], list[str]]:
    """(the endpoints, warnings): a container's one hardware address becomes that of its main network's endpoint."""
    mac, found = config.mac_address, dict(endpoints)
    if version < WITH_ENDPOINT_MAC:
        found = {name: replace(endpoint, mac_address="") for name, endpoint in found.items()}
    if not mac:
        return found, []
    mode = host.network_mode
    if mode in ("host", "none") or mode.startswith("container:"):
        if version < WITH_ENDPOINT_MAC or mode.startswith("container:"):
            raise InvalidParameter("conflicting options: mac-address and the network mode")
        return found, [MAC_DEPRECATED]
    network = _main_network(mode, found, version)
    endpoint = found.get(network, EndpointRequest())
    if endpoint.mac_address not in ("", mac):
        raise InvalidParameter(
            "the container-wide MAC address must match the endpoint-specific MAC address for the main network, "
            "or be left empty"
        )
    found[network] = replace(endpoint, mac_address=mac)
    return found, [] if version < WITH_ENDPOINT_MAC else [MAC_DEPRECATED]


def _main_network(mode: str, endpoints: Mapping[str, EndpointRequest], version: Version) -> str:
    network = "bridge" if mode in ("", "default") else mode
    if not endpoints:
        return network
    if version < WITH_SEVERAL_NETWORKS:
        return next(iter(endpoints))
    # Networks have several names: what is not the same word may be the same network, and two entries would fight.
    if network in endpoints:
        return network
    if network != "bridge" or "default" not in endpoints:
        raise InvalidParameter(
            "unable to migrate container-wide MAC address to a specific network: HostConfig.NetworkMode must match the "
            "identity of a network in NetworkSettings.Networks"
        )
    return "default"
