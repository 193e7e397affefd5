"""What is the engine as a whole? Its parts, put together in the order in which they need each other.

async with Engine.open(config) as engine:
    for container in engine.containers.listing(all=True, limit=0, filters=NO_FILTERS):
        print(container.name)
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from husk import __version__
from husk.config import Config, RuntimeConfig
from husk.engine.containers.index import Index
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.model import Container
from husk.engine.containers.places import Places
from husk.engine.containers.restore import Restorer
from husk.engine.containers.service import Containers
from husk.engine.events import Events
from husk.engine.host import Host
from husk.engine.images.bootstrap import make_busybox
from husk.engine.images.commit import Committer
from husk.engine.images.index import ImageIndex
from husk.engine.images.model import CommitOptions
from husk.engine.images.pull import Pins, Puller
from husk.engine.images.remove import Remover
from husk.engine.images.service import Images
from husk.engine.networks.service import Networks
from husk.engine.system import System
from husk.errors import Unavailable
from husk.kernel import cgroups
from husk.registry.client import RegistryClient
from husk.runtime.conmon import Monitor
from husk.runtime.oci import Runtimes, find_runtimes
from husk.storage.blobs import BlobStore
from husk.storage.layers import LayerStore
from husk.storage.state import StateStore
from husk.tasks import Tasks

log = logging.getLogger(__name__)


class Engine:
    """One engine on one data root. Closing it leaves containers running; the next one takes them over."""

    def __init__(
        self,
        *,
        config: Config,
        events: Events,
        containers: Containers,
        images: Images,
        networks: Networks,
        system: System,
        committer: Committer,
        registry: RegistryClient,
    ) -> None:
        self.config = config
        self.events = events
        self.containers = containers
        self.images = images
        self.networks = networks
        self.system = system
        self._committer = committer
        self._registry = registry

    @classmethod
    @asynccontextmanager
    async def open(cls, config: Config) -> AsyncIterator["Engine"]:
        async with AsyncExitStack() as stack:
            yield await _open(config, stack)

    async def commit(self, container: str, options: CommitOptions) -> str:
        """Make an image from a container; its id."""
        return await self._committer.commit(container, options)

    def reload(self, config: Config) -> None:
        """Take over what may change while the daemon runs: labels, insecure registries, mirrors."""
        self.config = config
        self.system.reload(config)
        self._registry.configure(config.insecure_registries, config.registry_mirrors)
        self.events.publish("daemon", "reload", self.system.info().engine_id, {"name": self.system.info().hostname})


async def _open(config: Config, stack: AsyncExitStack) -> Engine:
    for directory in (config.data_root, config.exec_root):
        await asyncio.to_thread(directory.mkdir, mode=0o711, parents=True, exist_ok=True)
    tasks = Tasks()
    events = Events()
    state = await asyncio.to_thread(StateStore.open, config.data_root / "state.db")
    stack.callback(state.close)
    runtimes = await find_runtimes(config)
    stack.callback(runtimes.close)
    host = await asyncio.to_thread(Host.probe, runtimes.default.name)
    if not host.conmon_path:
        raise Unavailable("conmon is not installed: run `husk doctor --fix`")
    blobs = await asyncio.to_thread(BlobStore.open, config.data_root / "blobs")
    layers = await LayerStore.open(config.data_root / "layers", state, blobs)
    stack.push_async_callback(layers.close)
    registry = RegistryClient(config.insecure_registries, config.registry_mirrors, f"husk/{__version__}")
    await stack.enter_async_context(registry)
    index = Index(state, tasks)
    places = Places(config)
    await asyncio.to_thread(places.make_mount_points_layer)

    def records() -> Iterator[Container]:
        return (instance.record for instance in index)

    networks = await Networks.open(config, state, events, records())
    stack.push_async_callback(_leave_host, config, networks, index)
    monitor = Monitor(host.conmon_path)
    image_index, pins = ImageIndex(state), Pins()
    remover = Remover(index=image_index, blobs=blobs, layers=layers, pins=pins, containers=records, events=events)
    puller = Puller(
        registry=registry,
        blobs=blobs,
        layers=layers,
        index=image_index,
        pins=pins,
        release=remover.release,
        events=events,
    )
    images = Images(
        index=image_index,
        layers=layers,
        puller=puller,
        remover=remover,
        registry=registry,
        events=events,
        containers=records,
    )
    lifecycle = Lifecycle(
        index=index,
        places=places,
        layers=layers,
        networks=networks,
        monitor=monitor,
        runtimes=runtimes,
        events=events,
        host=host,
        tasks=tasks,
        release_layers=remover.release,
    )
    stack.push_async_callback(tasks.cancel_all)
    stack.callback(lifecycle.close)
    restorer = Restorer(
        index=index, places=places, lifecycle=lifecycle, monitor=monitor, runtimes=runtimes, tasks=tasks
    )
    await restorer.restore()
    await remover.collect()
    if not len(image_index) and await make_busybox(image_index, blobs, layers):
        log.info("made the image busybox:latest from this host's busybox")
    return Engine(
        config=config,
        events=events,
        containers=Containers(
            index=index,
            lifecycle=lifecycle,
            places=places,
            images=images,
            networks=networks,
            monitor=monitor,
            runtimes=runtimes,
            host=host,
        ),
        images=images,
        networks=networks,
        system=System(config, host, _named(runtimes)),
        committer=Committer(
            index=index,
            lifecycle=lifecycle,
            places=places,
            images=image_index,
            blobs=blobs,
            layers=layers,
            pins=pins,
            events=events,
        ),
        registry=registry,
    )


async def _leave_host(config: Config, networks: Networks, index: Index) -> None:
    """The bridge and the cgroup above all containers stay while containers use them."""
    in_use = any(instance.record.state.status in ("running", "paused") for instance in index)
    await networks.close(remove=not in_use)
    if not in_use:
        await asyncio.to_thread(cgroups.remove, config.cgroup_parent)


def _named(runtimes: Runtimes) -> dict[str, RuntimeConfig]:
    return {name: RuntimeConfig(runtime.path, runtime.args) for name, runtime in runtimes.all.items()}
