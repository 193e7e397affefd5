"""Makes a `Config` out of flags and `daemon.json`, by Docker's rules: same keys, same conflicts, nothing unknown.

Flags and file are read into the same shape (`husk.config.settings`), merged, and only then validated. A key in both
places is an error, as it is for dockerd: silently preferring one of them hides a mistake that is found much later.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from husk.config import (
    DEFAULT_HOST,
    ETCD_PORTS,
    BuilderConfig,
    Config,
    ContainerDefaults,
    DashboardConfig,
    Proxies,
    RuntimeConfig,
    TlsConfig,
    networks,
    values,
)
from husk.config.builder import builder
from husk.config.remarks import judge
from husk.config.settings import RuntimeSetting, Settings, keys, read_file
from husk.errors import InvalidParameter
from husk.text.urls import split_url

DEFAULT_CONFIG_FILE = Path("/etc/husk/daemon.json")

T = TypeVar("T")
U = TypeVar("U")

# What a configuration notes about itself: a change of these alone changes nothing.
_NOTES = frozenset({"runtimes_in_file", "loopback_only", "remarks"})
# Settings with parts that have no names of their own in the file.
_WHOLE = ("tls", "builder", "dashboard")


class Names(msgspec.Struct, frozen=True):
    """The places of things when nobody says otherwise."""

    config_file: Path
    host: str = DEFAULT_HOST
    pidfile: Path | None = None
    bridge: str = ""


# For a program that is called `dockerd`. The data root stays Husk's own: dockerd's holds another store.
DOCKERD = Names(
    Path("/etc/docker/daemon.json"), "unix:///var/run/docker.sock", Path("/var/run/docker.pid"), bridge="docker0"
)


class SettingsSource(msgspec.Struct, frozen=True):
    """The source of a daemon's settings; kept so that SIGHUP can read the file again."""

    flags: Settings
    config_file: Path | None = None
    names: Names | None = None

    def load(self) -> Config:
        """The settings as they stand now. InvalidParameter says what is wrong with which key."""
        names = self.names or Names(DEFAULT_CONFIG_FILE)
        path = self.config_file
        if path is None and names.config_file.exists():
            path = names.config_file
        if path is None:
            return build(self.flags, names)
        try:
            file = read_file(path)
            return replace(build(merge(self.flags, file), names), runtimes_in_file=file.runtimes is not None)
        except InvalidParameter as error:
            raise InvalidParameter(f"unable to configure the daemon with file {path}: {error.message}") from None


def reloadable(running: Config, wanted: Config) -> tuple[Config, tuple[str, ...]]:
    """Return the settings of a running daemon after SIGHUP, and the names of those that need a restart."""
    renewed = replace(
        running,
        log_level=wanted.log_level,
        labels=wanted.labels,
        insecure_registries=wanted.insecure_registries,
        registry_mirrors=wanted.registry_mirrors,
        max_concurrent_downloads=wanted.max_concurrent_downloads,
        max_concurrent_uploads=wanted.max_concurrent_uploads,
        max_download_attempts=wanted.max_download_attempts,
        shutdown_timeout=wanted.shutdown_timeout,
        features=wanted.features,
        default_runtime=wanted.default_runtime,
        runtimes=wanted.runtimes if wanted.runtimes_in_file else running.runtimes,
        containers=replace(
            running.containers,
            default_shm_size=wanted.containers.default_shm_size,
            default_ipc_mode=wanted.containers.default_ipc_mode,
            default_cgroupns_mode=wanted.containers.default_cgroupns_mode,
        ),
        remarks=wanted.remarks,
    )
    return renewed, tuple(name.replace("_", "-") for name in _differences(renewed, wanted))


def _differences(one: Any, other: Any) -> Iterator[str]:
    """The names of the fields in which two of the same kind differ, also inside those that have fields themselves."""
    for name in one.__struct_fields__:
        mine, its = getattr(one, name), getattr(other, name)
        if mine == its or name in _NOTES:
            continue
        if name in _WHOLE:
            yield name
        elif isinstance(mine, msgspec.Struct):
            yield from _differences(mine, its)
        else:
            yield name


def merge(flags: Settings, file: Settings) -> Settings:
    """Both together. A key in both is an error, except `runtimes`, which are named and add up."""
    merged = Settings()
    conflicts = []
    for name, key in keys().items():
        from_flag, from_file = getattr(flags, name), getattr(file, name)
        if from_flag is not None and from_file is not None and name != "runtimes":
            conflicts.append(f"{key}: (from flag: {_shown(key, from_flag)}, from file: {_shown(key, from_file)})")
        setattr(merged, name, from_file if from_flag is None else from_flag)
    if conflicts:
        raise InvalidParameter(
            "the following directives are specified both as a flag and in the configuration file: "
            + ", ".join(conflicts)
        )
    if flags.runtimes and file.runtimes:
        if both := sorted(flags.runtimes.keys() & file.runtimes.keys()):
            raise InvalidParameter(f"runtimes given both as a flag and in the configuration file: {', '.join(both)}")
        merged.runtimes = {**file.runtimes, **flags.runtimes}
    return merged


