"""How do /etc/hosts, /etc/hostname and /etc/resolv.conf get into a container, and how do they follow its networks?

The texts are made in `files`. A running container sees changes because the files are changed in place.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from husk.engine.containers import files
from husk.engine.containers.model import Container, Endpoint
from husk.engine.containers.places import Places
from husk.engine.containers.plan import Place
from husk.engine.networks.connector import Connected
from husk.engine.networks.endpoints import in_order
from husk.engine.networks.links import Link
from husk.engine.networks.requests import disables_ipv6
from husk.network.resolver import ADDRESS


def write(record: Container, places: Places, network: Connected) -> Place:
    """Write them for a start; where the container's things lie, which is elsewhere for files that it shares."""
    place = places.place(record.id)
    if network.shared_with:
        other = places.place(network.shared_with)
        return replace(place, hosts=other.hosts, hostname=other.hostname, resolv_conf=other.resolv_conf)
    config, host_config = record.config, record.host_config
    names = files.host_names(config.hostname, config.domainname)
    extra = host_config.extra_hosts or []
    if host_config.network_mode == "host":
        text = files.hosts("", [], extra, network.host_gateways, base=_read("/etc/hosts"))
    else:
        addresses = [address for endpoint in in_order(record) for address in _addresses(endpoint)]
        base = files.HOSTS_WITHOUT_IPV6 if disables_ipv6(host_config) else ""
        text = files.hosts("", [], extra, network.host_gateways, base)
        text += "".join(f"{link.address}\t{link.host_names}\n" for link in network.links)
        text += "".join(_line(address, names) for address in addresses)
    place.hosts.write_text(text)
    place.hostname.write_text(config.hostname + "\n")
    place.resolv_conf.write_text(_resolv_conf(record, network.resolver))
    for container_id, link in network.linked_by:
        _relink(places.place(container_id).hosts, link)
    return place


def _relink(hosts: Path, link: Link) -> None:
    """A linked container has started anew, perhaps with another address."""
    ending = f"\t{link.host_names}\n"

    def change(old: str) -> str:
        lines = [line for line in old.splitlines(keepends=True) if not line.endswith(ending)]
        return "".join(lines) + f"{link.address}{ending}"

    _edit(hosts, change)


def joined(record: Container, place: Place, endpoint: Endpoint, resolver: bool) -> None:
    """A running container has come on a network."""
    names = files.host_names(record.config.hostname, record.config.domainname)
    lines = "".join(_line(address, names) for address in _addresses(endpoint))
    _edit(place.hosts, lambda old: old + lines)
    _follow(record, place, resolver)


def left(record: Container, place: Place, endpoint: Endpoint, resolver: bool) -> None:
    """A running container has gone from a network."""
    marks = tuple(f"{address}\t" for address in _addresses(endpoint))
    _edit(place.hosts, lambda old: "".join(x for x in old.splitlines(keepends=True) if not x.startswith(marks)))
    _follow(record, place, resolver)


def _follow(record: Container, place: Place, resolver: bool) -> None:
    """Change between the daemon's resolver and the host's, unless the container has a file of its own by now."""
    old, new = _resolv_conf(record, not resolver), _resolv_conf(record, resolver)
    _edit(place.resolv_conf, lambda present: new if present == old else present)


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


def _edit(path: Path, change: Callable[[str], str]) -> None:
    """In place: the file is mounted into the container, a new one would not be seen there."""
    try:
        old = path.read_text(errors="replace")
    except FileNotFoundError:
        return
    new = change(old)
    if new != old:
        with path.open("r+") as file:
            file.write(new)
            file.truncate()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
