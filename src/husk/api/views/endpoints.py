"""A container's networks and ports as seen from outside: `docker ps`, `docker port`, `docker inspect`."""

from husk.api.types.containers import EndpointSettings, Port
from husk.api.versioning import CURRENT, Version
from husk.engine.model.container import ZERO_TIME, Container, Endpoint
from husk.engine.model.container_config import PortBinding
from husk.engine.model.network import BUILTIN
from husk.engine.networks.endpoints import dns_names, fresh
from husk.engine.networks.port_requests import PortRange, exposed

WITHOUT_ID_AMONG_ALIASES = Version(1, 45)


def networks(container: Container, version: Version = CURRENT) -> dict[str, EndpointSettings]:
    return {name: _endpoint(container, endpoint, version) for name, endpoint in container.endpoints.items()}


def listed_networks(container: Container) -> dict[str, EndpointSettings]:
    """In lists dockerd leaves out what names the container has."""
    found = networks(container)
    for endpoint in found.values():
        endpoint.links = endpoint.aliases = endpoint.dns_names = endpoint.driver_opts = None
    return found


def port_list(container: Container) -> list[Port]:
    """The PORTS column: published ones with where they are reached, the rest bare."""
    published = {_name(port.container_port, port.protocol) for port in container.published if not port.routed}
    ports = [
        Port(ip=port.host_ip, private_port=port.container_port, public_port=port.host_port, type=port.protocol)
        for port in container.published
        # One that is reached at the container's own address looks like one that is not published.
        if not port.routed
    ]
    for bare in _exposed(container):
        if _name(bare.first, bare.protocol) not in published:
            # A list has no word for a range: it is told by its first port, and as a whole by `port_map`.
            ports.append(Port(private_port=bare.first, type=bare.protocol))
    return sorted(ports, key=lambda port: (port.private_port, port.type, str(port.ip)))


def port_map(container: Container) -> dict[str, list[PortBinding] | None]:
    """Return the bindings where each port is reached; null for a port that is not published."""
    published = {_name(port.container_port, port.protocol) for port in container.published}
    found: dict[str, list[PortBinding] | None] = {
        str(ports): None
        for ports in _exposed(container)
        # A range is published as a whole, each port of it by itself.
        if len(ports) == 1 or _name(ports.first, ports.protocol) not in published
    }
    for port in container.published:
        bindings = found.get(name := _name(port.container_port, port.protocol)) or []
        bindings.append(PortBinding(host_ip=port.host_ip, host_port=str(port.host_port or "")))
        found[name] = bindings
    return found


def is_connected(container: Container) -> bool:
    """Tell if the container has its addresses. Once its process has ended none are shown, given back or not yet."""
    return container.state.status in ("running", "paused")


def _exposed(container: Container) -> list[PortRange]:
    """Ports that the container's process may listen on; they are there while it runs on a network of its own."""
    if not is_connected(container) or not container.sandbox_path or not container.endpoints:
        return []
    return exposed(container.config, container.host_config)


def _name(number: int, protocol: str) -> str:
    return f"{number}/{protocol}"


def _aliases(container: Container, endpoint: Endpoint, version: Version) -> list[str] | None:
    """Older clients look for the container's id among them."""
    aliases = endpoint.request.aliases
    if version >= WITHOUT_ID_AMONG_ALIASES or endpoint.network_name in BUILTIN:
        return aliases
    return list(dict.fromkeys([*(aliases or []), container.id[:12], container.config.hostname]))


def _names(container: Container, endpoint: Endpoint) -> list[str] | None:
    """They are known from the first start on, or from when the container was put on the network."""
    unknown = container.state.started_at == ZERO_TIME and not endpoint.added
    if endpoint.network_name in BUILTIN or unknown:
        return None
    return dns_names(container, endpoint)


def _endpoint(container: Container, endpoint: Endpoint, version: Version) -> EndpointSettings:
    request = endpoint.request
    if not is_connected(container):
        endpoint = fresh(endpoint)
    return EndpointSettings(
        ipam_config=request.ipam_config,
        links=request.links,
        aliases=_aliases(container, endpoint, version),
        mac_address=endpoint.mac_address or request.mac_address,
        driver_opts=request.driver_opts,
        gw_priority=request.gw_priority,
        network_id=endpoint.network_id,
        endpoint_id=endpoint.endpoint_id,
        gateway=endpoint.gateway,
        ip_address=endpoint.ip_address,
        ip_prefix_len=endpoint.prefix_len,
        ipv6_gateway=endpoint.gateway6,
        global_ipv6_address=endpoint.ip6_address,
        global_ipv6_prefix_len=endpoint.prefix6_len,
        dns_names=_names(container, endpoint),
    )
