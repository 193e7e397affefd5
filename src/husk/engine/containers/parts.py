"""The parts of containers: those that move one through its life, the verbs that no start of the daemon needs, which are
loaded and built when they are first asked for, and what the edge calls."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from husk.aio.tasks import Tasks
from husk.engine.base import Base, HostParts
from husk.engine.containers.drivers import Drivers, Supervisor, bundle_of
from husk.engine.containers.exec import Execs
from husk.engine.containers.health import Prober
from husk.engine.containers.index import Companion, ContainerIndex, Publish, publish_container
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.mounts import MountTaker, Roots, Stager
from husk.engine.containers.oom import MemoryWatch
from husk.engine.containers.pause import Pauser
from husk.engine.containers.release import Releaser
from husk.engine.containers.remove import ContainerPruner, ContainerRemover
from husk.engine.containers.restore import Restorer
from husk.engine.containers.service import Containers
from husk.engine.containers.stop import Stopper
from husk.engine.host import EngineHost
from husk.engine.images.parts import ImageParts
from husk.engine.logs.forwarding import Forwarder
from husk.engine.logs.rotation import Rotator
from husk.engine.model.container_config import LogConfig
from husk.engine.networks.service import Networks
from husk.engine.volumes.service import Volumes
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.containers.commit import Committer
    from husk.engine.containers.connect import Connections
    from husk.engine.containers.copy import ContainerCopier, Differ
    from husk.engine.containers.create import Creator
    from husk.engine.containers.start import Starter
    from husk.engine.containers.stats import Statistics
    from husk.engine.containers.top import Top
    from husk.engine.containers.update import Updater


class LifeParts:
    """The parts that move a container through its life, in the order in which they need each other."""

    def __init__(
        self,
        *,
        index: ContainerIndex,
        drivers: Drivers,
        host: EngineHost,
        publish: Publish,
        tasks: Tasks,
        release_layers: Callable[[list[str]], Awaitable[object]],
        watch: Watch | None = None,
    ) -> None:
        """`release_layers` is told which layers a container that goes no longer needs."""
        assembly, runtimes = drivers.assembly, drivers.runtimes
        self.companions: list[Companion] = []
        """Parts that are told of starts and ends; others may be added before the first container is restored."""
        self.index = index
        self.publish = publish
        self.tasks = tasks
        stager = Stager(assembly, drivers.layers, drivers.volumes)
        self.roots = Roots(index, assembly, drivers.layers, stager)
        self.releaser = Releaser(assembly, runtimes, drivers.networks, stager, tasks)
        self.pauser = Pauser(index, assembly, runtimes, publish, self.companions)
        self.stopper = Stopper(index, assembly, self.pauser, publish)
        self.remover = ContainerRemover(
            index=index,
            assembly=assembly,
            releaser=self.releaser,
            stopper=self.stopper,
            volumes=drivers.volumes,
            publish=publish,
            release_layers=release_layers,
            watch=watch,
        )

        @cache
        def starter() -> "Starter":
            """Loaded and built with the first container that starts: the daemon may be asked long before that."""
            from husk.engine.containers.start import Starter

            return Starter(index=index, drivers=drivers, host=host, stager=stager, lower=self.roots.lower)

        self.lifecycle = Lifecycle(
            index=index,
            drivers=drivers,
            starter=starter,
            releaser=self.releaser,
            remover=self.remover,
            companions=self.companions,
            publish=publish,
            tasks=tasks,
            watch=watch,
        )
        self.execs = Execs(index=index, drivers=drivers, host=host, publish=publish, tasks=tasks)
        self.companions += [self.execs, Prober(self.execs, publish, tasks, watch)]
        self.restorer = Restorer(
            index=index,
            drivers=drivers,
            lifecycle=self.lifecycle,
            pauser=self.pauser,
            releaser=self.releaser,
            remover=self.remover,
            tasks=tasks,
        )


class Verbs:
    """Verbs of containers besides their lives. Each part is loaded and built when it is first asked for."""

    def __init__(self, life: LifeParts, host: HostParts, images: ImageParts, networks: Networks) -> None:
        self._life = life
        self._host = host
        self._images = images
        self._networks = networks

    @cached_property
    def copier(self) -> "ContainerCopier":
        from husk.engine.containers.copy import ContainerCopier

        life, host = self._life, self._host
        return ContainerCopier(life.index, host.assembly, life.roots, host.nursery, life.publish)

    @cached_property
    def differ(self) -> "Differ":
        from husk.engine.containers.copy import Differ

        return Differ(self._life.index, self._host.assembly, self._life.roots)

    @cached_property
    def statistics(self) -> "Statistics":
        from husk.engine.containers.stats import Statistics

        return Statistics(self._life.index, self._host.assembly.paths)

    @cached_property
    def top(self) -> "Top":
        from husk.engine.containers.top import Top

        return Top(self._life.index, self._host.assembly.paths, self._life.publish)

    @cached_property
    def updater(self) -> "Updater":
        from husk.engine.containers.update import Updater

        host = self._host
        return Updater(self._life.index, host.assembly.paths, host.runtimes, host.facts, self._life.publish)

    @cached_property
    def connections(self) -> "Connections":
        from husk.engine.containers.connect import Connections

        return Connections(self._life.index, self._networks, self._host.assembly.paths, self._life.tasks)

    @cached_property
    def committer(self) -> "Committer":
        from husk.engine.containers.commit import Committer

        life = self._life
        return Committer(self._images.store, life.index, self._host.assembly, life.pauser, life.publish)


class ContainerParts(NamedTuple):
    life: LifeParts
    verbs: Verbs
    service: Containers
    pruner: ContainerPruner
    forwarder: Forwarder

    async def restore(self, *, live: bool, stack: AsyncExitStack) -> None:
        """Take over what runs. Where it is not to be `live`, it ends: now, and with the daemon."""
        await self.life.execs.restore()
        await self.life.restorer.restore()
        if not live:
            # Those of a daemon that was killed; their policies decide whether they start again.
            await self.life.stopper.end_all()
            stack.push_async_callback(self._end)
        self.forwarder.resume(self.life.index)

    async def _end(self) -> None:
        """The daemon goes, and was told not to leave them behind."""
        self.life.lifecycle.leave_restarts()
        await self.life.stopper.end_all()


def build_containers(
    base: Base,
    host: HostParts,
    index: ContainerIndex,
    images: ImageParts,
    networks: Networks,
    volumes: Volumes,
    stack: AsyncExitStack,
    *,
    keeps: bool,
) -> ContainerParts:
    """With `keeps` a container that somebody waits for ends with the engine."""
    config, tasks, paths = base.config, base.tasks, host.assembly.paths
    life = LifeParts(
        index=index,
        drivers=Drivers(
            assembly=host.assembly,
            monitor=host.monitor,
            exec_monitor=host.exec_monitor,
            runtimes=host.runtimes,
            leftovers=host.leftovers,
            networks=networks,
            volumes=volumes,
            layers=images.store.layers,
            keeper=_keeper(host, stack) if keeps else None,
        ),
        host=host.facts,
        publish=partial(publish_container, base.events),
        tasks=tasks,
        release_layers=images.store.release,
        watch=base.watch,
    )
    memory_watch = MemoryWatch(index, paths, host.monitor, life.publish, tasks)
    stack.callback(memory_watch.close)
    rotator = Rotator(paths.log, lambda record: host.monitor.reopen_log(bundle_of(record, paths)), tasks)
    stack.callback(rotator.close)
    forwarder = Forwarder(paths.log, index.has, tasks, host.assembly.touch)
    life.companions += [memory_watch, rotator, forwarder]
    stack.push_async_callback(life.releaser.close)
    stack.push_async_callback(tasks.cancel_all)
    stack.callback(life.lifecycle.close)

    def creator() -> "Creator":
        from husk.engine.containers.create import Creator

        return Creator(
            index=index,
            assembly=host.assembly,
            images=images.service,
            pins=images.store.pins,
            networks=networks,
            volumes=volumes,
            mounts=MountTaker(index, host.assembly, life.roots, volumes, images.service),
            monitor=host.monitor,
            runtimes=host.runtimes,
            host=host.facts,
            publish=life.publish,
            log_default=LogConfig(type=config.log_driver, config=dict(config.log_opts)),
            defaults=config.containers,
            keeps=keeps,
        )

    service = Containers(
        index=index,
        creator=creator,
        lifecycle=life.lifecycle,
        stopper=life.stopper,
        pauser=life.pauser,
        remover=life.remover,
        assembly=host.assembly,
        images=images.service,
        monitor=host.monitor,
        publish=life.publish,
        watch=base.watch,
    )
    pruner = ContainerPruner(index, host.assembly, life.remover, base.events)
    return ContainerParts(life, Verbs(life, host, images, networks), service, pruner, forwarder)


def _keeper(host: HostParts, stack: AsyncExitStack) -> Supervisor:
    from husk.runtime.supervise.keeper import Keeper

    keeper = Keeper(host.monitor, host.lean)
    stack.callback(keeper.close)
    return keeper
