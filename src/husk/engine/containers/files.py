"""What do /etc/hosts, /etc/hostname and /etc/resolv.conf say inside? Pure texts; `prepare` writes them."""

import ipaddress
from collections.abc import Sequence

from husk.errors import InvalidParameter

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
