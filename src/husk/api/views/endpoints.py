"""How do a container's networks and ports look from outside? `docker ps`, `docker port`, `docker inspect`."""

from husk.api.types.containers import EndpointSettings, Port
from husk.engine.containers.model import Container, Endpoint, PortBinding
from husk.engine.networks.endpoints import dns_names
from husk.engine.networks.model import BUILTIN
from husk.engine.networks.publishing import exposed


def networks(container: Container) -> dict[str, EndpointSettings]:
    return {name: _endpoint(container, endpoint) for name, endpoint in container.endpoints.items()}


def port_list(container: Container) -> list[Port]:
    """The PORTS column: published ones with where they are reached, the rest bare."""
    published = {_name(port.container_port, port.protocol) for port in container.published}
    ports = [
        Port(ip=port.host_ip, private_port=port.container_port, public_port=port.host_port, type=port.protocol)
        for port in container.published
    ]
    for name in _exposed(container):
        if name not in published:
            number, _, protocol = name.partition("/")
            ports.append(Port(private_port=int(number), type=protocol))
    return sorted(ports, key=lambda port: (port.private_port, port.type, str(port.ip)))


def port_map(container: Container) -> dict[str, list[PortBinding] | None]:
    """Where each port is reached; null for one that is not published."""
    found: dict[str, list[PortBinding] | None] = dict.fromkeys(_exposed(container))
    for port in container.published:
        bindings = found.get(name := _name(port.container_port, port.protocol)) or []
        bindings.append(PortBinding(host_ip=port.host_ip, host_port=str(port.host_port)))
        found[name] = bindings
    return found


def is_connected(container: Container) -> bool:
    """Does it have its addresses? What they were is not shown once its process has ended, given back or not yet."""
    return container.state.status in ("running", "paused")


def _exposed(container: Container) -> list[str]:
    """Ports that the container's process may listen on; they are there while it runs on a network of its own."""
    if not is_connected(container) or not container.sandbox_path or not container.endpoints:
        return []
    return exposed(container.config, container.host_config)


def _name(number: int, protocol: str) -> str:
    return f"{number}/{protocol}"


def _endpoint(container: Container, endpoint: Endpoint) -> EndpointSettings:
    request = endpoint.request
    if not is_connected(container):
        endpoint = Endpoint(network_name=endpoint.network_name, network_id=endpoint.network_id)
    return EndpointSettings(
        ipam_config=request.ipam_config,
        links=request.links,
        aliases=request.aliases,
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
        dns_names=None if endpoint.network_name in BUILTIN else dns_names(container, endpoint),
    )
