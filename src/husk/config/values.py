"""Values that a setting may have, each with one normal form. Each function takes what the user wrote and says what is
wrong with it, and what is accepted, in words that stand alone: they appear behind no other explanation."""

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from husk.config import DEFAULT_HOST, AddressPool, ClusterStoreConfig, DefaultUlimit
from husk.config.etcd_address import read_address
from husk.config.ulimits import check_ulimit
from husk.errors import InvalidParameter
from husk.text.digits import read_number
from husk.text.interface_names import validate_interface
from husk.text.patterns import pattern
from husk.text.subnets import has_nobodys, parse_bip
from husk.text.urls import split_url

LOG_LEVELS = ("debug", "info", "warn", "error", "fatal")
LOG_FORMATS = ("text", "json")
DEFAULT_TCP_PORT = 2375
TLS_PORT = 2376

# sun_path holds 108 bytes with the terminating zero.
_SOCKET_PATH_LIMIT = 107
_MOST_DIGITS = 100
_SIZE = pattern(r"(\d+(?:\.\d+)?)\s*([bkmgtp])?(?:i?b)?", re.IGNORECASE | re.ASCII)
_HOST_NAME = pattern(r"[a-zA-Z0-9]([a-zA-Z0-9_.-]*[a-zA-Z0-9])?")


def host(text: str, default: str = DEFAULT_HOST, port: int = DEFAULT_TCP_PORT) -> str:
    """An address to listen on, complete: `unix:///path`, `tcp://host:port` or `fd://`, what systemd holds for us."""
    text = text.strip()
    if not text:
        return default
    scheme, separator, address = text.partition("://")
    if not separator:
        scheme, address = "tcp", text
    if scheme == "unix":
        usual = (default if default.startswith("unix://") else DEFAULT_HOST).removeprefix("unix://")
        return f"unix://{_socket_path(text, address or usual)}"
    if scheme == "tcp":
        return f"tcp://{_tcp_address(text, address, port)}"
    if scheme == "fd":
        return f"fd://{address}"
    raise InvalidParameter(f"invalid host {text!r}: use unix:///path/to.sock, tcp://address:port or fd://")


def loopback(host: str) -> bool:
    """Tell if only this machine reaches the host. A Unix socket has its own guard; what systemd holds is known when it
    is taken over."""
    if not host.startswith("tcp://"):
        return True
    name = split_url(host).hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def unguarded(host: str) -> InvalidParameter:
    """Return the error for an address that others reach without a guard: an open port is root for everybody."""
    return InvalidParameter(
        f"{host} without --tlsverify would make everybody root on this machine who reaches that port: "
        "give --tlsverify with --tlscacert, --tlscert and --tlskey, listen on 127.0.0.1, or say --tls=false "
        "('tls': false in the file) if you mean it"
    )


def _socket_path(text: str, path: str) -> str:
    if not path.startswith("/") or path.endswith("/"):
        raise InvalidParameter(f"invalid host {text!r}: the socket needs an absolute path, as in {DEFAULT_HOST}")
    if len(os.fsencode(path)) > _SOCKET_PATH_LIMIT:
        raise InvalidParameter(
            f"invalid host {text!r}: the kernel allows {_SOCKET_PATH_LIMIT} bytes for a socket's path"
        )
    return path


