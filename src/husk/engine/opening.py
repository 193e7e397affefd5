"""Opening of the core: its parts are put together in the order in which they need each other.

Each is handed what it needs; what one needs from above is a function. What was opened is closed in the other order.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from husk.aio.tasks import Tasks
from husk.claims import claimed_roots
from husk.config import Config
from husk.engine.containers.drivers import Drivers, bundle_of
from husk.engine.containers.exec import Execs
from husk.engine.containers.index import ContainerIndex, Publish, publish_container
from husk.engine.containers.mounts import MountTaker
from husk.engine.containers.oom import MemoryWatch
from husk.engine.containers.parts import Parts
from husk.engine.containers.remove import ContainerPruner
from husk.engine.containers.service import Containers
from husk.engine.host import EngineHost
from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.held import HeldLayers
from husk.engine.images.limiter import Limiter
from husk.engine.images.service import Images
from husk.engine.images.store import IMAGE_USERS, ImageStore
from husk.engine.late_registry import LateRegistry
from husk.engine.logs import options as log_options
from husk.engine.logs.forwarding import Forwarder
from husk.engine.logs.rotation import Rotator
from husk.engine.migrations import STEPS
from husk.engine.model.container import Container
from husk.engine.model.container_config import LogConfig
from husk.engine.model.events import Events
from husk.engine.networks.service import Networks
from husk.engine.system import System
from husk.engine.volumes.service import Volumes
from husk.errors import HuskError, InvalidParameter, Unavailable
from husk.runtime.assembly import cgroup
from husk.runtime.assembly.assembly import Assembly
from husk.runtime.assembly.leftovers import Leftovers, discard_former
from husk.runtime.assembly.paths import Paths
from husk.runtime.runtimes import Runtimes, find_runtimes
from husk.runtime.supervise.conmon import LeanMounts, Monitor, Moves
from husk.runtime.supervise.exec import ExecMonitor
from husk.storage.blobs import BlobStore
from husk.storage.layers.power import PowerNote
from husk.storage.layers.recover import recover
from husk.storage.layers.store import LayerStore
from husk.storage.lost import put_aside
from husk.storage.state.store import StateStore
from husk.storage.workers.nursery import Nursery
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.containers.create import Creator
    from husk.runtime.supervise.keeper import Keeper

log = logging.getLogger(__name__)


class OpenParts(NamedTuple):
    """The parts of an engine that is open."""

    config: Config
    state: StateStore
    events: Events
    containers: Containers
    container_pruner: ContainerPruner
    execs: Execs
    images: Images
    networks: Networks
    volumes: Volumes
    system: System
    registry: LateRegistry
    downloads: Limiter
    uploads: Limiter
    parts: Parts
    assembly: Assembly
    runtimes: Runtimes
    host: EngineHost
    paths: Paths
    image_store: ImageStore
    nursery: Nursery
    publish: Publish
    watch: Watch
    power_held: bool  # since the last daemon ran


def _keeper(stack: AsyncExitStack, monitor: Monitor, lean: LeanMounts) -> "Keeper":
    from husk.runtime.supervise.keeper import Keeper

    keeper = Keeper(monitor, lean)
    stack.callback(keeper.close)
    return keeper


async def open_parts(
    config: Config, stack: AsyncExitStack, open_files: int, meanwhile: Callable[[], None], keeps: bool
) -> OpenParts:
    """As `Engine.open` tells. What is opened is closed by `stack`, in the other order.

    Networks wait for `networks.restored`, which is called when the wings that use them are open, too.
    """
    stack.enter_context(claimed_roots(config))
    try:
        log_options.check(config.log_driver, config.log_opts)
    except HuskError as error:
        raise InvalidParameter(f"failed to set log opts: {error.message}") from None
    tasks = Tasks()
    events, watch = Events(), Watch()
    owed = config.exec_root / "state.owed"
    state = await asyncio.to_thread(StateStore.open, config.data_root / "state.db", owed, STEPS)
    stack.callback(state.close)
    index = ContainerIndex(state, tasks)

    def records() -> Iterator[Container]:
        return (instance.record for instance in index)

    # Mostly the kernel's work, which takes it a while: the rest is opened beside it.
    opening = tasks.spawn(
        Networks.open(
            config,
            state,
            events,
            [instance.draft for instance in index],
            lambda reference: index.find(reference).record,
        ),
        "open networks",
        awaited=True,
    )
    stack.push_async_callback(_leave_host, config, opening, index)
    runtimes = await find_runtimes(config)
    stack.callback(runtimes.close)
    host = await asyncio.to_thread(EngineHost.probe, runtimes.default.name, open_files, config)
    if not host.conmon_path:
        raise Unavailable("conmon is not installed: run `husk doctor --fix`")
    await asyncio.to_thread(discard_former, config.data_root)
    blobs = await asyncio.to_thread(BlobStore.open, config.data_root / "blobs")
    stack.callback(blobs.close)
    nursery = Nursery()
    stack.callback(nursery.close)
    layers, power_held = await _open_layers(stack, config, state, blobs, nursery, index)
    registry = LateRegistry(config)
    stack.push_async_callback(registry.close)
    paths = Paths(config)
    assembly = Assembly(paths)
    aside = partial(put_aside, config.data_root)
    await _as_far_as_possible(asyncio.to_thread(assembly.make_mount_points, aside), "mount points of containers")
    volumes = await Volumes.open(config, state, events, records)
    stack.push_async_callback(volumes.close)
    moves = Moves()
    programs = [host.conmon_path, host.init_path, runtimes.default.path]
    needed = [config.data_root, paths.volumes, config.exec_root, *filter(None, programs)]
    lean = LeanMounts([str(path) for path in needed])
    stack.callback(lean.close)
    monitor = Monitor(host.conmon_path, moves, lean)
    catalog, aside_users = ImageCatalog(state, blobs.settle), partial(state.aside, *IMAGE_USERS)
    image_store = ImageStore(catalog, blobs, layers, records, events, aside_users, held=HeldLayers(state))
    downloads, uploads = Limiter(config.max_concurrent_downloads), Limiter(config.max_concurrent_uploads)
    images = Images(image_store, registry.client, state, downloads, uploads, watch)
    publish = partial(publish_container, events)
    meanwhile()
    networks = await opening
    drivers = Drivers(
        assembly=assembly,
        monitor=monitor,
        exec_monitor=ExecMonitor(host.conmon_path, moves),
        runtimes=runtimes,
        leftovers=Leftovers(paths, aside),
        networks=networks,
        volumes=volumes,
        layers=layers,
        keeper=_keeper(stack, monitor, lean) if keeps else None,
    )
    parts = Parts(
        index=index,
        drivers=drivers,
        host=host,
        publish=publish,
        tasks=tasks,
        release_layers=image_store.release,
        watch=watch,
    )
    memory_watch = MemoryWatch(index, paths, monitor, publish, tasks)
    stack.callback(memory_watch.close)
    rotator = Rotator(paths.log, lambda record: monitor.reopen_log(bundle_of(record, paths)), tasks)
    forwarder = Forwarder(paths.log, index.has, tasks, assembly.touch)
    stack.callback(rotator.close)
    parts.companions += [memory_watch, rotator, forwarder]
    stack.push_async_callback(parts.releaser.close)
    stack.push_async_callback(tasks.cancel_all)
    stack.callback(parts.lifecycle.close)
    await parts.execs.restore()
    await parts.restorer.restore()
    if not config.live_restore:
        # Those of a daemon that was killed; their policies decide whether they start again.
        await parts.stopper.end_all()
        stack.push_async_callback(_end_containers, parts)
    forwarder.resume(index)
    await volumes.restored()
    await _as_far_as_possible(image_store.collect(), "what is left of images")
    await _as_far_as_possible(images.collect(), "what is left of pushes")
    if not len(images):
        from husk.engine.images.bootstrap import make_busybox

        await _as_far_as_possible(make_busybox(image_store), "the image busybox:latest")

    def creator() -> "Creator":
        from husk.engine.containers.create import Creator

        return Creator(
            index=index,
            assembly=assembly,
            images=images,
            pins=image_store.pins,
            networks=networks,
            volumes=volumes,
            mounts=MountTaker(index, assembly, parts.roots, volumes, images),
            monitor=monitor,
            runtimes=runtimes,
            host=host,
            publish=publish,
            log_default=LogConfig(type=config.log_driver, config=dict(config.log_opts)),
            defaults=config.containers,
            keeps=keeps,
        )

    containers = Containers(
        index=index,
        creator=creator,
        lifecycle=parts.lifecycle,
        stopper=parts.stopper,
        pauser=parts.pauser,
        remover=parts.remover,
        assembly=assembly,
        images=images,
        monitor=monitor,
        publish=publish,
        watch=watch,
    )
    system = System(config, host, runtimes.settings(), lambda: state.trouble)
    return OpenParts(
        config=config,
        state=state,
        events=events,
        containers=containers,
        container_pruner=ContainerPruner(index, assembly, parts.remover, events),
        execs=parts.execs,
        images=images,
        networks=networks,
        volumes=volumes,
        system=system,
        registry=registry,
        downloads=downloads,
        uploads=uploads,
        parts=parts,
        assembly=assembly,
        runtimes=runtimes,
        host=host,
        paths=paths,
        image_store=image_store,
        nursery=nursery,
        publish=publish,
        watch=watch,
        power_held=power_held,
    )


async def _open_layers(
    stack: AsyncExitStack, config: Config, state: StateStore, blobs: BlobStore, nursery: Nursery, index: ContainerIndex
) -> tuple[LayerStore, bool]:
    """The layers of images, with those made good that the last daemon, or the power, left half done; and whether the
    power has held."""

    def mounted(chain: str) -> bool:
        running = (instance.record for instance in index if instance.record.state.running or instance.root_users)
        return any(chain in record.used_layers for record in running)

    layers = await LayerStore.open(config.data_root / "layers", state, blobs, nursery, config.max_layer_size, mounted)
    stack.push_async_callback(layers.close)
    power = PowerNote(config.exec_root, config.data_root)
    held = await asyncio.to_thread(power.held)
    await recover(layers, blobs, power_held=held)
    await _as_far_as_possible(asyncio.to_thread(power.write), "note of this boot")
    return layers, held


async def _end_containers(parts: Parts) -> None:
    """The daemon goes, and was told not to leave them behind."""
    parts.lifecycle.leave_restarts()
    await parts.stopper.end_all()


async def _as_far_as_possible(work: Coroutine[object, object, object], what: str) -> None:
    """Await work; what cannot be done, on a full disk for example, is logged and keeps the daemon from nothing else."""
    try:
        await work
    except (HuskError, OSError) as error:
        log.error("%s: %s", what, error)


async def _leave_host(config: Config, opening: asyncio.Task[Networks], index: ContainerIndex) -> None:
    """The bridge and the cgroup above all containers stay while containers use them."""
    await asyncio.wait([opening])
    if opening.cancelled() or opening.exception() is not None:
        return
    in_use = bool(index.aside) or any(one.record.state.status in ("running", "paused") for one in index)
    await opening.result().close(remove=not in_use)
    if not in_use:
        await asyncio.to_thread(cgroup.remove, config.cgroup_parent)
