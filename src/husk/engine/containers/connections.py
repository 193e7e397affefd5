"""How does a container that exists already come on another network, or off one?

A stopped container only has it noted for its next start. A running one is given or loses an interface at once.
"""

from husk.engine.containers import netfiles
from husk.engine.containers.index import Index, Instance
from husk.engine.containers.model import Container, EndpointRequest
from husk.engine.containers.places import Places
from husk.engine.networks.service import Networks
from husk.errors import Conflict, DiskFault, Forbidden, NotFound


class Connections:
    def __init__(self, index: Index, networks: Networks, places: Places) -> None:
        self._index = index
        self._networks = networks
        self._places = places

    async def connect(self, network: str, container: str, request: EndpointRequest) -> None:
        instance = self._index.find(container)
        async with instance.lock:
            record = instance.record
            self._require_settled(instance)
            endpoint = self._networks.new_endpoint(network, record, request)
            if endpoint.network_name in record.endpoints:
                return  # As with dockerd: who runs later keeps what was asked for first.
            record.endpoints[endpoint.network_name] = endpoint
            if record.on_networks:
                await self._networks.join(record, endpoint)
                netfiles.joined(record, self._places.place(record.id), endpoint, self._networks.resolves(record))
            try:
                await self._index.save(instance)
            except DiskFault:
                await self._take_off(instance, endpoint.network_name)
                raise

    async def disconnect(self, network: str, container: str, force: bool) -> None:
        """Also from a network that is gone, if it is `force`d or the container does not run."""
        try:
            instance = self._index.find(container)
        except NotFound:
            self._networks.find(network)
            if not force:
                raise
            return
        async with instance.lock:
            record = instance.record
            name = self._name(network, record, force)
            if name == "host" and "host" in record.endpoints:
                raise Forbidden("container cannot be disconnected from host network")
            if name not in record.endpoints:
                raise Forbidden(f"container {record.id} is not connected to network {name}")
            self._require_settled(instance)
            await self._take_off(instance, name)

    async def _take_off(self, instance: Instance, name: str) -> None:
        record = instance.record
        endpoint = record.endpoints.pop(name)
        # First the record: an interface that no record knows is removed at the next start.
        await self._index.settle(instance)
        if endpoint.endpoint_id:
            await self._networks.leave(record, endpoint)
            netfiles.left(record, self._places.place(record.id), endpoint, self._networks.resolves(record))
            await self._index.settle(instance)

    def _name(self, network: str, record: Container, force: bool) -> str:
        try:
            return self._networks.find(network).name
        except NotFound:
            if record.on_networks and not force:
                raise
            gone = (name for name, endpoint in record.endpoints.items() if network in (name, endpoint.network_id))
            if (name := next(gone, None)) is None:
                raise
            return name

    def _require_settled(self, instance: Instance) -> None:
        if not self._index.present(instance) or instance.record.state.status in ("removing", "dead"):
            raise Conflict(f"container {instance.id} is marked for removal and cannot be connected or disconnected")
