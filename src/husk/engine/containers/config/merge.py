"""A new container's configuration: the request, completed from its image and from this host's defaults. Pure."""

import posixpath

from husk.config import ContainerDefaults
from husk.engine.host import Host
from husk.engine.model.container_config import ContainerConfig, HealthConfig, HostConfig, LogConfig, Ulimit
from husk.engine.model.record import duplicate
from husk.errors import InvalidParameter
from husk.runtime.spec import defaults

JSON_FILE = LogConfig(type="json-file")
STANDARD = ContainerDefaults()


def merge_config(request: ContainerConfig, image: ContainerConfig) -> ContainerConfig:
    """The request completed from its image; raises if there is nothing to run."""
    config = inherit(request, image)
    if config.working_dir:
        config.working_dir = "/" + posixpath.normpath(config.working_dir).lstrip("/")
    if config.entrypoint == [""]:
        config.entrypoint = None
    if not config.entrypoint and not config.cmd:
        raise InvalidParameter("no command specified")
    return config


def inherit(request: ContainerConfig, image: ContainerConfig) -> ContainerConfig:
    """The request with the other's values where it has none of its own, by Docker's rules."""
    config = duplicate(request)
    config.user = config.user or image.user
    config.working_dir = config.working_dir or image.working_dir
    config.stop_signal = config.stop_signal or image.stop_signal
    config.healthcheck = inherit_health(config.healthcheck, image.healthcheck)
    if not config.entrypoint:
        if not config.cmd:
            config.cmd = image.cmd
        if config.entrypoint is None:
            config.entrypoint = image.entrypoint
    own = {entry.partition("=")[0] for entry in config.env}
    config.env = config.env + [entry for entry in image.env if entry.partition("=")[0] not in own]
    config.labels = {**image.labels, **config.labels}
    config.exposed_ports = {**(image.exposed_ports or {}), **(config.exposed_ports or {})} or None
    config.volumes = {**(image.volumes or {}), **(config.volumes or {})} or None
    return config


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
    request: HostConfig, host: Host, log_default: LogConfig = JSON_FILE, daemon: ContainerDefaults = STANDARD
) -> HostConfig:
    """The request with the defaults of the daemon's settings and of this host written out."""
    config = duplicate(request)
    config.network_mode = "bridge" if config.network_mode in ("", "default") else config.network_mode
    config.ipc_mode = config.ipc_mode or daemon.default_ipc_mode
    config.cgroupns_mode = _cgroupns_mode(config, host, daemon.default_cgroupns_mode)
    config.cgroup_parent = config.cgroup_parent or daemon.cgroup_parent
    config.dns = config.dns or list(daemon.dns) or config.dns
    config.dns_search = config.dns_search or list(daemon.dns_search) or config.dns_search
    config.dns_options = config.dns_options or list(daemon.dns_opts) or config.dns_options
    named = {limit.name for limit in config.ulimits or ()}
    usual = [
        Ulimit(name=one.name, soft=one.soft, hard=one.hard) for one in daemon.default_ulimits if one.name not in named
    ]
    config.ulimits = [*(config.ulimits or ()), *usual] or config.ulimits
    config.log_config = inherit_logging(config.log_config, log_default)
    config.restart_policy.name = config.restart_policy.name or "no"
    config.shm_size = config.shm_size or daemon.default_shm_size
    config.runtime = config.runtime or host.default_runtime
    config.cpu_percent = 0
    config.console_size = [*config.console_size, 0, 0][:2]
    if config.oom_kill_disable is None and not host.cgroup_v2:
        config.oom_kill_disable = False
    if (config.privileged or "host" in (config.pid_mode, config.ipc_mode)) and not _names_label(config):
        config.security_opt = [*(config.security_opt or ()), "label=disable"]
    if config.masked_paths is None and not config.privileged:
        config.masked_paths = [*defaults.MASKED_PATHS, *host.masked_paths]
    if config.readonly_paths is None and not config.privileged:
        config.readonly_paths = list(defaults.READONLY_PATHS)
    if config.memory_swappiness == -1:
        config.memory_swappiness = None
    if config.pids_limit is not None and config.pids_limit <= 0:
        config.pids_limit = None
    if config.memory and config.memory_swap == 0:
        config.memory_swap = config.memory * 2
    return config


def _cgroupns_mode(config: HostConfig, host: Host, default: str) -> str:
    if config.privileged and not host.cgroup_v2:
        default = "host"
    return config.cgroupns_mode or default or ("private" if host.cgroup_v2 else "host")


def _names_label(config: HostConfig) -> bool:
    return any(option.split("=")[0] == "label" for option in config.security_opt or ())
