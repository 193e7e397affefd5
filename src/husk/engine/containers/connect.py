"""Connect a container that exists already to another network, or disconnect it from one.

A stopped container only has it noted for its next start. A running one is given or loses an interface at once.
"""

import asyncio
import logging

from husk.engine.containers import network_files
from husk.engine.containers.index import Index, Instance
from husk.engine.model.container import Container
from husk.engine.model.container_config import EndpointRequest
from husk.engine.networks.service import Networks
from husk.errors import Conflict, DiskFault, Forbidden, NotFound
from husk.runtime.assembly.paths import Paths
from husk.tasks import Tasks

log = logging.getLogger(__name__)

# The kernel takes a lease away from its holder after 45 seconds, unless the host was told otherwise.
_TRIES = 120
_PAUSE = 0.5


class Connections:
    def __init__(self, index: Index, networks: Networks, paths: Paths, tasks: Tasks) -> None:
        self._index = index
        self._networks = networks
        self._paths = paths
        self._tasks = tasks
        # Containers that keep a file of theirs from being written.
        self._busy: set[str] = set()

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
                await self._tell(instance)
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
            await self._tell(instance)
            await self._index.settle(instance)

    async def _tell(self, instance: Instance) -> None:
        """Let the container's files say what its networks are; one that keeps them busy gets them later."""
        if not await self._refresh(instance) and instance.id not in self._busy:
            self._busy.add(instance.id)
            self._tasks.spawn(self._keep_trying(instance), f"write the network files of {instance.id[:12]}")

    async def _refresh(self, instance: Instance) -> bool:
        network = self._networks.described(instance.record)
        return await asyncio.to_thread(network_files.refresh, instance.record, self._paths.of(instance.id), network)

    async def _keep_trying(self, instance: Instance) -> None:
        try:
            for _ in range(_TRIES):
                await asyncio.sleep(_PAUSE)
                async with instance.lock:
                    if not self._index.present(instance) or not instance.record.on_networks:
                        return
                    if await self._refresh(instance):
                        return
            log.warning("container %s keeps its network files from being written", instance.id[:12])
        finally:
            self._busy.discard(instance.id)

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
