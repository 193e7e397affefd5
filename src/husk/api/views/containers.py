"""How does a container look from outside? `docker ps`, `docker inspect`, and the words of its status."""

import time
from collections.abc import Collection

import msgspec
from msgspec import UNSET

from husk.api.types.containers import (
    ContainerInspect,
    ContainerState,
    ContainerSummary,
    DriverData,
    EndpointSettings,
    NetworkSettings,
    Port,
    SummaryHostConfig,
    SummaryNetworks,
)
from husk.api.versioning import Version
from husk.engine.clock import human_duration, parse_rfc3339
from husk.engine.containers.model import ZERO_TIME, Container, Endpoint, State
from husk.engine.containers.places import Places
from husk.engine.system import STORAGE_DRIVER

# Fields that dockerd leaves out when they are empty.
_OPTIONAL_CONFIG = (
    "ArgsEscaped", "ExposedPorts", "Healthcheck", "MacAddress", "NetworkDisabled", "Shell", "StopSignal", "StopTimeout",
)  # fmt: skip
_OPTIONAL_HOST_CONFIG = ("Annotations", "Init", "Mounts", "StorageOpt", "Sysctls", "Tmpfs")

_NOTHING: tuple[object, ...] = (None, "", [], {})
_FALSE_IS_NOTHING = ("ArgsEscaped", "NetworkDisabled")

WITHOUT_DEFAULT_BRIDGE = Version(1, 52)


def without_empty(value: msgspec.Struct, optional: Collection[str]) -> dict[str, object]:
    """A document without those of the `optional` fields that hold nothing."""
    document: dict[str, object] = msgspec.to_builtins(value)
    for name in optional:
        content = document.get(name)
        if content in _NOTHING or (content is False and name in _FALSE_IS_NOTHING):
            document.pop(name, None)
    return document


def status_text(state: State, now: float) -> str:
    """`Up 5 minutes`, `Exited (0) 2 hours ago`: the STATUS column."""
    if state.status == "running":
        return f"Up {_ago(state.started_at, now)}"
    if state.status == "paused":
        return f"Up {_ago(state.started_at, now)} (Paused)"
    if state.status == "restarting":
        return f"Restarting ({state.exit_code}) {_ago(state.finished_at, now)} ago"
    if state.status == "removing":
        return "Removal In Progress"
    if state.status == "dead":
        return "Dead"
    if state.status == "created" or state.started_at == ZERO_TIME:
        return "Created"
    return f"Exited ({state.exit_code}) {_ago(state.finished_at, now)} ago"


def _ago(moment: str, now: float) -> str:
    return human_duration(max(0.0, now - parse_rfc3339(moment) / 1e9))


def command_text(path: str, args: list[str]) -> str:
    """The COMMAND column: words with spaces in quotes, as dockerd does it."""
    return " ".join([path, *(f"'{arg}'" if " " in arg else arg for arg in args)])


def summary(container: Container, image: str, sizes: tuple[int, int] | None = None) -> ContainerSummary:
    """`image` is the name the container was made from, or the id once that name means another image."""
    return ContainerSummary(
        id=container.id,
        names=["/" + container.name],
        image=image,
        image_id=container.image_id,
        command=command_text(container.path, container.args),
        created=container.created_ns // 10**9,
        ports=_ports(container),
        size_rw=sizes[0] if sizes else UNSET,
        size_root_fs=sizes[1] if sizes else UNSET,
        labels=container.config.labels,
        state=container.state.status,
        status=status_text(container.state, time.time()),
        host_config=SummaryHostConfig(
            network_mode=container.host_config.network_mode, annotations=container.host_config.annotations or UNSET
        ),
        network_settings=SummaryNetworks(networks=_networks(container)),
        mounts=container.mounts,
    )


