"""A new container's configuration: the request, completed from its image and from this host's defaults. Pure."""

import posixpath

from msgspec.structs import replace

from husk.config import ContainerDefaults
from husk.engine.host import EngineHost
from husk.engine.model.container_config import ContainerConfig, HealthConfig, HostConfig, LogConfig, Ulimit
from husk.errors import InvalidParameter
from husk.runtime.spec import document

JSON_FILE = LogConfig(type="json-file")
STANDARD = ContainerDefaults()


def merge_config(request: ContainerConfig, image: ContainerConfig) -> ContainerConfig:
    """The request completed from its image; raises if there is nothing to run."""
    config = inherit(request, image)
    directory = config.working_dir
    config = replace(
        config,
        working_dir="/" + posixpath.normpath(directory).lstrip("/") if directory else "",
        entrypoint=None if config.entrypoint == [""] else config.entrypoint,
    )
    if not config.entrypoint and not config.cmd:
        raise InvalidParameter("no command specified")
    return config


def inherit(request: ContainerConfig, image: ContainerConfig) -> ContainerConfig:
    """The request with the other's values where it has none of its own, by Docker's rules."""
    own = {entry.partition("=")[0] for entry in request.env}
    return replace(
        request,
        user=request.user or image.user,
        working_dir=request.working_dir or image.working_dir,
        stop_signal=request.stop_signal or image.stop_signal,
        healthcheck=inherit_health(request.healthcheck, image.healthcheck),
        cmd=request.cmd if request.entrypoint or request.cmd else image.cmd,
        entrypoint=image.entrypoint if request.entrypoint is None else request.entrypoint,
        env=[*request.env, *(entry for entry in image.env if entry.partition("=")[0] not in own)],
        labels={**image.labels, **request.labels},
        exposed_ports={**(image.exposed_ports or {}), **(request.exposed_ports or {})} or None,
        volumes={**(image.volumes or {}), **(request.volumes or {})} or None,
    )


def inherit_health(request: HealthConfig | None, image: HealthConfig | None) -> HealthConfig | None:
    """Field by field: a request may change the interval alone of the image's check."""
    if request is None or image is None:
        return request or image
    names = HealthConfig.__struct_fields__
    return HealthConfig(**{name: getattr(request, name) or getattr(image, name) for name in names})


def inherit_logging(request: LogConfig, default: LogConfig) -> LogConfig:
    """The daemon's options belong to the daemon's driver: a container with another one gets none of them."""
    driver = request.type or default.type
    inherited = default.config if driver == default.type else {}
    return LogConfig(type=driver, config={**inherited, **request.config})


def command(config: ContainerConfig) -> tuple[str, list[str]]:
    """(program, arguments) of the container's first process."""
    words = [*(config.entrypoint or []), *(config.cmd or [])]
    return words[0], words[1:]


def complete_host_config(
    request: HostConfig, host: EngineHost, log_default: LogConfig = JSON_FILE, daemon: ContainerDefaults = STANDARD
) -> HostConfig:
    """The request with the defaults of the daemon's settings and of this host written out."""
    named = {limit.name for limit in request.ulimits or ()}
    usual = [
        Ulimit(name=one.name, soft=one.soft, hard=one.hard) for one in daemon.default_ulimits if one.name not in named
    ]
    config = replace(
        request,
        network_mode="bridge" if request.network_mode in ("", "default") else request.network_mode,
        ipc_mode=request.ipc_mode or daemon.default_ipc_mode,
        cgroupns_mode=_cgroupns_mode(request, host, daemon.default_cgroupns_mode),
        cgroup_parent=request.cgroup_parent or daemon.cgroup_parent,
        dns=request.dns or list(daemon.dns) or request.dns,
        dns_search=request.dns_search or list(daemon.dns_search) or request.dns_search,
        dns_options=request.dns_options or list(daemon.dns_opts) or request.dns_options,
        ulimits=[*(request.ulimits or ()), *usual] or request.ulimits,
        log_config=inherit_logging(request.log_config, log_default),
        restart_policy=replace(request.restart_policy, name=request.restart_policy.name or "no"),
        shm_size=request.shm_size or daemon.default_shm_size,
        runtime=request.runtime or host.default_runtime,
        cpu_percent=0,
        console_size=[*request.console_size, 0, 0][:2],
        memory_swappiness=None if request.memory_swappiness == -1 else request.memory_swappiness,
        pids_limit=request.pids_limit if request.pids_limit is not None and request.pids_limit > 0 else None,
        memory_swap=request.memory_swap or request.memory * 2,
    )
    changes: dict[str, object] = {}
    if config.oom_kill_disable is None and not host.cgroup_v2:
        changes["oom_kill_disable"] = False
    if (config.privileged or "host" in (config.pid_mode, config.ipc_mode)) and not _names_label(config):
        changes["security_opt"] = [*(config.security_opt or ()), "label=disable"]
    if config.masked_paths is None and not config.privileged:
        changes["masked_paths"] = [*document.MASKED_PATHS, *host.masked_paths]
    if config.readonly_paths is None and not config.privileged:
        changes["readonly_paths"] = list(document.READONLY_PATHS)
    return replace(config, **changes)


def _cgroupns_mode(config: HostConfig, host: EngineHost, default: str) -> str:
    if config.privileged and not host.cgroup_v2:
        default = "host"
    return config.cgroupns_mode or default or ("private" if host.cgroup_v2 else "host")


def _names_label(config: HostConfig) -> bool:
    return any(option.split("=")[0] == "label" for option in config.security_opt or ())
