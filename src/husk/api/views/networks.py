"""A network as seen from outside: `docker network ls` and `docker network inspect`."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import UNSET, UnsetType

from husk.api.types.networks import (
    ConfigReference,
    Ipam,
    IpamStatus,
    Network,
    NetworkContainer,
    NetworkService,
    NetworkStatus,
    NetworkTask,
    Pool,
    SubnetStatus,
)
from husk.engine.model import network as model
from husk.engine.model.container import Container
from husk.engine.model.filters import Filters
from husk.engine.networks.load_balancer import LoadBalancer
from husk.swarm.spec.network_services import ServiceOnNetwork

# An IPv6 subnet has more addresses than fit into the number on the wire.
_MOST_COUNTED = 2**64 - 1

FILTERS = ("dangling", "driver", "id", "label", "name", "scope", "type")


def network(record: model.Network, containers: dict[str, NetworkContainer] | UnsetType) -> Network:
    pools = [
        Pool(
            subnet=subnet,
            gateway=UNSET if version in record.untold_gateways else gateway or UNSET,
            ip_range=ip_range or UNSET,
            auxiliary_addresses=auxiliary or UNSET,
        )
        for version, subnet, gateway, ip_range, auxiliary in (
            (4, record.subnet, record.gateway, record.ip_range, record.aux_addresses),
            (6, record.subnet6, record.gateway6, record.ip_range6, record.aux_addresses6),
        )
        if subnet
    ]
    # One that belongs to the whole swarm is known in less detail until it is used here.
    unused = record.scope == "swarm" and not containers
    return Network(
        name=record.name,
        id=record.id,
        created=record.created,
        scope=record.scope,
        driver=record.driver,
        enable_ipv4=record.enable_ipv4,
        enable_ipv6=record.enable_ipv6,
        ipam=Ipam(config=pools or None, options=record.ipam_options),
        internal=record.internal,
        attachable=record.attachable,
        ingress=record.ingress,
        config_from=ConfigReference(network=record.config_from),
        config_only=record.config_only,
        containers=None if unused and containers is not UNSET else containers,
        options=record.options,
        labels=(record.labels or None) if unused else record.labels,
    )


def containers_on(record: model.Network, containers: Iterable[Container]) -> dict[str, NetworkContainer]:
    """The running containers of a network, by id."""
    found = {}
    for container in containers:
        endpoint = container.endpoints.get(record.name)
        if endpoint is None:
            continue
        found[container.id] = NetworkContainer(
            name=container.name,
            endpoint_id=endpoint.endpoint_id,
            mac_address=endpoint.mac_address,
            ipv4_address=f"{endpoint.ip_address}/{endpoint.prefix_len}" if endpoint.ip_address else "",
            ipv6_address=f"{endpoint.ip6_address}/{endpoint.prefix6_len}" if endpoint.ip6_address else "",
        )
    return found


def load_balancer(balancer: LoadBalancer) -> NetworkContainer:
    """As dockerd shows it, beside the containers."""
    return NetworkContainer(
        name=balancer.name,
        endpoint_id=balancer.endpoint_id,
        mac_address=balancer.mac_address,
        ipv4_address=balancer.address,
        ipv6_address=balancer.address6,
    )


def services(found: Mapping[str, ServiceOnNetwork], host_ip: str) -> dict[str, NetworkService]:
    """The services on a network of the swarm; `host_ip` is the address of this host."""
    return {
        name: NetworkService(
            vip=service.virtual_address,
            ports=[f"Target: {target}, Publish: {published}" for target, published in service.ports],
            tasks=[
                NetworkTask(
                    name=task.name,
                    endpoint_id=task.endpoint_id,
                    endpoint_ip=task.address,
                    info={"Host IP": task.host or host_ip},
                )
                for task in service.tasks
            ],
        )
        for name, service in found.items()
    }


def status(addresses: Mapping[str, tuple[int, int]]) -> NetworkStatus:
    subnets = {
        subnet: SubnetStatus(ips_in_use=used, dynamic_ips_available=min(available, _MOST_COUNTED))
        for subnet, (used, available) in addresses.items()
    }
    return NetworkStatus(ipam=IpamStatus(subnets=subnets))


def matches(record: model.Network, filters: Filters) -> bool:
    """All kinds of filter must hold; of one kind, one value is enough. Names and ids match in part, as in Docker."""
    if not filters:
        return True
    kind = "builtin" if record.builtin else "custom"
    return (
        _any(filters, "driver", lambda wanted: wanted == record.driver)
        and _any(filters, "id", lambda wanted: wanted in record.id)
        and _any(filters, "name", lambda wanted: wanted in record.name)
        and _any(filters, "scope", lambda wanted: wanted == record.scope)
        and _any(filters, "type", lambda wanted: wanted == kind)
        and filters.matches_labels(record.labels)
    )


def _any(filters: Filters, key: str, test: Callable[[str], bool]) -> bool:
    values = filters.get(key)
    return not values or any(test(value) for value in values)