def _tcp_address(text: str, address: str, usual: int) -> str:
    try:
        parts = split_url(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidParameter(f"invalid host {text!r}: {error}") from None
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        raise InvalidParameter(f"invalid host {text!r}: it has the form tcp://address:port")
    host = host or "127.0.0.1"
    if ":" in host:
        host = f"[{_ip(text, host)}]"
    elif not _HOST_NAME.fullmatch(host):
        raise InvalidParameter(f"invalid host {text!r}: {host!r} is no address")
    return f"{host}:{usual if port is None else port}"


def metrics_address(text: str) -> str:
    """`host:port`; without a host all of this machine's addresses, as for dockerd."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or read_number(port, most=0xFFFF) is None:
        raise InvalidParameter(f"invalid metrics-addr {text!r}: it has the form host:port, as in 127.0.0.1:9323")
    return _tcp_address(text, f"{host or '0.0.0.0'}:{port}", 0)


def _ip(text: str, host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        raise InvalidParameter(f"invalid host {text!r}: {host!r} is no IP address") from None


def directory(key: str, text: str | None, default: Path) -> Path:
    path = absolute(key, text) if text else default
    if path == Path("/"):
        raise InvalidParameter(f"{key} cannot be /")
    return path


def absolute(key: str, text: str) -> Path:
    if "\0" in text:
        raise InvalidParameter(f"{key} holds a zero byte")
    return Path(os.path.abspath(os.path.expanduser(text)))


def log_level(text: str) -> str:
    return one_of("log-level", {"warning": "warn", "trace": "debug", "panic": "fatal"}.get(text, text), LOG_LEVELS)


def one_of(key: str, value: str, accepted: Sequence[str]) -> str:
    if value not in accepted:
        raise InvalidParameter(f"invalid {key} {value!r}: choose one of {', '.join(accepted)}")
    return value


def size(key: str, text: str | int) -> int:
    """Bytes, as a number or in Docker's units: `512m`, `20g`, `1.5TiB`."""
    parts = _SIZE.fullmatch(str(text).strip())
    if parts is None or len(parts[1]) > _MOST_DIGITS:
        raise InvalidParameter(f"invalid {key} {str(text)!r}: it is a number of bytes, as 20g or 500m; 0 is no limit")
    return int(float(parts[1]) * 1024 ** "bkmgtp".index((parts[2] or "b").lower()))


def program(key: str, path: str) -> str:
    """A program of the host by its path, or by its name in PATH; empty for none."""
    if path:
        places = [""] if "/" in path else os.get_exec_path()
        if not any(
            os.access(found, os.X_OK) and os.path.isfile(found) for found in (os.path.join(p, path) for p in places)
        ):
            raise InvalidParameter(f"invalid {key} {path!r}: there is no such program")
    return path


def default_ipc_mode(mode: str) -> str:
    if mode not in ("private", "shareable"):
        raise InvalidParameter(f'IPC mode "{mode}" is not supported as default value; use "shareable" or "private"')
    return mode


def default_cgroupns_mode(mode: str) -> str:
    if mode not in ("", "private", "host"):
        raise InvalidParameter(f'invalid default cgroup namespace ({mode}): use "host" or "private"')
    return mode


def cgroup_parent(path: str) -> str:
    if path.endswith(".slice"):
        raise InvalidParameter(f"cgroup-parent {path} is one of systemd's: Husk makes control groups itself (cgroupfs)")
    if "\0" in path or ".." in path.split("/"):
        raise InvalidParameter(f"invalid cgroup-parent {path!r}")
    return path


def ulimit(key: str, soft: int, hard: int, name: str = "") -> DefaultUlimit:
    check_ulimit(name or key, soft, hard)
    return DefaultUlimit(name or key, soft, hard)


def seccomp_profile(text: str) -> str:
    """`builtin`, `unconfined`, or the path of a profile; it is read when the daemon starts."""
    if text in ("builtin", "unconfined"):
        return text
    path = absolute("seccomp-profile", text)
    if not path.is_file():
        raise InvalidParameter(f"opening seccomp profile ({path}) failed: there is no such file")
    return str(path)


def proxy(key: str, text: str) -> str:
    if not text:
        return ""
    try:
        parts = split_url(text if "://" in text else f"http://{text}")
        complete = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        complete = False
    if not complete:
        # Without the text: it may hold a password.
        raise InvalidParameter(f"invalid {key}: it has the form http://[user:password@]host:port")
    return parts.geturl()


def insecure_registry(text: str) -> str:
    """A host, host:port or CIDR whose registry may speak plain HTTP or show any certificate."""
    if "://" in text:
        raise InvalidParameter(f"insecure registry {text} should not contain '://'")
    if "/" in text:
        try:
            return str(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise InvalidParameter(f"insecure registry {text} is not valid: neither host[:port] nor a CIDR") from None
    try:
        parts = split_url(f"//{text}")
        valid = bool(parts.hostname) and (parts.port is None or parts.port > 0) and not text.startswith("-")
    except ValueError:
        valid = False
    if not valid or re.search(r"[\s?#@]", text):
        raise InvalidParameter(f"insecure registry {text} is not valid: neither host[:port] nor a CIDR")
    return text.lower()


def mirror(text: str) -> str:
    try:
        parts = split_url(text)
        complete = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        complete = False
    if not complete:
        raise InvalidParameter(f'invalid mirror: "{text}" is not a valid URI: it has the form https://host[:port]')
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InvalidParameter(f'invalid mirror: path, query, or fragment at end of the URI "{text}"')
    if parts.username is not None:
        raise InvalidParameter("invalid mirror: username/password not allowed in URI")
    return f"{parts.scheme}://{parts.netloc}/"


def bridge_name(name: str) -> str:
    """An existing or future interface; `none` is Docker's word for no bridge network at all."""
    return validate_interface(name) if name else ""


def bridge_address(text: str) -> str:
    return str(parse_bip(text)) if text else ""


def address_pool(base: str, size: int) -> AddressPool:
    try:
        network = ipaddress.ip_network(base, strict=False)
    except ValueError:
        raise InvalidParameter(
            f"invalid base pool {base!r}: it is a network, as 172.30.0.0/16 or fd00:30::/48"
        ) from None
    if has_nobodys(network):
        raise InvalidParameter(f"invalid base pool {network}: containers cannot have these addresses")
    narrowest = network.max_prefixlen - 2
    if not network.prefixlen <= size <= narrowest:
        raise InvalidParameter(f"invalid size {size} of pool {network}: choose {network.prefixlen} to {narrowest}")
    return AddressPool(str(network), size)


def labels(texts: Iterable[str]) -> tuple[str, ...]:
    values: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise InvalidParameter(f"bad attribute format: {text}: a label has the form key=value")
        if values.setdefault(key, value) != value:
            raise InvalidParameter(f"conflict labels for {key}={value} and {key}={values[key]}")
    return tuple(f"{key}={value}" for key, value in values.items())


_STORE_FILES = ("kv.cacertfile", "kv.certfile", "kv.keyfile")


def cluster_store(address: str, options: Mapping[str, str]) -> ClusterStoreConfig | None:
    """An etcd that exists, with certificates or without; None where nobody named one."""
    if not address:
        if options:
            raise InvalidParameter("--cluster-store-opt means nothing without --cluster-store")
        return None
    read_address(address)
    for name in options:
        if name not in _STORE_FILES:
            raise InvalidParameter(f"invalid cluster-store-opt {name!r}: use {', '.join(_STORE_FILES)}")
    if not options:
        return ClusterStoreConfig(address)
    for name in _STORE_FILES:
        if not options.get(name):
            raise InvalidParameter(f"cluster-store-opt {name} is missing: a store with certificates needs all three")
    ca, cert, key = (absolute(name, options[name]) for name in _STORE_FILES)
    return ClusterStoreConfig(address, (ca, cert, key))


def etcd_ports(text: str) -> tuple[int, int]:
    """Of a manager's member of etcd: for clients, and for the other members."""
    parts = text.split(",")
    if len(parts) != 2 or None in [read_number(part, 1, 0xFFFF) for part in parts]:
        raise InvalidParameter(f"invalid swarm-etcd-ports {text!r}: expected two ports, as in 2379,2380")
    clients, members = map(int, parts)
    if clients == members:
        raise InvalidParameter(f"invalid swarm-etcd-ports {text!r}: clients and members need a port each")
    return clients, members
