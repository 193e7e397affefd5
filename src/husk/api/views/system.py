"""The daemon, its host and its events as seen from outside: `docker version`, `docker info`, `docker events`."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from husk.api.types.system import (
    AddressPool,
    Commit,
    ComponentVersion,
    EventActor,
    EventMessage,
    FirewallBackend,
    IndexConfig,
    Platform,
    PluginsInfo,
    RegistryConfig,
    RuntimeInfo,
    SwarmInfo,
    SystemInfo,
    SystemVersion,
)
from husk.api.versioning import CURRENT, MINIMUM, Version
from husk.config import Config
from husk.engine.logs.options import DRIVERS
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container import Container
from husk.engine.model.events import Event
from husk.engine.system import CGROUP_DRIVER, STORAGE_DRIVER, Component, DaemonInfo

if TYPE_CHECKING:
    from husk.swarm.membership.cluster import Cluster
    from husk.swarm.model.swarm import Standing

WITHOUT_KERNEL_MEMORY = Version(1, 42)
WITH_FIREWALL_BACKEND = Version(1, 49)
WITHOUT_BRIDGE_NETFILTER = Version(1, 50)
WITHOUT_EVENT_REPEATS = Version(1, 52)
WITH_RUNTIME_STATUS = Version(1, 44)
# The document by which a runtime tells what it can do, as dockerd names it.
FEATURES = "org.opencontainers.runtime-spec.features"
LOOPBACK = ("127.0.0.0/8", "::1/128")


def version_document(
    facts: DaemonInfo, components: Iterable[Component], minimum: Version = MINIMUM, experimental: bool = False
) -> SystemVersion:
    details = {
        "ApiVersion": str(CURRENT),
        "Arch": facts.architecture,
        "BuildTime": "",
        "Experimental": "true" if experimental else "false",
        "GitCommit": "",
        "GoVersion": f"python{facts.python_version}",
        "KernelVersion": facts.kernel,
        "MinAPIVersion": str(minimum),
        "Os": "linux",
    }
    return SystemVersion(
        platform=Platform(name="Husk"),
        components=[
            ComponentVersion(name="Engine", version=facts.version, details=details),
            *(ComponentVersion(name=c.name, version=c.version, details={"GitCommit": c.commit}) for c in components),
        ],
        version=facts.version,
        api_version=str(CURRENT),
        min_api_version=str(minimum),
        git_commit="",
        go_version=details["GoVersion"],
        os="linux",
        arch=facts.architecture,
        kernel_version=facts.kernel,
        experimental=experimental or UNSET,
        build_time="",
    )


_SPACE = ("Data Space Total", "Data Space Available")


def info_document(
    facts: DaemonInfo,
    config: Config,
    containers: Sequence[Container],
    images: int,
    listeners: int,
    tasks: int,
    cluster: "Cluster | None" = None,
    standing: "Standing | None" = None,
    features: Mapping[str, str] | None = None,
    trouble: str = "",
    *,
    disk: tuple[int, int] = (0, 0),
) -> SystemInfo:
    states = Counter(container.state.status for container in containers)
    running = states["running"] + states["restarting"]
    has_cpu = "cpu" in facts.controllers
    has_memory = "memory" in facts.controllers
    return SystemInfo(
        id=facts.engine_id,
        containers=len(containers),
        containers_running=running,
        containers_paused=states["paused"],
        containers_stopped=len(containers) - running - states["paused"],
        images=images,
        driver=STORAGE_DRIVER,
        driver_status=[
            ["Backing Filesystem", facts.backing_filesystem],
            ["Supports d_type", "true"],
            # In the words of dockerd's drivers that know it.
            *([name, f"{count / 1e9:.1f} GB"] for name, count in zip(_SPACE, disk, strict=True)),
        ],
        plugins=PluginsInfo(
            volume=["local"],
            network=["bridge", "host", "ipvlan", "macvlan", "null", "overlay"],
            authorization=None,
            log=sorted({*DRIVERS} - {"none"}),
        ),
        memory_limit=has_memory,
        swap_limit=facts.swap_limit,
        cpu_cfs_period=has_cpu,
        cpu_cfs_quota=has_cpu,
        cpu_shares=has_cpu,
        cpu_set="cpuset" in facts.controllers,
        pids_limit="pids" in facts.controllers,
        ipv4_forwarding=facts.ip_forwarding,
        debug=config.log_level == "debug",
        nfd=len(os.listdir("/proc/self/fd")),
        oom_kill_disable=has_memory and facts.cgroup_version == "1",
        ngoroutines=tasks,
        system_time=rfc3339(now_ns()),
        logging_driver=config.log_driver,
        cgroup_driver=CGROUP_DRIVER,
        cgroup_version=facts.cgroup_version,
        nevents_listener=listeners,
        kernel_version=facts.kernel,
        operating_system=facts.operating_system,
        os_version=facts.os_version,
        os_type="linux",
        architecture=facts.machine,
        index_server_address="https://index.docker.io/v1/",
        registry_config=_registry_config(config),
        ncpu=facts.cpus,
        mem_total=facts.memory,
        docker_root_dir=str(config.data_root),
        http_proxy=_proxy(config.proxies.http_proxy, "HTTP_PROXY"),
        https_proxy=_proxy(config.proxies.https_proxy, "HTTPS_PROXY"),
        no_proxy=_proxy(config.proxies.no_proxy, "NO_PROXY"),
        name=facts.hostname,
        labels=list(config.labels),
        experimental_build=config.experimental,
        server_version=facts.version,
        runtimes={
            name: RuntimeInfo(
                path=runtime.path,
                runtime_args=list(runtime.args) or UNSET,
                status={FEATURES: told} if features and (told := features.get(name)) else UNSET,
            )
            for name, runtime in facts.runtimes.items()
        },
        default_runtime=facts.default_runtime,
        swarm=_swarm_info(cluster, standing, trouble),
        live_restore_enabled=config.live_restore,
        isolation="",
        init_binary=facts.init_binary,
        containerd_commit=Commit(id=""),
        runc_commit=Commit(id=""),
        init_commit=Commit(id=""),
        security_options=list(facts.security_options),
        default_address_pools=[AddressPool(base=p.base, size=p.size) for p in config.default_address_pools] or UNSET,
        cdi_spec_dirs=[],
        warnings=list(facts.warnings) or None,
    )


def info_for(version: Version, info: SystemInfo) -> SystemInfo:
    """As a client of that version expects it."""
    if version < WITHOUT_KERNEL_MEMORY:
        info.kernel_memory = True
    if version < WITH_FIREWALL_BACKEND:
        info.registry_config.allow_nondistributable_artifacts_cidrs = None
        info.registry_config.allow_nondistributable_artifacts_hostnames = None
    else:
        info.firewall_backend = FirewallBackend(driver="nftables")
    if version < WITHOUT_BRIDGE_NETFILTER:
        info.bridge_nf_iptables = info.bridge_nf_ip6tables = False
    return info


def _swarm_info(cluster: "Cluster | None", standing: "Standing | None", trouble: str) -> SwarmInfo:
    if cluster is not None and standing is not None:
        return SwarmInfo(
            node_id=cluster.node_id,
            node_addr=standing.address,
            local_node_state="active",
            error=standing.trouble,
            remote_managers=[{"NodeID": id, "Addr": address} for id, address in standing.managers],
        )
    if cluster is not None and cluster.pending:
        return SwarmInfo(
            node_id=cluster.node_id,
            node_addr=cluster.advertise_address,
            local_node_state="pending",
            error=cluster.away,
        )
    if cluster is None or not (cluster.active or cluster.locked):
        return SwarmInfo()
    # A door to a wing: a daemon in no swarm loads nothing of it.
    from husk.api.views.swarm import swarm_info

    return swarm_info(cluster, trouble)


def event_message(event: Event, version: Version) -> EventMessage:
    message = EventMessage(
        type=event.type,
        action=event.action,
        actor=EventActor(id=event.actor_id, attributes=dict(event.attributes)),
        scope=event.scope,
        time=event.time_ns // 10**9,
        time_nano=event.time_ns,
    )
    if version < WITHOUT_EVENT_REPEATS and event.type in ("container", "image"):
        message.status = event.action
        message.id = event.actor_id
        if event.type == "container":
            message.from_ = event.attributes.get("image", "")
    return message


def _registry_config(config: Config) -> RegistryConfig:
    """Insecure registries are hosts or networks; dockerd lists the two apart."""
    indexes = {"docker.io": IndexConfig(name="docker.io", mirrors=[], secure=True, official=True)}
    networks = list(LOOPBACK)
    for registry in config.insecure_registries:
        if "/" in registry:
            networks.append(registry)
        else:
            indexes[registry] = IndexConfig(name=registry, mirrors=[], secure=False, official=False)
    mirrors = [mirror if mirror.endswith("/") else mirror + "/" for mirror in config.registry_mirrors]
    indexes["docker.io"].mirrors = mirrors
    return RegistryConfig(index_configs=indexes, insecure_registry_cidrs=networks, mirrors=mirrors or None)


def _proxy(setting: str, name: str) -> str:
    """The daemon's proxy without the password it may hold."""
    value = setting or os.environ.get(name) or os.environ.get(name.lower(), "")
    scheme, separator, rest = value.rpartition("://")
    if "@" in rest:
        rest = "xxxxx:xxxxx@" + rest.rpartition("@")[2]
    return scheme + separator + rest
