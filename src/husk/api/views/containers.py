"""A container as seen from outside: `docker ps`, `docker inspect`, and the words of its status."""

import posixpath
import time
from collections.abc import Collection, Sequence
from math import inf

import msgspec
from msgspec import UNSET, Struct

from husk.api.types.containers import (
    ContainerInspect,
    ContainerState,
    ContainerSummary,
    DriverData,
    HealthSummary,
    MountPoint,
    NetworkSettings,
    SummaryHostConfig,
    SummaryNetworks,
)
from husk.api.versioning import CURRENT, Version
from husk.api.views import endpoints
from husk.engine.model import container as model
from husk.engine.model.clock import human_duration, lasts, parse_rfc3339
from husk.engine.model.container import ZERO_TIME, Container, State
from husk.engine.model.paths import HostPaths
from husk.engine.networks.endpoints import in_order
from husk.engine.system import STORAGE_DRIVER

# Fields that dockerd leaves out when they are empty.
_OPTIONAL_CONFIG = (
    "ArgsEscaped", "ExposedPorts", "Healthcheck", "MacAddress", "NetworkDisabled", "Shell", "StopSignal", "StopTimeout",
)  # fmt: skip
_OPTIONAL_HOST_CONFIG = ("Annotations", "Init", "Mounts", "StorageOpt", "Sysctls", "Tmpfs")

_NOTHING: tuple[object, ...] = (None, "", [], {})
_FALSE_IS_NOTHING = ("ArgsEscaped", "NetworkDisabled")

WITH_LISTED_ANNOTATIONS = Version(1, 46)
WITHOUT_DEFAULT_BRIDGE = Version(1, 52)
WITH_HEALTH_SUMMARY = Version(1, 52)


def without_empty(value: msgspec.Struct, optional: Collection[str]) -> dict[str, object]:
    """A document without those of the `optional` fields that hold nothing."""
    document: dict[str, object] = msgspec.to_builtins(value)
    for name in optional:
        content = document.get(name)
        if content in _NOTHING or (content is False and name in _FALSE_IS_NOTHING):
            document.pop(name, None)
    return document


class StatusText(Struct, frozen=True):
    """The STATUS column, `Up 5 minutes`, `Exited (0) 2 hours ago`: what stands around the time, and since when."""

    before: str
    since: float | None = None
    after: str = ""

    def at(self, now: float) -> tuple[str, float]:
        """The words of that moment, and for how many seconds they are right."""
        if self.since is None:
            return self.before, inf
        passed = max(0.0, now - self.since)
        return self.before + human_duration(passed) + self.after, lasts(passed)


def status_of(state: State) -> StatusText:
    if state.status == "running":
        return StatusText("Up ", _seconds(state.started_at), _health_text(state))
    if state.status == "paused":
        return StatusText("Up ", _seconds(state.started_at), " (Paused)")
    if state.status == "restarting":
        return StatusText(f"Restarting ({state.exit_code}) ", _seconds(state.finished_at), " ago")
    if state.status == "removing":
        return StatusText("Removal In Progress")
    if state.status == "dead":
        return StatusText("Dead")
    if state.status == "created" or state.started_at == ZERO_TIME:
        return StatusText("Created")
    return StatusText(f"Exited ({state.exit_code}) ", _seconds(state.finished_at), " ago")


def _health_text(state: State) -> str:
    if state.health is None:
        return ""
    return " (health: starting)" if state.health.status == "starting" else f" ({state.health.status})"


def _seconds(moment: str) -> float:
    return parse_rfc3339(moment) / 1e9


def command_text(path: str, args: Sequence[str]) -> str:
    """The COMMAND column: words with spaces in quotes, as dockerd does it."""
    return " ".join([path, *(f"'{arg}'" if " " in arg else arg for arg in args)])


def summary(
    container: Container,
    names: Sequence[str],
    image: str,
    sizes: tuple[int, int] | None = None,
    version: Version = CURRENT,
) -> ContainerSummary:
    """`image` is the name the container was made from, or the id once that name means another image."""
    return ContainerSummary(
        id=container.id,
        names=["/" + name for name in names],
        image=image,
        image_id=container.image_id,
        command=command_text(container.path, container.args),
        created=container.created_ns // 10**9,
        ports=endpoints.port_list(container),
        size_rw=(sizes[0] or UNSET) if sizes else UNSET,
        size_root_fs=sizes[1] if sizes else UNSET,
        labels=container.config.labels,
        state=container.state.status,
        status=status_of(container.state).at(time.time())[0],
        host_config=SummaryHostConfig(
            network_mode=container.host_config.network_mode,
            annotations=(container.host_config.annotations if version >= WITH_LISTED_ANNOTATIONS else None) or UNSET,
        ),
        network_settings=SummaryNetworks(networks=endpoints.listed_networks(container)),
        mounts=[_mount_point(point, listed=True) for point in container.mounts],
        health=_health_summary(container) if version >= WITH_HEALTH_SUMMARY else UNSET,
    )


