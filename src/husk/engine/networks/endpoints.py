"""The endpoints of a container: their order, their leases and their names. Pure."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec.structs import replace

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.container_config import EndpointRequest
from husk.errors import InvalidParameter
from husk.network.sandbox import Lease


class HasEndpoints(Protocol):
    @property
    def endpoints(self) -> Mapping[str, Endpoint]: ...


def fresh(endpoint: Endpoint) -> Endpoint:
    """The endpoint as it is while its container does not run."""
    return Endpoint(
        network_name=endpoint.network_name,
        network_id=endpoint.network_id,
        request=endpoint.request,
        added=endpoint.added,
    )


def lease(sandbox_path: str, endpoint: Endpoint) -> Lease | None:
    """Return the lease that a driver gave for the endpoint; None while it has nothing."""
    if not endpoint.host_interface:
        return None
    return Lease(
        sandbox_path=sandbox_path,
        host_interface=endpoint.host_interface,
        ip_address=endpoint.ip_address,
        prefix_len=endpoint.prefix_len,
        gateway=endpoint.gateway,
        mac_address=endpoint.mac_address,
        interface=endpoint.interface,
        ip6_address=endpoint.ip6_address,
        prefix6_len=endpoint.prefix6_len,
        gateway6=endpoint.gateway6,
        direct=endpoint.direct,
    )


def leased(endpoint: Endpoint, given: Lease) -> Endpoint:
    """The endpoint with what a driver gave for it."""
    return replace(
        endpoint,
        ip_address=given.ip_address,
        prefix_len=given.prefix_len,
        gateway=given.gateway,
        mac_address=given.mac_address,
        host_interface=given.host_interface,
        interface=given.interface,
        ip6_address=given.ip6_address,
        prefix6_len=given.prefix6_len,
        gateway6=given.gateway6,
        direct=given.direct,
    )


def in_order(record: Container) -> list[Endpoint]:
    """The network of the container's mode first: it is eth0. The others by name."""
    mode = record.host_config.network_mode
    return sorted(record.endpoints.values(), key=lambda e: (mode not in (e.network_name, e.network_id), e.network_name))


def gateway_endpoint(record: HasEndpoints) -> Endpoint | None:
    """The endpoint that leads to everywhere else, and to which published ports lead."""
    return _first(e for e in record.endpoints.values() if e.gateway or (e.direct and e.ip_address))


def gateway6_endpoint(record: Container) -> Endpoint | None:
    """The same for IPv6: it may be another network that has that."""
    return _first(e for e in record.endpoints.values() if e.gateway6 or (e.direct and e.ip6_address))


def leads_out(record: Container) -> bool:
    """Return True if the container reaches other networks at all."""
    return gateway_endpoint(record) is not None or gateway6_endpoint(record) is not None


def _first(leading: Iterable[Endpoint]) -> Endpoint | None:
    return min(leading, key=lambda e: (-e.request.gw_priority, e.network_name), default=None)


def wanted_address(request: EndpointRequest) -> str:
    return str((request.ipam_config or {}).get("IPv4Address") or "")


def wanted_address6(request: EndpointRequest) -> str:
    return str((request.ipam_config or {}).get("IPv6Address") or "")


def dns_names(record: Container, endpoint: Endpoint) -> list[str]:
    """Return the container's names on a network where names are resolved."""
    names = [record.name, *(endpoint.request.aliases or []), record.id[:12], record.config.hostname]
    return list(dict.fromkeys(name for name in names if name))


def link_names(record: Container) -> dict[str, str]:
    """Return the container's names for those it is linked to on the default bridge, such as web/db: for everybody."""
    if record.host_config.network_mode != "bridge":
        return {}
    return {f"{record.name}/{alias}": target for alias, target in parse_links(record.host_config.links).items()}


def links_after_rename(links: list[str], old: str, new: str) -> list[str]:
    """Links such as `/db:/web/alias` when one of the two has another name."""
    found = []
    for entry in links:
        target, _, name = entry.partition(":")
        parent, _, alias = name.rpartition("/")
        target, parent = (f"/{new}" if known == f"/{old}" else known for known in (target, parent))
        found.append(f"{target}:{parent}/{alias}")
    return found


def parse_links(links: list[str] | None) -> dict[str, str]:
    """Alias to container reference of `container` or `container:alias`."""
    found = {}
    for link in links or []:
        target, _, alias = link.partition(":")
        target = target.removeprefix("/")
        if not target:
            raise InvalidParameter(f"bad format for links: {link}")
        found[alias.rpartition("/")[2] or target] = target
    return found
