"""How do flags and `daemon.json` become a `Config`? By Docker's rules: same keys, same conflicts, nothing unknown.

Flags and file are read into the same shape (`Settings`, the file's keys), merged, and only then validated, so that a
value means the same wherever it was given. A key in both places is an error, as it is for dockerd: silently preferring
one of them hides a mistake that is found much later.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from husk import config_values as values
from husk.config import Config, RuntimeConfig
from husk.errors import InvalidParameter

DEFAULT_CONFIG_FILE = Path("/etc/husk/daemon.json")

T = TypeVar("T")
U = TypeVar("U")

# Keys that dockerd knows and Husk does not: the reader learns that it is no misspelling.
_DOCKERD_ONLY = """
    allow-direct-routing authorization-plugins bridge-accept-fwmark builder cgroup-parent containerd
    containerd-namespace containerd-plugin-namespace cpu-rt-period cpu-rt-runtime default-cgroupns-mode
    default-gateway default-gateway-v6 default-ipc-mode default-network-opts default-shm-size default-ulimits dns
    dns-opts dns-search exec-opts experimental features firewall-backend fixed-cidr fixed-cidr-v6 host-gateway-ip
    host-gateway-ips http-proxy https-proxy icc init init-path ip ip-forward ip-forward-no-drop ip-masq ip6tables
    iptables ipv6 live-restore max-concurrent-downloads max-concurrent-uploads
    max-download-attempts metrics-addr min-api-version mtu network-control-plane-mtu no-new-privileges no-proxy
    node-generic-resources oom-score-adjust proxies raw-logs seccomp-profile selinux-enabled shutdown-timeout
    storage-driver storage-opts swarm-default-advertise-addr tls tlscacert tlscert tlskey tlsverify userland-proxy
    userland-proxy-path userns-remap
"""


class PoolSetting(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of `default-address-pools`."""

    base: str
    size: int


