"""A create request of an older API's client, read as that version of the API would have had it.

A field that is newer than the client is no wish of its: it is taken out, or refused where ignoring it would be
dangerous. Defaults that have changed are filled in as they were. Pure.
"""

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


def adapt(
    config: ContainerConfig,
    host: HostConfig,
    endpoints: dict[str, EndpointRequest],
    version: Version,
    *,
    cgroup_v2: bool = True,
) -> list[str]:
    """Change the request to what its client means on a host with such cgroups; returns warnings for it."""
    host.links = host.links or None
    if version < WITH_AUTO_REMOVE:
        host.auto_remove = False  # such a client removes its containers itself
    if version < WITH_PRIVATE_IPC:
        host.ipc_mode = host.ipc_mode or "shareable"
    if version < WITH_CGROUPNS and not cgroup_v2:
        host.cgroupns_mode = host.cgroupns_mode or "host"
    if version < WITH_CONSOLE_SIZE:
        host.console_size = [0, 0]
    if version < WITH_ANNOTATIONS:
        host.annotations = None
    if version < WITH_START_INTERVAL and config.healthcheck is not None:
        config.healthcheck.start_interval = 0
    for mount in host.mounts or []:
        _adapt_mount(mount, version)
    if version < WITH_SEVERAL_NETWORKS and len(endpoints) > 1:
        raise InvalidParameter(f"Container cannot be created with multiple network endpoints: {', '.join(endpoints)}")
    return _adapt_mac(config, host, endpoints, version)


def _adapt_mount(mount: Mount, version: Version) -> None:
    bind = mount.bind_options
    if version >= WITH_STRICT_MOUNTS:
        _check_options(mount)
    if bind is not None and version < WITH_PRIVATE_IPC:
        bind.non_recursive = False
    if bind is not None and version < WITH_CREATE_MOUNTPOINT:
        bind.create_mountpoint = False
    if mount.type == "bind" and version < WITH_RECURSIVE_READ_ONLY:
        if bind is not None and bind.read_only_force_recursive:
            raise InvalidParameter("BindOptions.ReadOnlyForceRecursive needs API v1.44 or newer")
        if mount.read_only:
            # What was mounted inside a read-only mount stayed writable then.
            mount.bind_options = bind or BindOptions()
            mount.bind_options.read_only_non_recursive = True
    if version < WITH_SUBPATH and mount.volume_options is not None and mount.volume_options.subpath:
        raise InvalidParameter("VolumeOptions.Subpath needs API v1.45 or newer")
    if version < WITH_IMAGE_MOUNTS and mount.type == "image":
        raise InvalidParameter('Mount type "image" needs API v1.48 or newer')


def _check_options(mount: Mount) -> None:
    for name, options, kind in (
        ("VolumeOptions", mount.volume_options, "volume"),
        ("BindOptions", mount.bind_options, "bind"),
        ("TmpfsOptions", mount.tmpfs_options, "tmpfs"),
        ("ImageOptions", mount.image_options, "image"),
    ):
        if options is not None and mount.type != kind:
            raise InvalidParameter(f'{name} must not be specified on mount type "{mount.type}"')


def _adapt_mac(
    config: ContainerConfig, host: HostConfig, endpoints: dict[str, EndpointRequest], version: Version
) -> list[str]:
    """A container's one hardware address becomes that of its endpoint on its main network."""
    mac, config.mac_address = config.mac_address, ""
    if version < WITH_ENDPOINT_MAC:
        for endpoint in endpoints.values():
            endpoint.mac_address = ""
    if not mac:
        return []
    mode = host.network_mode
    if mode in ("host", "none") or mode.startswith("container:"):
        if version < WITH_ENDPOINT_MAC or mode.startswith("container:"):
            raise InvalidParameter("conflicting options: mac-address and the network mode")
        return [MAC_DEPRECATED]
    endpoint = _main_endpoint(mode, endpoints, version)
    if endpoint.mac_address not in ("", mac):
        raise InvalidParameter(
            "the container-wide MAC address must match the endpoint-specific MAC address for the main network, "
            "or be left empty"
        )
    endpoint.mac_address = mac
    return [] if version < WITH_ENDPOINT_MAC else [MAC_DEPRECATED]


def _main_endpoint(mode: str, endpoints: dict[str, EndpointRequest], version: Version) -> EndpointRequest:
    network = "bridge" if mode in ("", "default") else mode
    if not endpoints:
        return endpoints.setdefault(network, EndpointRequest())
    if version < WITH_SEVERAL_NETWORKS:
        return next(iter(endpoints.values()))
    # Networks have several names: what is not the same word may be the same network, and two entries would fight.
    found = endpoints.get(network) or (endpoints.get("default") if network == "bridge" else None)
    if found is None:
        raise InvalidParameter(
            "unable to migrate container-wide MAC address to a specific network: HostConfig.NetworkMode must match the "
            "identity of a network in NetworkSettings.Networks"
        )
    return found