def build(settings: Settings, names: Names | None = None) -> Config:
    """Validate and fill in the defaults."""
    names = names or Names(DEFAULT_CONFIG_FILE)
    standard = Config()
    remarks = judge(settings)
    level = values.log_level(settings.log_level or standard.log_level)
    tls = _tls(settings)
    pidfile = values.absolute("pidfile", settings.pidfile) if settings.pidfile else names.pidfile
    return Config(
        hosts=_hosts(settings, names.host, tls),
        data_root=values.directory("data-root", settings.data_root, standard.data_root),
        exec_root=values.directory("exec-root", settings.exec_root, standard.exec_root),
        pidfile=pidfile,
        log_level="debug" if settings.debug else level,
        debug_stalls=bool(settings.debug_stalls),
        log_format=values.one_of("log-format", settings.log_format or standard.log_format, values.LOG_FORMATS),
        insecure_registries=_each(settings.insecure_registries, values.insecure_registry),
        registry_mirrors=_each(settings.registry_mirrors, values.mirror),
        default_runtime=settings.default_runtime or "",
        runtimes={name: _runtime(name, runtime) for name, runtime in (settings.runtimes or {}).items()},
        bridge=values.bridge_name(settings.bridge or ""),
        usual_bridge=names.bridge,
        bip=values.bridge_address(settings.bip or ""),
        default_address_pools=_each(
            settings.default_address_pools, lambda pool: values.address_pool(pool.base, pool.size)
        ),
        labels=values.labels(settings.labels or ()),
        log_driver=settings.log_driver or standard.log_driver,
        log_opts=settings.log_opts or {},
        group=standard.group if settings.group is None else settings.group,
        tls=tls,
        loopback_only=not _told_of_tls(settings),
        containers=_containers(settings),
        init_path=values.program("init-path", settings.init_path or ""),
        default_bridge=networks.default_bridge(settings),
        default_network_opts=settings.default_network_opts or {},
        ip_forward=settings.ip_forward is not False,
        host_gateway_ips=networks.host_gateways(settings.host_gateway_ips or ()),
        proxies=Proxies(
            values.proxy("http-proxy", settings.http_proxy or ""),
            values.proxy("https-proxy", settings.https_proxy or ""),
            settings.no_proxy or "",
        ),
        max_concurrent_downloads=_count("max-concurrent-downloads", settings.max_concurrent_downloads, 3),
        max_concurrent_uploads=_count("max-concurrent-uploads", settings.max_concurrent_uploads, 5),
        max_download_attempts=_count("max-download-attempts", settings.max_download_attempts, 5),
        shutdown_timeout=_patience(settings.shutdown_timeout),
        live_restore=settings.live_restore is not False,
        features=settings.features or {},
        experimental=bool(settings.experimental),
        builder=_builder(settings.builder),
        dashboard=_dashboard(settings),
        max_layer_size=values.size("max-layer-size", settings.max_layer_size) if settings.max_layer_size else 0,
        metrics_addr=values.metrics_address(settings.metrics_addr) if settings.metrics_addr else "",
        metrics_containers=_limit("metrics-containers", settings.metrics_containers, standard.metrics_containers),
        audit_log=values.absolute("audit-log", settings.audit_log) if settings.audit_log else None,
        cluster_store=values.cluster_store(settings.cluster_store or "", settings.cluster_store_opts or {}),
        wireguard_port=_port("wireguard-port", settings.wireguard_port, standard.wireguard_port),
        swarm_etcd_ports=values.etcd_ports(settings.swarm_etcd_ports) if settings.swarm_etcd_ports else ETCD_PORTS,
        swarm_default_advertise_addr=settings.swarm_default_advertise_addr or "",
        remarks=remarks,
    )


