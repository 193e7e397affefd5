"""How does a network look from outside? `docker network ls` and `docker network inspect`."""

from collections.abc import Callable, Iterable

from msgspec import UNSET, UnsetType

from husk.api.types.networks import Ipam, Network, NetworkContainer, Pool
from husk.engine.containers.model import Container
from husk.engine.filters import Filters
from husk.engine.networks import model

FILTERS = ("dangling", "driver", "id", "label", "name", "scope", "type")


def network(record: model.Network, containers: dict[str, NetworkContainer] | UnsetType) -> Network:
    pools = [Pool(subnet=record.subnet, gateway=record.gateway or UNSET)] if record.subnet else []
    return Network(
        name=record.name,
        id=record.id,
        created=record.created,
        scope=record.scope,
        driver=record.driver,
        enable_ipv4=record.enable_ipv4,
        enable_ipv6=record.enable_ipv6,
        ipam=Ipam(config=pools),
        internal=record.internal,
        attachable=record.attachable,
        ingress=record.ingress,
        containers=containers,
        options=record.options,
        labels=record.labels,
    )


def containers_on(record: model.Network, containers: Iterable[Container]) -> dict[str, NetworkContainer]:
    """The running containers of a network, by id."""
    found = {}
    for container in containers:
        endpoint = container.endpoints.get(record.name)
        if endpoint is None or not container.state.running:
            continue
        found[container.id] = NetworkContainer(
            name=container.name,
            endpoint_id=endpoint.endpoint_id,
            mac_address=endpoint.mac_address,
            ipv4_address=f"{endpoint.ip_address}/{endpoint.prefix_len}" if endpoint.ip_address else "",
        )
    return found


def matches(record: model.Network, filters: Filters) -> bool:
    """All kinds of filter must hold; of one kind, one value is enough. Names and ids match in part, as in Docker."""
    if not filters:
        return True
    kind = "builtin" if record.name in ("bridge", "host", "none") else "custom"
    return (
        _any(filters, "driver", lambda wanted: wanted == record.driver)
        and _any(filters, "id", record.id.startswith)
        and _any(filters, "name", lambda wanted: wanted in record.name)
        and _any(filters, "scope", lambda wanted: wanted == record.scope)
        and _any(filters, "type", lambda wanted: wanted == kind)
        and filters.matches_labels(record.labels)
    )


def _any(filters: Filters, key: str, test: Callable[[str], bool]) -> bool:
    values = filters.get(key)
    return not values or any(test(value) for value in values)