class RuntimeSetting(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """An entry of `runtimes`."""

    path: str
    runtime_args: list[str] = []


class Settings(msgspec.Struct, rename="kebab"):
    """The keys of `daemon.json`; None is a key that was not given."""

    hosts: list[str] | None = None
    data_root: str | None = None
    exec_root: str | None = None
    pidfile: str | None = None
    debug: bool | None = None
    log_level: str | None = None
    log_format: str | None = None
    insecure_registries: list[str] | None = None
    registry_mirrors: list[str] | None = None
    default_runtime: str | None = None
    runtimes: dict[str, RuntimeSetting] | None = None
    bridge: str | None = None
    bip: str | None = None
    default_address_pools: list[PoolSetting] | None = None
    labels: list[str] | None = None
    log_driver: str | None = None
    log_opts: dict[str, str] | None = None
    group: str | None = None
    max_layer_size: str | int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a daemon's settings come from; kept so that SIGHUP can read the file again."""

    flags: Settings
    config_file: Path | None = None

    def load(self) -> Config:
        """The settings as they stand now. InvalidParameter says what is wrong with which key."""
        path = self.config_file
        if path is None and DEFAULT_CONFIG_FILE.exists():
            path = DEFAULT_CONFIG_FILE
        if path is None:
            return build(self.flags)
        try:
            return build(merge(self.flags, read_file(path)))
        except InvalidParameter as error:
            raise InvalidParameter(f"unable to configure the daemon with file {path}: {error.message}") from None


def reloadable(running: Config, wanted: Config) -> tuple[Config, tuple[str, ...]]:
    """What a running daemon becomes on SIGHUP, and the names of the settings that need a restart."""
    renewed = replace(
        running,
        log_level=wanted.log_level,
        labels=wanted.labels,
        insecure_registries=wanted.insecure_registries,
        registry_mirrors=wanted.registry_mirrors,
    )
    left = (field.name for field in fields(Config) if getattr(renewed, field.name) != getattr(wanted, field.name))
    return renewed, tuple(name.replace("_", "-") for name in left)


def read_file(path: Path) -> Settings:
    """The content of a daemon.json."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidParameter(f"open {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidParameter("it is not UTF-8 text") from None
    return parse_file(text)


def parse_file(text: str) -> Settings:
    """The settings in the text of a daemon.json."""
    if not text.strip():
        return Settings()
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidParameter(f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    if not isinstance(document, dict):
        raise InvalidParameter("it must hold one JSON object")
    foreign = document.keys() - set(_keys().values())
    unsupported = sorted(foreign.intersection(_DOCKERD_ONLY.split()))
    if unknown := sorted(foreign.difference(unsupported)):
        raise InvalidParameter(f"the following directives don't match any configuration option: {', '.join(unknown)}")
    if unsupported:
        raise InvalidParameter(f"Husk does not support these directives of dockerd yet: {', '.join(unsupported)}")
    try:
        return msgspec.convert(document, Settings)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise InvalidParameter(f"{place.rstrip('`') or 'the object'}: {message[:1].lower()}{message[1:]}") from None


def merge(flags: Settings, file: Settings) -> Settings:
    """Both together. A key in both is an error, except `runtimes`, which are named and add up."""
    merged = Settings()
    conflicts = []
    for name, key in _keys().items():
        from_flag, from_file = getattr(flags, name), getattr(file, name)
        if from_flag is not None and from_file is not None and name != "runtimes":
            conflicts.append(f"{key}: (from flag: {_shown(from_flag)}, from file: {_shown(from_file)})")
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


def build(settings: Settings) -> Config:
    """Validate and fill in the defaults."""
    standard = Config()
    level = values.log_level(settings.log_level or standard.log_level)
    return Config(
        hosts=_each(settings.hosts, values.host, standard.hosts),
        data_root=values.directory("data-root", settings.data_root, standard.data_root),
        exec_root=values.directory("exec-root", settings.exec_root, standard.exec_root),
        pidfile=values.absolute("pidfile", settings.pidfile) if settings.pidfile else standard.pidfile,
        log_level="debug" if settings.debug else level,
        log_format=values.one_of("log-format", settings.log_format or standard.log_format, values.LOG_FORMATS),
        insecure_registries=_each(settings.insecure_registries, values.insecure_registry),
        registry_mirrors=_each(settings.registry_mirrors, values.mirror),
        default_runtime=settings.default_runtime or "",
        runtimes={name: _runtime(name, runtime) for name, runtime in (settings.runtimes or {}).items()},
        bridge=values.bridge_name(settings.bridge or ""),
        bip=values.bridge_address(settings.bip or ""),
        default_address_pools=_each(
            settings.default_address_pools, lambda pool: values.address_pool(pool.base, pool.size)
        ),
        labels=values.labels(settings.labels or ()),
        log_driver=settings.log_driver or standard.log_driver,
        log_opts=settings.log_opts or {},
        group=standard.group if settings.group is None else settings.group,
        max_layer_size=values.size("max-layer-size", settings.max_layer_size or 0),
    )


def parse_pool_flag(text: str) -> PoolSetting:
    """`base=172.30.0.0/16,size=24`, the form of `--default-address-pool`."""
    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if parts.keys() != {"base", "size"} or not parts["size"].isdecimal():
        raise InvalidParameter(f"invalid default address pool {text!r}: it has the form base=172.30.0.0/16,size=24")
    return PoolSetting(parts["base"], int(parts["size"]))


def parse_runtime_flag(text: str) -> tuple[str, RuntimeSetting]:
    """`name=path`, the form of `--add-runtime`."""
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise InvalidParameter(f"invalid runtime argument {text!r}: it has the form name=/path/to/runtime")
    return name, RuntimeSetting(path)


def parse_log_flag(text: str) -> tuple[str, str]:
    """`key=value`, the form of `--log-opt`."""
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise InvalidParameter(f"invalid logging option {text!r}: it has the form max-size=10m")
    return name, value


def _runtime(name: str, setting: RuntimeSetting) -> RuntimeConfig:
    if not name or not setting.path:
        raise InvalidParameter(f"runtime {name!r} needs a name and the path of its program")
    return RuntimeConfig(setting.path, tuple(setting.runtime_args))


def _each(given: Iterable[T] | None, convert: Callable[[T], U], default: tuple[U, ...] = ()) -> tuple[U, ...]:
    """Convert every value, dropping repetitions; the default when there is none."""
    return tuple(dict.fromkeys(convert(value) for value in given or ())) or default


def _keys() -> dict[str, str]:
    """Names of the fields of `Settings` and their keys in the file."""
    return dict(zip(Settings.__struct_fields__, Settings.__struct_encode_fields__, strict=True))


def _shown(value: object) -> str:
    """A value as dockerd shows it in a conflict."""
    if isinstance(value, list):
        return "[" + " ".join(_shown(item) for item in value) + "]"
    return str(value) if isinstance(value, str) else json.dumps(msgspec.to_builtins(value))
