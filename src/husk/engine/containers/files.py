"""What do /etc/hosts, /etc/hostname and /etc/resolv.conf say inside? Pure texts; `lifecycle` writes them."""

import ipaddress
import re
from collections.abc import Sequence

_HOSTS = """\
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::\tip6-localnet
ff00::\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
"""
FALLBACK_DNS = ("8.8.8.8", "8.8.4.4")


def hosts(address: str, names: Sequence[str], extra: Sequence[str], gateway: str, base: str = _HOSTS) -> str:
    """`extra` as the API has it (`name:address`, `host-gateway` for the bridge's own address)."""
    lines = [base.rstrip("\n")]
    if address:
        lines.append(f"{address}\t{' '.join(names)}")
    for entry in extra:
        name, _, target = entry.replace("=", ":", 1).partition(":")
        lines.append(f"{gateway if target == 'host-gateway' else target.strip('[]')}\t{name}")
    return "\n".join(lines) + "\n"


def resolv_conf(
    host_text: str, servers: Sequence[str], search: Sequence[str], options: Sequence[str], *, own_network: bool
) -> str:
    """The host's file with the container's wishes; loopback servers are of no use in another network."""
    found = re.findall(r"^\s*nameserver\s+(\S+)", host_text, re.MULTILINE)
    if servers:
        found = list(servers)
    elif own_network:
        found = [s for s in found if not _is_loopback(s)] or list(FALLBACK_DNS)
    domains = list(search) or re.findall(r"\S+", " ".join(re.findall(r"^\s*search\s+(.*)$", host_text, re.MULTILINE)))
    settings = list(options) or re.findall(
        r"\S+", " ".join(re.findall(r"^\s*options\s+(.*)$", host_text, re.MULTILINE))
    )
    lines = [f"nameserver {server}" for server in found]
    if domains and domains != ["."]:
        lines.append("search " + " ".join(domains))
    if settings:
        lines.append("options " + " ".join(settings))
    return "\n".join(lines) + "\n"


def _is_loopback(server: str) -> bool:
    try:
        return ipaddress.ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return False
