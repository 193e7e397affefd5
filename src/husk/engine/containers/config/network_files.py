"""The content of /etc/hosts and /etc/resolv.conf in a container. Pure; `containers.connect` writes the files."""

import ipaddress
from collections.abc import Iterable, Sequence

from husk.engine.model.container import Container
from husk.engine.networks.connector import Connected
from husk.engine.networks.endpoints import in_order
from husk.engine.networks.requests import disables_ipv6
from husk.errors import InvalidParameter
from husk.network.resolver import ADDRESS

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
    """Return a container's own host names: its full name and, if that has a domain, the name before it."""
    full = f"{hostname}.{domainname}" if domainname else hostname
    bare, dot, _ = full.partition(".")
    return [full, bare] if dot else [full]


def hosts(known: Iterable[tuple[str, str]], extra: Sequence[str], gateways: Sequence[str], base: str = "") -> str:
    """`known` are addresses with their names; `extra` is as the API has it (`name:address`, `host-gateway` for the
    bridge's own addresses)."""
    lines = [(base or _HOSTS).rstrip("\n")]
    for entry in extra:
        name, _, target = entry.replace("=", ":", 1).partition(":")
        if target == "host-gateway" and not gateways:
            raise InvalidParameter("unable to derive the IP value for host-gateway")
        lines += [f"{one}\t{name}" for one in (gateways if target == "host-gateway" else [target.strip("[]")])]
    lines += [f"{address}\t{names}" for address, names in known]
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


def hosts_of(record: Container, network: Connected, of_host: str) -> str:
    """The container's /etc/hosts; `of_host` is the host's own, for containers on its network."""
    config, host_config = record.config, record.host_config
    extra = host_config.extra_hosts or []
    if host_config.network_mode == "host":
        return hosts([], extra, network.host_gateways, of_host)
    names = " ".join(host_names(config.hostname, config.domainname))
    linked = [(link.address, link.host_names) for link in network.links]
    addresses = [address for one in in_order(record) for address in (one.ip_address, one.ip6_address) if address]
    base = HOSTS_WITHOUT_IPV6 if disables_ipv6(host_config) else ""
    return hosts([*linked, *((address, names) for address in addresses)], extra, network.host_gateways, base)


def resolv_conf_of(record: Container, resolver: bool, of_host: str) -> str:
    """The container's /etc/resolv.conf, from the host's own; with `resolver` the daemon answers its questions."""
    host_config = record.host_config
    return resolv_conf(
        of_host,
        host_config.dns or [],
        host_config.dns_search or [],
        host_config.dns_options or [],
        own_network=host_config.network_mode != "host",
        resolver=ADDRESS if resolver else "",
        ipv6=any(endpoint.ip6_address for endpoint in record.endpoints.values()),
    )
