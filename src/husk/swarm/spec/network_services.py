"""The services on a network, for `docker network inspect --verbose`. Pure."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from husk.engine.model.container import Endpoint
from husk.engine.model.network import Network
from husk.swarm.model.services import Service
from husk.swarm.spec.containers import attachments


class OnNetworks(Protocol):
    """A container, or what is known of one on another host."""

    @property
    def name(self) -> str: ...

    @property
    def endpoints(self) -> Mapping[str, Endpoint]: ...


class Elsewhere(Struct, frozen=True):
    """A task's container on another host."""

    name: str
    endpoints: Mapping[str, Endpoint]
    # The address of that host.
    host: str


class TaskOnNetwork(Struct, frozen=True):
    name: str
    endpoint_id: str
    address: str
    # The address of the host that it is on; empty for this one.
    host: str = ""


class ServiceOnNetwork(Struct, frozen=True):
    # Empty for one whose name stands for its tasks.
    virtual_address: str
    # (port of the tasks, port of the host)
    ports: tuple[tuple[int, int], ...]
    tasks: tuple[TaskOnNetwork, ...]


def services_on(
    network: Network, services: Iterable[Service], running: Mapping[str, Iterable[OnNetworks]]
) -> dict[str, ServiceOnNetwork]:
    """The services that are on a network, by name; `running` are their tasks' containers by the services' ids."""
    found = {}
    for service in services:
        virtual = [entry.addr.partition("/")[0] for entry in service.virtual_ips if entry.network_id == network.id]
        if not virtual and all(attachment.target != network.id for attachment in attachments(service)):
            continue
        places = [
            (container.name, endpoint, container.host if isinstance(container, Elsewhere) else "")
            for container in running.get(service.id, ())
            if (endpoint := container.endpoints.get(network.name)) is not None
        ]
        found[service.spec.name] = ServiceOnNetwork(
            virtual[0] if virtual else "",
            tuple((port.target_port, port.published_port) for port in service.ports),
            tuple(
                TaskOnNetwork(name, one.endpoint_id, one.ip_address or one.ip6_address, at) for name, one, at in places
            ),
        )
    return found