def _tls(settings: Settings) -> TlsConfig | None:
    """`tlsverify` in whatever form asks for TLS, and TLS asks for certificates unless it was told not to."""
    if not (settings.tls or settings.tlsverify is not None):
        return None
    base = Path(os.environ.get("DOCKER_CERT_PATH") or os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")

    def chosen(key: str, name: str | None, usual: str) -> Path | None:
        if name:
            return values.absolute(key, name)
        return base / usual if (base / usual).exists() else None

    return TlsConfig(
        verify=settings.tlsverify is not False,
        ca=chosen("tlscacert", settings.tlscacert, "ca.pem") or base / "ca.pem",
        cert=chosen("tlscert", settings.tlscert, "cert.pem"),
        key=chosen("tlskey", settings.tlskey, "key.pem"),
    )


def _builder(document: dict[str, Any] | None) -> BuilderConfig:
    if not document:
        return BuilderConfig()

    return builder(document)


def _dashboard(settings: Settings) -> DashboardConfig | None:
    """Read the dashboard's settings; if its address may be listened on is judged by code that only this loads."""
    if not settings.dashboard:
        return None
    names = tuple(settings.dashboard_names or ())
    return DashboardConfig(settings.dashboard, names, bool(settings.dashboard_read_only))


def _hosts(settings: Settings, default: str, tls: TlsConfig | None) -> tuple[str, ...]:
    """List the addresses to listen on. An open port is root for everybody: it takes a word that this is meant."""
    port = values.TLS_PORT if tls is not None else values.DEFAULT_TCP_PORT
    if tls is not None:
        default = f"tcp://localhost:{port}"  # as dockerd: whoever asks for TLS and names no host means this one
    hosts = _each(settings.hosts, lambda text: values.host(text, default, port), (default,))
    if not _told_of_tls(settings) and (open_to_others := [host for host in hosts if not values.loopback(host)]):
        raise values.unguarded(open_to_others[0])
    return hosts


def _told_of_tls(settings: Settings) -> bool:
    return settings.tls is not None or settings.tlsverify is not None


def _containers(settings: Settings) -> ContainerDefaults:
    standard = ContainerDefaults()
    shm = settings.default_shm_size
    return ContainerDefaults(
        default_ipc_mode=values.default_ipc_mode(settings.default_ipc_mode or standard.default_ipc_mode),
        default_shm_size=values.size("default-shm-size", shm) if shm else standard.default_shm_size,
        default_cgroupns_mode=values.default_cgroupns_mode(settings.default_cgroupns_mode or ""),
        cgroup_parent=values.cgroup_parent(settings.cgroup_parent or ""),
        default_ulimits=tuple(
            values.ulimit(name, limit.soft, limit.hard, limit.name)
            for name, limit in (settings.default_ulimits or {}).items()
        ),
        seccomp_profile=values.seccomp_profile(settings.seccomp_profile or standard.seccomp_profile),
        no_new_privileges=bool(settings.no_new_privileges),
        init=bool(settings.init),
        dns=_each(settings.dns, lambda text: networks.address("dns", text)),
        dns_opts=_each(settings.dns_opts, str),
        dns_search=_each(settings.dns_search, networks.search_domain),
    )


def _count(key: str, number: int | None, default: int) -> int:
    """0 is no wish, as for dockerd."""
    if number is not None and number < 0:
        raise InvalidParameter(f"invalid {key.replace('-', ' ')}: {number}")
    return number or default


def _limit(key: str, number: int | None, default: int) -> int:
    """0 is a limit like others."""
    if number is not None and number < 0:
        raise InvalidParameter(f"invalid {key.replace('-', ' ')}: {number}: use 0 for none")
    return default if number is None else number


def _port(key: str, number: int | None, default: int) -> int:
    if number is not None and not 1 <= number <= 65535:
        raise InvalidParameter(f"invalid {key.replace('-', ' ')}: {number} is no UDP port")
    return default if number is None else number


def _patience(seconds: int | None) -> float | None:
    if seconds is None:
        return Config().shutdown_timeout
    return None if seconds < 0 else float(seconds)


def _runtime(name: str, setting: RuntimeSetting) -> RuntimeConfig:
    if not name or not setting.path:
        raise InvalidParameter(f"runtime {name!r} needs a name and the path of its program")
    return RuntimeConfig(setting.path, tuple(setting.runtime_args))


def _each(given: Iterable[T] | None, convert: Callable[[T], U], default: tuple[U, ...] = ()) -> tuple[U, ...]:
    """Convert every value, dropping repetitions; the default when there is none."""
    return tuple(dict.fromkeys(convert(value) for value in given or ())) or default


def _shown(key: str, value: object) -> str:
    """A value as dockerd shows it in a conflict: without the password that a proxy's address may hold."""
    if isinstance(value, list):
        return "[" + " ".join(_shown(key, item) for item in value) + "]"
    if key in ("http-proxy", "https-proxy") and isinstance(value, str) and "@" in value:
        parts = split_url(value)
        return parts._replace(netloc="xxxxx:xxxxx@" + parts.netloc.rpartition("@")[2]).geturl()
    if isinstance(value, str):
        return value

    return json.dumps(msgspec.to_builtins(value))
