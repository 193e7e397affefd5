"""Connect a container that exists already to another network, or disconnect it from one.

A stopped container only has it noted for its next start. A running one is given or loses an interface at once, and
its /etc/hosts and /etc/resolv.conf follow: it sees changes because the files are changed in place; it owns them, see
`runtime/assembly/network_files.py`. `write_files` and `refresh_files` block: callers on the event loop use a thread.
"""

import asyncio
import logging
from pathlib import Path

from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.engine.containers.config.network_files import hosts_of, resolv_conf_of
from husk.engine.containers.index import ContainerIndex, Instance
from husk.engine.model.container import Container
from husk.engine.model.container_config import EndpointRequest
from husk.engine.networks.connector import Connected
from husk.engine.networks.service import Networks
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound
from husk.runtime.assembly import network_files as bound_files
from husk.runtime.assembly.paths import ContainerPaths, Paths

log = logging.getLogger(__name__)

# The kernel takes a lease away from its holder after 45 seconds, unless the host was told otherwise.
_TRIES = 120
_PAUSE = 0.5


class Connections:
    def __init__(self, index: ContainerIndex, networks: Networks, paths: Paths, tasks: Tasks) -> None:
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
            await self._networks.seek(network)
            endpoint = self._networks.new_endpoint(network, record, request)
            if endpoint.network_name in record.endpoints:
                return  # As with dockerd: who runs later keeps what was asked for first.
            draft = instance.draft
            try:
                if record.on_networks:
                    await self._networks.join(draft, endpoint)
                    await self._tell(instance)
                else:
                    draft.put(endpoint)
                await self._index.save(instance, draft.record)
            except BaseException:
                # Whoever is cancelled when it is written is connected.
                if instance.record is not draft.record:
                    undoing = self._undo(instance, endpoint.network_name)
                    await self._tasks.to_its_end(undoing, f"take {instance.id[:12]} off a network again")
                raise

    async def disconnect(self, network: str, container: str, force: bool) -> None:
        """Also from a network that is gone, if it is `force`d or the container does not run."""
        try:
            instance = self._index.find(container)
        except NotFound:
            self._networks.find(network)
            if not force:
                raise
            raise NotFound(f"endpoint {container} not found") from None
        async with instance.lock:
            record = instance.record
            name = self._name(network, record, force)
            if name == "host" and "host" in record.endpoints and record.on_networks:
                raise InvalidParameter(
                    "cannot disconnect container from host network - container was created in host network mode"
                )
            if name not in record.endpoints:
                network_word = "network" if record.on_networks else "the network"
                raise Forbidden(f"container {record.id} is not connected to {network_word} {name}")
            self._require_settled(instance)
            await self._take_off(instance, name)

    async def _undo(self, instance: Instance, name: str) -> None:
        if name in instance.draft.record.endpoints:
            await self._take_off(instance, name)
        else:
            await self._index.settle(instance, instance.draft.record)

    async def _take_off(self, instance: Instance, name: str) -> None:
        draft = instance.draft
        endpoint = draft.take(name)
        # First the record: an interface that no record knows is removed at the next start.
        await self._index.settle(instance, draft.record)
        if endpoint.endpoint_id:
            await self._networks.leave(draft, endpoint)
            await self._tell(instance)
            await self._index.settle(instance, draft.record)

    async def _tell(self, instance: Instance) -> None:
        """Let the container's files say what its networks are; one that keeps them busy gets them later."""
        if not await self._refresh(instance) and instance.id not in self._busy:
            self._busy.add(instance.id)
            self._tasks.spawn(self._keep_trying(instance), f"write the network files of {instance.id[:12]}")

    async def _refresh(self, instance: Instance) -> bool:
        record = instance.draft.record
        network = self._networks.described(record)
        return await asyncio.to_thread(refresh_files, record, self._paths.of(instance.id), network)

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


def write_files(record: Container, paths: Paths, network: Connected) -> ContainerPaths:
    """Write them for a start; where the container's things lie, which is elsewhere for files that it shares."""
    own = paths.of(record.id)
    if network.shared_with:
        other = paths.of(network.shared_with)
        return replace(own, hosts=other.hosts, hostname=other.hostname, resolv_conf=other.resolv_conf)
    bound_files.replace(own.hosts, _hosts(record, network))
    bound_files.replace(own.hostname, record.config.hostname + "\n")
    resolv_conf = _resolv_conf(record, network.resolver)
    bound_files.replace(_copy_of(own.resolv_conf), resolv_conf)
    bound_files.replace(own.resolv_conf, resolv_conf)
    for other_record, its_network in network.linked_by:
        if not refresh_files(other_record, paths.of(other_record.id), its_network):
            log.warning("container %s keeps its /etc/hosts from being written", other_record.id[:12])
    return own


def refresh_files(record: Container, own: ContainerPaths, network: Connected) -> bool:
    """Let a running container see what its networks are now; False if it keeps a file busy: try again later.

    /etc/hosts is written anew from what we know: what the container wrote into it itself is gone. /etc/resolv.conf is
    written unless the container has one of its own by now.
    """
    try:
        return bound_files.overwrite(own.hosts, _hosts(record, network)) and _follow_resolver(
            record, own, network.resolver
        )
    except BlockingIOError:
        return False


def _follow_resolver(record: Container, own: ContainerPaths, resolver: bool) -> bool:
    """Change between the daemon's resolver and the host's."""
    wanted = _resolv_conf(record, resolver)
    copy = _copy_of(own.resolv_conf)
    ours = {text for text in (bound_files.read_ours(copy), _resolv_conf(record, not resolver)) if text}
    present = bound_files.begins_with(own.resolv_conf, max(map(len, map(str.encode, ours))) + 1)
    if present not in ours:
        return True
    if not bound_files.overwrite(own.resolv_conf, wanted):
        return False
    bound_files.replace(copy, wanted)
    return True


def _copy_of(resolv_conf: Path) -> Path:
    """Return the path of our copy of what we wrote last, where the container cannot change it."""
    return resolv_conf.with_name("resolv.conf.ours")


def _hosts(record: Container, network: Connected) -> str:
    on_host = record.host_config.network_mode == "host"
    return hosts_of(record, network, bound_files.read_ours("/etc/hosts") if on_host else "")


def _resolv_conf(record: Container, resolver: bool) -> str:
    return resolv_conf_of(record, resolver, bound_files.read_ours("/etc/resolv.conf"))