def _mount_point(point: model.MountPoint, listed: bool = False) -> MountPoint:
    """In lists dockerd does not tell where a volume lies that `Config.Volumes` has brought."""
    source = point.source.removesuffix("/" + point.subpath) if point.subpath else point.source
    return MountPoint(
        type=point.type,
        name=point.name or UNSET,
        source="" if listed and point.declared else source,
        destination=point.destination,
        driver=point.driver or UNSET,
        mode=point.mode,
        rw=point.rw,
        propagation=point.propagation,
    )


def _health_summary(container: Container) -> HealthSummary:
    health = container.state.health
    if health is None or not container.state.running:
        return HealthSummary(status="none", failing_streak=0)
    return HealthSummary(status=health.status, failing_streak=health.failing_streak)


def inspect(
    container: Container,
    paths: HostPaths,
    version: Version,
    sizes: tuple[int, int] | None = None,
    exec_ids: list[str] | None = None,
) -> ContainerInspect:
    # The files are made at the first start.
    has_files = container.state.started_at != ZERO_TIME
    has_log = has_files and container.host_config.log_config.type in ("", "json-file")
    return ContainerInspect(
        id=container.id,
        created=container.created,
        path=container.path,
        args=container.args,
        state=_state(container.state),
        image=container.image_id,
        resolv_conf_path=paths.resolv_conf if has_files else "",
        hostname_path=paths.hostname if has_files else "",
        hosts_path=paths.hosts if has_files else "",
        log_path=paths.log if has_log else "",
        name="/" + container.name,
        restart_count=container.restart_count,
        driver=STORAGE_DRIVER,
        platform="linux",
        exec_ids=exec_ids or None,
        host_config=without_empty(container.host_config, _OPTIONAL_HOST_CONFIG),
        graph_driver=_graph_driver(container, paths),
        size_rw=sizes[0] if sizes else UNSET,
        size_root_fs=sizes[1] if sizes else UNSET,
        mounts=[_mount_point(point) for point in container.mounts],
        config=_config(container, version),
        network_settings=_network_settings(container, version),
    )


def _config(container: Container, version: Version) -> dict[str, object]:
    """Until 1.52 with the hardware address that was asked for on the container's main network."""
    document = without_empty(container.config, _OPTIONAL_CONFIG)
    main = next(iter(in_order(container)), None)
    if version >= WITHOUT_DEFAULT_BRIDGE:
        document.pop("MacAddress", None)
    elif main is not None and main.request.mac_address:
        document["MacAddress"] = main.request.mac_address
    return document


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
        health=state.health or UNSET,
    )


def _graph_driver(container: Container, paths: HostPaths) -> DriverData:
    data = {
        "ID": container.id,
        "LowerDir": ":".join(paths.lower),
        "MergedDir": paths.merged,
        "UpperDir": paths.upper,
        "WorkDir": paths.work,
    }
    return DriverData(name=STORAGE_DRIVER, data=data)


def _sandbox_key(container: Container) -> str:
    """A file by which others get into its network; none for one that is in another container's, as in dockerd."""
    if container.host_config.network_mode.startswith("container:"):
        return ""
    return container.sandbox_path or f"/proc/{container.state.pid}/ns/net"


def _sandbox_id(container: Container) -> str:
    """The name of the network namespace of this run, which the next run has not. Its file's name begins it.

    The rest is the container's id backwards: whoever looks for that finds the container alone."""
    begin = posixpath.basename(container.sandbox_path) or f"{container.state.pid:012x}"
    return (begin + container.id[::-1])[: len(container.id)]


def _network_settings(container: Container, version: Version) -> NetworkSettings:
    connected = endpoints.is_connected(container)
    key = _sandbox_key(container) if connected else ""
    settings = NetworkSettings(
        sandbox_id=_sandbox_id(container) if key else "",
        sandbox_key=key,
        ports=endpoints.port_map(container),
        networks=endpoints.networks(container, version),
    )
    bridge = container.endpoints.get("bridge") if connected else None
    # Tools and scripts of all ages read these two, whatever version they ask for.
    settings.gateway = bridge.gateway if bridge else ""
    settings.ip_address = bridge.ip_address if bridge else ""
    if version < WITHOUT_DEFAULT_BRIDGE:
        settings.bridge = ""
        settings.hairpin_mode = False
        settings.link_local_ipv6_address = settings.global_ipv6_address = settings.ipv6_gateway = ""
        settings.link_local_ipv6_prefix_len = settings.global_ipv6_prefix_len = 0
        settings.secondary_ip_addresses = settings.secondary_ipv6_addresses = None
        settings.endpoint_id = bridge.endpoint_id if bridge else ""
        settings.ip_prefix_len = bridge.prefix_len if bridge else 0
        settings.mac_address = bridge.mac_address if bridge else ""
    return settings
