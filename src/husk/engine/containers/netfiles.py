"""How do /etc/hosts, /etc/hostname and /etc/resolv.conf get into a container, and how do they follow its networks?

The texts are made in `files`. A running container sees changes because the files are changed in place. It owns them,
see `storage/bound.py`. All functions block: callers on the event loop use a thread.
"""

import logging
from pathlib import Path

from msgspec.structs import replace

from husk.engine.containers import files
from husk.engine.containers.places import Places
from husk.engine.containers.plan import Place
from husk.engine.model.container import Container, Endpoint
from husk.engine.networks.connector import Connected
from husk.engine.networks.endpoints import in_order
from husk.engine.networks.requests import disables_ipv6
from husk.network.resolver import ADDRESS
from husk.storage import bound

log = logging.getLogger(__name__)


def write(record: Container, places: Places, network: Connected) -> Place:
    """Write them for a start; where the container's things lie, which is elsewhere for files that it shares."""
    place = places.place(record.id)
    if network.shared_with:
        other = places.place(network.shared_with)
        return replace(place, hosts=other.hosts, hostname=other.hostname, resolv_conf=other.resolv_conf)
    bound.replace(place.hosts, _hosts(record, network))
    bound.replace(place.hostname, record.config.hostname + "\n")
    resolv_conf = _resolv_conf(record, network.resolver)
    bound.replace(_copy_of(place.resolv_conf), resolv_conf)
    bound.replace(place.resolv_conf, resolv_conf)
    for other_record, its_network in network.linked_by:
        if not refresh(other_record, places.place(other_record.id), its_network):
            log.warning("container %s keeps its /etc/hosts from being written", other_record.id[:12])
    return place


def refresh(record: Container, place: Place, network: Connected) -> bool:
    """Let a running container see what its networks are now; False if it keeps a file busy: try again later.

    /etc/hosts is written anew from what we know: what the container wrote into it itself is gone. /etc/resolv.conf is
    written unless the container has one of its own by now.
    """
    try:
        return bound.overwrite(place.hosts, _hosts(record, network)) and _follow(record, place, network.resolver)
    except BlockingIOError:
        return False


def _follow(record: Container, place: Place, resolver: bool) -> bool:
    """Change between the daemon's resolver and the host's."""
    wanted = _resolv_conf(record, resolver)
    copy = _copy_of(place.resolv_conf)
    ours = {text for text in (_read(str(copy)), _resolv_conf(record, not resolver)) if text}
    present = bound.begins_with(place.resolv_conf, max(map(len, map(str.encode, ours))) + 1)
    if present not in ours:
        return True
    if not bound.overwrite(place.resolv_conf, wanted):
        return False
    bound.replace(copy, wanted)
    return True


def _copy_of(resolv_conf: Path) -> Path:
    """What we wrote last, where the container cannot change it."""
    return resolv_conf.with_name("resolv.conf.ours")


def _hosts(record: Container, network: Connected) -> str:
    config, host_config = record.config, record.host_config
    extra = host_config.extra_hosts or []
    if host_config.network_mode == "host":
        return files.hosts("", [], extra, network.host_gateways, base=_read("/etc/hosts"))
    names = files.host_names(config.hostname, config.domainname)
    addresses = [address for endpoint in in_order(record) for address in _addresses(endpoint)]
    base = files.HOSTS_WITHOUT_IPV6 if disables_ipv6(host_config) else ""
    text = files.hosts("", [], extra, network.host_gateways, base)
    text += "".join(f"{link.address}\t{link.host_names}\n" for link in network.links)
    return text + "".join(_line(address, names) for address in addresses)


def _addresses(endpoint: Endpoint) -> list[str]:
    return [address for address in (endpoint.ip_address, endpoint.ip6_address) if address]


def _line(address: str, names: list[str]) -> str:
    return f"{address}\t{' '.join(names)}\n"


def _resolv_conf(record: Container, resolver: bool) -> str:
    host_config = record.host_config
    return files.resolv_conf(
        _read("/etc/resolv.conf"),
        host_config.dns or [],
        host_config.dns_search or [],
        host_config.dns_options or [],
        own_network=host_config.network_mode != "host",
        resolver=ADDRESS if resolver else "",
        ipv6=any(endpoint.ip6_address for endpoint in record.endpoints.values()),
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
