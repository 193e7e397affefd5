"""Settings in a `daemon.json`, and on the command line: dockerd's keys with their types, and nothing else.

Both are read into the same shape, so that a value means the same wherever it was given. What the values may be is
checked later (`husk.config.load`), when both are one.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from husk.config.keys import BY_FLAG, BY_KEY, KeyKind, Option
from husk.errors import InvalidParameter
from husk.text.digits import read_number


class PoolSetting(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of `default-address-pools`."""

    base: str
    size: int


class RuntimeSetting(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """An entry of `runtimes`."""

    path: str
    runtime_args: list[str] = []


class UlimitSetting(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """An entry of `default-ulimits`; -1 is no limit."""

    soft: int
    hard: int
    name: str = ""


class ProxySettings(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    """The object `proxies`."""

    http_proxy: str | None = None
    https_proxy: str | None = None
    no_proxy: str | None = None


class Settings(msgspec.Struct, rename="kebab"):
    """The keys of `daemon.json`; None is a key that was not given. What each is for stands in `husk.config.keys`."""

    hosts: list[str] | None = None
    data_root: str | None = None
    exec_root: str | None = None
    pidfile: str | None = None
    debug: bool | None = None
    debug_stalls: bool | None = None
    log_level: str | None = None
    log_format: str | None = None
    raw_logs: bool | None = None
    labels: list[str] | None = None
    features: dict[str, bool] | None = None
    experimental: bool | None = None
    shutdown_timeout: int | None = None
    live_restore: bool | None = None
    rootless: bool | None = None
    group: str | None = None
    tls: bool | None = None
    tlsverify: bool | None = None
    tlscacert: str | None = None
    tlscert: str | None = None
    tlskey: str | None = None
    authorization_plugins: list[str] | None = None
    api_cors_header: str | None = None
    metrics_addr: str | None = None
    dashboard: str | None = None
    dashboard_names: list[str] | None = None
    dashboard_read_only: bool | None = None
    metrics_containers: int | None = None
    audit_log: str | None = None
    cluster_store: str | None = None
    cluster_store_opts: dict[str, str] | None = None
    wireguard_port: int | None = None
    swarm_etcd_ports: str | None = None
    max_layer_size: str | int | None = None
    insecure_registries: list[str] | None = None
    registry_mirrors: list[str] | None = None
    allow_nondistributable_artifacts: list[str] | None = None
    deprecated_key_path: str | None = None
    max_concurrent_downloads: int | None = None
    max_concurrent_uploads: int | None = None
    max_download_attempts: int | None = None
    proxies: ProxySettings | None = None
    http_proxy: str | None = None
    https_proxy: str | None = None
    no_proxy: str | None = None
    default_runtime: str | None = None
    runtimes: dict[str, RuntimeSetting] | None = None
    log_driver: str | None = None
    log_opts: dict[str, str] | None = None
    default_ipc_mode: str | None = None
    default_shm_size: str | int | None = None
    default_cgroupns_mode: str | None = None
    default_ulimits: dict[str, UlimitSetting] | None = None
    seccomp_profile: str | None = None
    no_new_privileges: bool | None = None
    init: bool | None = None
    init_path: str | None = None
    cgroup_parent: str | None = None
    exec_opts: list[str] | None = None
    cpu_rt_period: int | None = None
    cpu_rt_runtime: int | None = None
    selinux_enabled: bool | None = None
    userns_remap: str | None = None
    cdi_spec_dirs: list[str] | None = None
    storage_driver: str | None = None
    storage_opts: list[str] | None = None
    builder: dict[str, Any] | None = None
    containerd: str | None = None
    containerd_namespace: str | None = None
    containerd_plugins_namespace: str | None = None
    cri_containerd: bool | None = None
    bridge: str | None = None
    bip: str | None = None
    bip6: str | None = None
    fixed_cidr: str | None = None
    fixed_cidr_v6: str | None = None
    ipv6: bool | None = None
    default_gateway: str | None = None
    default_gateway_v6: str | None = None
    icc: bool | None = None
    ip: str | None = None
    ip_masq: bool | None = None
    ip_forward: bool | None = None
    ip_forward_no_drop: bool | None = None
    mtu: int | None = None
    default_address_pools: list[PoolSetting] | None = None
    default_network_opts: dict[str, dict[str, str]] | None = None
    dns: list[str] | None = None
    dns_opts: list[str] | None = None
    dns_search: list[str] | None = None
    host_gateway_ips: list[str] | None = None
    host_gateway_ip: str | None = None
    iptables: bool | None = None
    ip6tables: bool | None = None
    userland_proxy: bool | None = None
    userland_proxy_path: str | None = None
    allow_direct_routing: bool | None = None
    network_control_plane_mtu: int | None = None
    network_diagnostic_port: int | None = None
    swarm_default_advertise_addr: str | None = None
    node_generic_resources: list[str] | None = None


# The objects in a file: those that are a setting themselves, those with names of their own, those in lists.
_OBJECTS: dict[str, type[msgspec.Struct]] = {"proxies": ProxySettings}
_NAMED: dict[str, type[msgspec.Struct]] = {"runtimes": RuntimeSetting, "default-ulimits": UlimitSetting}
_LISTS: dict[str, type[msgspec.Struct]] = {"default-address-pools": PoolSetting}


def keys() -> dict[str, str]:
    """Names of the fields of `Settings` and their keys in the file."""
    return dict(zip(Settings.__struct_fields__, Settings.__struct_encode_fields__, strict=True))


def given(settings: Settings) -> Iterable[tuple[Option, Any]]:
    """The options that were given, with their values."""
    for name, key in keys().items():
        if (value := getattr(settings, name)) is not None:
            yield BY_KEY[key], value


# --- the file


def read_file(path: Path) -> Settings:
    """The content of a daemon.json."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidParameter(f"open {path}: {error.strerror}") from None
    try:
        # Editors of Windows begin a file with a mark of its encoding.
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return parse_file(content.decode("utf-16"))
        return parse_file(content.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError:
        raise InvalidParameter("it is not UTF-8 text") from None


def parse_file(text: str) -> Settings:
    """The settings in the text of a daemon.json."""
    document = _document(text) if text.strip() else None
    if document is None:
        return Settings()
    if not isinstance(document, dict):
        raise InvalidParameter("it must hold one JSON object")
    document = _in_our_case(document)
    if unknown := sorted(document.keys() - BY_KEY.keys()):
        raise InvalidParameter(f"the following directives don't match any configuration option: {', '.join(unknown)}")
    try:
        settings = msgspec.convert(document, Settings)
    except msgspec.ValidationError as error:
        message, _, place = str(error).replace(" | null", "").partition(" - at `$.")
        raise InvalidParameter(f"{place.rstrip('`') or 'the object'}: {message[:1].lower()}{message[1:]}") from None
    return _one_form(settings)


def _document(text: str) -> object:
    """Read JSON. Python's own reader is loaded only for a text that is none: it knows where the mistake is."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise InvalidParameter("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        refused = error
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidParameter(f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except (ValueError, RecursionError):
        pass  # it takes numbers and nesting for what they are, but not so much of them
    raise InvalidParameter(f"it is not JSON: {refused}")


def in_case(value: Any, kind: type[msgspec.Struct], place: str) -> Any:
    """An object with those of its keys that `kind` knows as they are written there, whatever their case, as Go reads
    them; what is no object stays as it is. InvalidParameter where two keys are one, of which only one could count."""
    if not isinstance(value, dict):
        return value
    known = {key.lower(): key for key in kind.__struct_encode_fields__}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        name = known.get(key.lower()) or str(key)
        if name in found:
            raise InvalidParameter(f"{f'{place}.' if place else ''}{name} is given twice, once as {key!r}")
        found[name] = inner
    return found


def _in_our_case(document: dict[str, Any]) -> dict[str, Any]:
    """The document with all keys as they are written here, also of the objects within."""
    found: dict[str, Any] = in_case(document, Settings, "")
    found |= {key: in_case(found[key], kind, key) for key, kind in _OBJECTS.items() if key in found}
    for key, kind in _NAMED.items():
        if isinstance(named := found.get(key), dict):
            found[key] = {name: in_case(each, kind, f"{key}.{name}") for name, each in named.items()}
    for key, kind in _LISTS.items():
        if isinstance(listed := found.get(key), list):
            found[key] = [in_case(each, kind, key) for each in listed]
    return found


def _one_form(settings: Settings) -> Settings:
    """Merge into one setting what dockerd has two keys for."""
    if settings.host_gateway_ip is not None:
        if settings.host_gateway_ips is not None:
            raise InvalidParameter("host-gateway-ip and host-gateway-ips must not both be specified in the config file")
        settings.host_gateway_ips, settings.host_gateway_ip = [settings.host_gateway_ip], None
    if settings.proxies is not None:
        for name in ("http_proxy", "https_proxy", "no_proxy"):
            if (inner := getattr(settings.proxies, name)) is not None:
                setattr(settings, name, inner)
        settings.proxies = None
    return settings


# --- the command line


def from_flags(flags: Mapping[str, Any]) -> Settings:
    """Settings out of the texts behind flags, by the flags' names; those with None or () were not given."""
    settings = Settings()
    for name, text in flags.items():
        option = BY_FLAG[name]
        if option.key and text not in (None, ()):
            setattr(settings, option.field, _FORMS[option.kind](option, text))
    return settings


def truth(option: Option, text: str) -> bool:
    """Go's words for true and false."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise _invalid(option, text, "it is true or false")


def _number(option: Option, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise _invalid(option, text, "it is a number") from None


def _addresses(option: Option, texts: Iterable[str]) -> list[str]:
    return [address.strip() for text in texts for address in text.split(",")]


def _map(option: Option, texts: Iterable[str]) -> dict[str, str]:
    return dict(_pair(option, text, "key=value") for text in texts)


def _features(option: Option, texts: Iterable[str]) -> dict[str, bool]:
    parts = (text.partition("=") for text in texts)
    return {name: truth(option, value) if equals else True for name, equals, value in parts}


def _driver_options(option: Option, texts: Iterable[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        driver, rest = _pair(option, text, "driver=key=value")
        name, value = _pair(option, rest, "driver=key=value")
        found.setdefault(driver, {})[name] = value
    return found


def _ulimits(option: Option, texts: Iterable[str]) -> dict[str, UlimitSetting]:
    found = {}
    for text in texts:
        name, limits = _pair(option, text, "name=soft[:hard]")
        soft, colon, hard = limits.partition(":")
        found[name] = UlimitSetting(_number(option, soft), _number(option, hard if colon else soft), name)
    return found


def _runtimes(option: Option, texts: Iterable[str]) -> dict[str, RuntimeSetting]:
    pairs = [_pair(option, text, "name=/path/to/runtime") for text in texts]
    for name, path in pairs:
        if not path:
            raise _invalid(option, f"{name}=", "it has the form name=/path/to/runtime")
    return {name: RuntimeSetting(path) for name, path in pairs}


def _pools(option: Option, texts: Iterable[str]) -> list[PoolSetting]:
    found = []
    for text in texts:
        parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
        size = read_number(parts.get("size", ""))
        if parts.keys() != {"base", "size"} or size is None:
            raise _invalid(option, text, "it has the form base=172.30.0.0/16,size=24")
        found.append(PoolSetting(parts["base"], size))
    return found


def _pair(option: Option, text: str, form: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise _invalid(option, text, f"it has the form {form}")
    return name, value


def _invalid(option: Option, text: str, form: str) -> InvalidParameter:
    return InvalidParameter(f'invalid argument "{text}" for "--{option.flag}" flag: {form}')


_FORMS: dict[KeyKind, Callable[[Option, Any], Any]] = {
    KeyKind.TRUTH: truth,
    KeyKind.TEXT: lambda option, text: text,
    KeyKind.NUMBER: _number,
    KeyKind.SIZE: lambda option, text: text,
    KeyKind.LIST: lambda option, texts: list(texts),
    KeyKind.ADDRESSES: _addresses,
    KeyKind.MAP: _map,
    KeyKind.FEATURES: _features,
    KeyKind.DRIVER_OPTIONS: _driver_options,
    KeyKind.ULIMIT: _ulimits,
    KeyKind.RUNTIME: _runtimes,
    KeyKind.POOL: _pools,
}
