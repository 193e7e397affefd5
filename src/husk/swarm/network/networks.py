"""The networks of a swarm, and who needs them.

The ingress network is made with the swarm, as in Docker. On one host it is a bridge like another: tasks of services
with published ports in ingress mode are on it beside their own networks, and the ports lead to them there. So a service
that is otherwise only on internal networks, or on none, is reached too. Nothing is resolved by name on it. Docker's
`docker_gwbridge` has no counterpart: every bridge leads outside by itself.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from husk.engine.model.container import Container
from husk.engine.model.network import Network, NetworkRequest
from husk.engine.networks.service import Networks
from husk.errors import Forbidden, HuskError, InvalidParameter
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.services import PortConfig, Service, ServiceSpec, any_ingress
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.spec.containers import is_on
from husk.swarm.state.records import SwarmRecords

log = logging.getLogger(__name__)

INGRESS = "ingress"
# How long the removal of a network waits for tasks to leave it.
GRACE, INTERVAL = 30.0, 0.02
_REFUSED = "rpc error: code = FailedPrecondition desc = "


class SwarmNetworks:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        cluster: Cluster,
        networks: Networks,
        shared: Callable[[], OverlayAllocator | None] = lambda: None,
        left: Callable[[], None] = lambda: None,
    ) -> None:
        """`shared` are the networks of a swarm of several hosts; `left` hears that there are none any more."""
        self._shared = shared
        self._left = left
        self._store = store
        self._cluster = cluster
        self._networks = networks

    async def make_ingress(self) -> None:
        """Make the ingress network of a swarm that never had one; whoever removes it has his reasons."""
        if not self._cluster.active or self._cluster.record.ingress_made:
            return
        if ingress_of(self._networks.listing()) is None:
            request = NetworkRequest(name=INGRESS, driver="overlay", ingress=True)
            try:
                await self._create(request)
            except HuskError as error:
                log.error("the swarm has no ingress network, ports in ingress mode are refused: %s", error.message)
                return
        await self._cluster.note_ingress()

    def any(self) -> bool:
        return any(network.scope == "swarm" for network in self._networks.listing())

    async def create(self, request: NetworkRequest) -> Network:
        """A network of the swarm; raises where there is none."""
        _ = self._cluster.swarm
        return await self._create(request)

    async def _create(self, request: NetworkRequest) -> Network:
        if request.config_only or (shared := self._shared()) is None:
            return await self._networks.create(request, self._cluster.pools)

        async def attempt() -> Network:
            seen = shared.guard()
            used = [one for node in self._store.nodes.values() for one in (*node.description.subnets, node.status.addr)]
            network = await self._networks.plan(request, self._cluster.pools, list(shared.networks.values()), used)
            await shared.add(network, seen)
            return network

        network = await self._store.retried(attempt)
        await self._networks.presence.know(shared.networks)
        return self._networks.find(network.id)

    def resolve(self, spec: ServiceSpec) -> None:
        """Replace names of networks by their ids; raises for those that a service cannot be on."""
        for attachment in (*spec.networks, *spec.task_template.networks):
            network = self._networks.find(attachment.target)
            if network.ingress:
                raise InvalidParameter(
                    "rpc error: code = InvalidArgument desc = Service cannot be explicitly attached to the ingress "
                    f'network "{network.name}"'
                )
            if network.scope != "swarm" and not network.builtin:
                raise Forbidden(
                    f"The network {network.name} cannot be used with services. Only networks scoped to the swarm can "
                    "be used, such as those created with the overlay driver."
                )
            attachment.target = network.name if network.builtin else network.id

    def check_ports(self, ports: Iterable[PortConfig]) -> None:
        if any_ingress(ports) and ingress_of(self._networks.listing()) is None:
            raise InvalidParameter(_REFUSED + "service needs ingress network, but no ingress network is present")

    def places_of(self, container: Container) -> list[tuple[Network, str]]:
        """The swarm's networks that a container is on now, with its address there in the form 10.0.1.5/24."""
        return [
            (network, f"{endpoint.ip_address}/{endpoint.prefix_len}")
            for network in self._networks.listing()
            if network.scope == "swarm"
            and (endpoint := container.endpoints.get(network.name)) is not None
            and endpoint.ip_address
        ]

    def places_elsewhere(self, task_id: str) -> list[tuple[Network, str]]:
        """The same for a task on another host."""
        shared = self._shared()
        return shared.of_task(task_id) if shared is not None else []

    def hosts(self, network: Network) -> list[tuple[str, str]]:
        """(node, its address) of the hosts that a network is on, where hosts share it."""
        shared, nodes = self._shared(), self._store.nodes
        places = shared.of(network) if shared is not None else ()
        found = {place.node: nodes[place.node] for place in places if place.kind == "host" and place.node in nodes}
        return sorted((id, node.data_address) for id, node in found.items())

    def usage(self, network: Network) -> dict[str, tuple[int, int]]:
        """(addresses in use, addresses left to give out) by subnet, on a network that hosts share."""
        shared = self._shared()
        return shared.usage(network) if shared is not None else {}

    def needed(self, network: Network) -> bool:
        """Tell if a network is the ingress network, a service's (with tasks or without), or one of a locked swarm."""
        return network.ingress or (network.scope == "swarm" and self._cluster.locked) or bool(self.users(network))

    def declared_on(self, network: Network) -> bool:
        """Tell if a service is declared on a network. A container of the swarm's own does not count."""
        return bool(self.users(network))

    def users(self, network: Network) -> list[Service]:
        """The services that are declared to be on a network."""
        return [service for service in self._store.services.values() if is_on(service, network)]

    async def let_go(self, network: Network) -> None:
        """A network is to be removed: refuse it while services need it; wait for tasks that are about to leave it."""
        if self._cluster.active or self._cluster.pending or self._cluster.locked or self._cluster.place is not None:
            # Raises while it is locked or away, and on a worker, where nothing of the swarm is changed.
            _ = self._cluster.swarm
        if users := self.users(network):
            raise InvalidParameter(
                _REFUSED + f"ingress network cannot be removed because service {users[0].id} depends on it"
                if network.ingress
                else _REFUSED + f"network {network.id} is in use by service {users[0].id}"
            )
        for _ in range(int(GRACE / INTERVAL)):
            if not self._leaving(network):
                break
            await asyncio.sleep(INTERVAL)

    async def leave(self) -> None:
        """The swarm is gone, and its networks with it."""
        for network in [network for network in self._networks.listing() if network.scope == "swarm"]:
            try:
                await self._networks.remove(network.id)
            except HuskError as error:
                log.warning("network %s outlives the swarm: %s", network.name, error.message)
        if not self._store.shared:
            self._left()

    async def clear(self) -> None:
        """The last host leaves a store that others had too: nothing of networks stays there."""
        if (shared := self._shared()) is not None:
            await shared.clear()

    def _leaving(self, network: Network) -> bool:
        """Tell if a task still has a container on a network that no service wants it on, or an address on any host."""
        members = {container.id for container in self._networks.members(network)}
        if any(task.status.container_id in members for task in self._store.tasks.values()):
            return True
        if (shared := self._shared()) is None:
            return False
        mine = self._cluster.node_id
        return any(
            place.task or (place.node == mine and place.container not in members)
            for place in shared.of(network)
            if place.kind == "endpoint"
        )


def ingress_of(networks: Sequence[Network]) -> Network | None:
    return next((network for network in networks if network.ingress), None)
