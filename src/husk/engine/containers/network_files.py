"""What /etc/hosts, /etc/hostname and /etc/resolv.conf say inside, and how they follow the container's networks.

The texts are pure. A running container sees changes because the files are changed in place; it owns them, see
`runtime/assembly/network_files.py`. `write` and `refresh` block: callers on the event loop use a thread.
"""

import ipaddress
import logging
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from husk.engine.model.container import Container, Endpoint
from husk.engine.networks.connector import Connected
from husk.engine.networks.endpoints import in_order
from husk.engine.networks.requests import disables_ipv6
from husk.errors import InvalidParameter
from husk.network.resolver import ADDRESS
from husk.runtime.assembly import network_files as bound_files
from husk.runtime.assembly.paths import ContainerPaths, Paths

log = logging.getLogger(__name__)

HOSTS_WITHOUT_IPV6 = "127.0.0.1\tlocalhost\n"
_HOSTS = f"""\
{HOSTS_WITHOUT_IPV6}\
::1\tlocalhost ip6-localhost ip6-loopback
fe00::\tip6-localnet
ff00::\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
"""
FALLBACK_DNS = ("8.8.8.8", "8.8.4.4")


def host_names(hostname: str, domainname: str) -> list[str]:
    """What a container answers to: its full name and, if that has a domain, the name before it."""
    full = f"{hostname}.{domainname}" if domainname else hostname
    bare, dot, _ = full.partition(".")
    return [full, bare] if dot else [full]


def hosts(address: str, names: Sequence[str], extra: Sequence[str], gateways: Sequence[str], base: str = "") -> str:
    """`extra` as the API has it (`name:address`, `host-gateway` for the bridge's own addresses)."""
    lines = [(base or _HOSTS).rstrip("\n")]
    for entry in extra:
        name, _, target = entry.replace("=", ":", 1).partition(":")
        if target == "host-gateway" and not gateways:
            raise InvalidParameter("unable to derive the IP value for host-gateway")
        lines += [f"{one}\t{name}" for one in (gateways if target == "host-gateway" else [target.strip("[]")])]
    if address:
        lines.append(f"{address}\t{' '.join(names)}")
    return "\n".join(lines) + "\n"


def resolv_conf(
    host_text: str,
    servers: Sequence[str],
    search: Sequence[str],
    options: Sequence[str],
    *,
    own_network: bool,
    resolver: str = "",
    ipv6: bool = False,
) -> str:
    """The host's file with the container's wishes; see `_reachable` for servers that are of no use in its network.

    `resolver` is the daemon's own, which asks the servers in the container's stead.
    """
    found: list[str] = []
    domains: list[str] = []
    settings: list[str] = []
    for line in host_text.splitlines():
        match line.split():
            case ["nameserver", server, *_]:
                found.append(server)
            case ["search" | "domain", *words] if words:
                domains = words  # the last one counts
            case ["options", *words]:
                settings += words
    if servers:
        found = list(servers)
    elif own_network:
        found = [server for server in found if _reachable(server, ipv6)] or list(FALLBACK_DNS)
    domains = [domain for domain in search or domains if domain != "."]
    settings = list(options) or settings
    if resolver:
        found = [resolver]
        # Names of containers have no dots: they are asked for as they are before any domain is tried.
        settings += [] if any(word.startswith("ndots:") for word in settings) else ["ndots:0"]
    lines = [f"nameserver {server}" for server in found]
    if domains:
        lines.append("search " + " ".join(domains))
    if settings:
        lines.append("options " + " ".join(settings))
    return "\n".join(lines) + "\n"


def _reachable(server: str, ipv6: bool) -> bool:
    """From a network of its own a container reaches neither the host's loopback nor, without IPv6, such servers."""
    try:
        address = ipaddress.ip_address(server)
    except ValueError:
        return False
    return (address.version == 4 or ipv6) and not address.is_loopback


def write(record: Container, paths: Paths, network: Connected) -> ContainerPaths:
    """Write them for a start; where the container's things lie, which is elsewhere for files that it shares."""
    own = paths.of(record.id)
    if network.shared_with:
        other = paths.of(network.shared_with)
        return replace(own, hosts=other.hosts, hostname=other.hostname, resolv_conf=other.resolv_conf)
    bound_files.replace(own.hosts, _hosts(record, network))
    bound_files.replace(own.hostname, record.config.hostname + "\n")
    resolv_conf = _resolv_conf(record, network.resolver)
    bound_files.replace(_copy_of(own.resolv_conf), resolv_conf)
    bound_files.replace(own.resolv_conf, resolv_conf)
    for other_record, its_network in network.linked_by:
        if not refresh(other_record, paths.of(other_record.id), its_network):
            log.warning("container %s keeps its /etc/hosts from being written", other_record.id[:12])
    return own


def refresh(record: Container, own: ContainerPaths, network: Connected) -> bool:
    """Let a running container see what its networks are now; False if it keeps a file busy: try again later.

    /etc/hosts is written anew from what we know: what the container wrote into it itself is gone. /etc/resolv.conf is
    written unless the container has one of its own by now.
    """
    try:
        return bound_files.overwrite(own.hosts, _hosts(record, network)) and _follow(record, own, network.resolver)
    except BlockingIOError:
        return False


def _follow(record: Container, own: ContainerPaths, resolver: bool) -> bool:
    """Change between the daemon's resolver and the host's."""
    wanted = _resolv_conf(record, resolver)
    copy = _copy_of(own.resolv_conf)
    ours = {text for text in (bound_files.read_ours(copy), _resolv_conf(record, not resolver)) if text}
    present = bound_files.begins_with(own.resolv_conf, max(map(len, map(str.encode, ours))) + 1)
    if present not in ours:
        return True
    if not bound_files.overwrite(own.resolv_conf, wanted):
        return False
    bound_files.replace(copy, wanted)
    return True


def _copy_of(resolv_conf: Path) -> Path:
    """What we wrote last, where the container cannot change it."""
    return resolv_conf.with_name("resolv.conf.ours")


def _hosts(record: Container, network: Connected) -> str:
    config, host_config = record.config, record.host_config
    extra = host_config.extra_hosts or []
    if host_config.network_mode == "host":
        return hosts("", [], extra, network.host_gateways, base=bound_files.read_ours("/etc/hosts"))
    names = host_names(config.hostname, config.domainname)
    addresses = [address for endpoint in in_order(record) for address in _addresses(endpoint)]
    base = HOSTS_WITHOUT_IPV6 if disables_ipv6(host_config) else ""
    text = hosts("", [], extra, network.host_gateways, base)
    text += "".join(f"{link.address}\t{link.host_names}\n" for link in network.links)
    return text + "".join(_line(address, names) for address in addresses)


def _addresses(endpoint: Endpoint) -> list[str]:
    return [address for address in (endpoint.ip_address, endpoint.ip6_address) if address]


def _line(address: str, names: list[str]) -> str:
    return f"{address}\t{' '.join(names)}\n"


def _resolv_conf(record: Container, resolver: bool) -> str:
    host_config = record.host_config
    return resolv_conf(
        bound_files.read_ours("/etc/resolv.conf"),
        host_config.dns or [],
        host_config.dns_search or [],
        host_config.dns_options or [],
        own_network=host_config.network_mode != "host",
        resolver=ADDRESS if resolver else "",
        ipv6=any(endpoint.ip6_address for endpoint in record.endpoints.values()),
    )