def inspect(
    container: Container, places: Places, version: Version, sizes: tuple[int, int] | None = None
) -> ContainerInspect:
    place = places.place(container.id)
    has_log = container.host_config.log_config.type != "none"
    return ContainerInspect(
        id=container.id,
        created=container.created,
        path=container.path,
        args=container.args,
        state=_state(container.state),
        image=container.image_id,
        resolv_conf_path=str(place.resolv_conf),
        hostname_path=str(place.hostname),
        hosts_path=str(place.hosts),
        log_path=str(places.log(container.id)) if has_log else "",
        name="/" + container.name,
        restart_count=container.restart_count,
        driver=STORAGE_DRIVER,
        platform="linux",
        host_config=without_empty(container.host_config, _OPTIONAL_HOST_CONFIG),
        graph_driver=_graph_driver(container, places),
        size_rw=sizes[0] if sizes else UNSET,
        size_root_fs=sizes[1] if sizes else UNSET,
        mounts=container.mounts,
        config=without_empty(container.config, _OPTIONAL_CONFIG),
        network_settings=_network_settings(container, version),
    )


def _state(state: State) -> ContainerState:
    return ContainerState(
        status=state.status,
        running=state.running,
        paused=state.status == "paused",
        restarting=state.status == "restarting",
        oom_killed=state.oom_killed,
        dead=state.status == "dead",
        pid=state.pid,
        exit_code=state.exit_code,
        error=state.error,
        started_at=state.started_at,
        finished_at=state.finished_at,
    )


def _graph_driver(container: Container, places: Places) -> DriverData:
    root = places.root(container.id)
    data = {
        "ID": container.id,
        "MergedDir": str(root.merged),
        "UpperDir": str(root.upper),
        "WorkDir": str(root.work),
    }
    return DriverData(name=STORAGE_DRIVER, data=data)


def _exposed(container: Container) -> list[str]:
    """Ports that the container's process may listen on; they are there while it runs on a network of its own."""
    if container.state.status not in ("running", "paused") or not container.sandbox_path:
        return []
    return sorted(container.config.exposed_ports or {})


def _ports(container: Container) -> list[Port]:
    ports = []
    for text in _exposed(container):
        number, _, protocol = text.partition("/")
        if number.isdigit():
            ports.append(Port(private_port=int(number), type=protocol or "tcp"))
    return ports


def _networks(container: Container) -> dict[str, EndpointSettings]:
    return {name: _endpoint(endpoint) for name, endpoint in container.endpoints.items()}


def _endpoint(endpoint: Endpoint) -> EndpointSettings:
    request = endpoint.request
    return EndpointSettings(
        ipam_config=request.ipam_config,
        links=request.links,
        aliases=request.aliases,
        mac_address=endpoint.mac_address,
        driver_opts=request.driver_opts,
        gw_priority=request.gw_priority,
        network_id=endpoint.network_id,
        endpoint_id=endpoint.endpoint_id,
        gateway=endpoint.gateway,
        ip_address=endpoint.ip_address,
        ip_prefix_len=endpoint.prefix_len,
    )


def _network_settings(container: Container, version: Version) -> NetworkSettings:
    settings = NetworkSettings(
        sandbox_id=container.id if container.sandbox_path else "",
        sandbox_key=container.sandbox_path,
        ports=dict.fromkeys(_exposed(container)),
        networks=_networks(container),
    )
    if version < WITHOUT_DEFAULT_BRIDGE:
        bridge = container.endpoints.get("bridge")
        settings.bridge = ""
        settings.hairpin_mode = False
        settings.link_local_ipv6_address = settings.global_ipv6_address = settings.ipv6_gateway = ""
        settings.link_local_ipv6_prefix_len = settings.global_ipv6_prefix_len = 0
        settings.secondary_ip_addresses = settings.secondary_ipv6_addresses = None
        settings.endpoint_id = bridge.endpoint_id if bridge else ""
        settings.gateway = bridge.gateway if bridge else ""
        settings.ip_address = bridge.ip_address if bridge else ""
        settings.ip_prefix_len = bridge.prefix_len if bridge else 0
        settings.mac_address = bridge.mac_address if bridge else ""
    return settings
