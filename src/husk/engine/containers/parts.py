"""The parts that move a container through its life, built in the order in which they need each other; and those that
no start of the daemon needs, built when they are first asked for."""

from collections.abc import Awaitable, Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING

from husk.aio.tasks import Tasks
from husk.engine.containers.drivers import Drivers
from husk.engine.containers.exec import Execs
from husk.engine.containers.health import Prober
from husk.engine.containers.index import Companion, ContainerIndex, Publish
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.mounts import Roots, Stager
from husk.engine.containers.pause import Pauser
from husk.engine.containers.release import Releaser
from husk.engine.containers.remove import ContainerRemover
from husk.engine.containers.restore import Restorer
from husk.engine.containers.stop import Stopper
from husk.engine.host import EngineHost
from husk.engine.images.store import ImageStore
from husk.engine.networks.service import Networks
from husk.runtime.assembly.assembly import Assembly
from husk.runtime.runtimes import Runtimes
from husk.storage.workers.nursery import Nursery
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.containers.commit import Committer
    from husk.engine.containers.connect import Connections
    from husk.engine.containers.copy import ContainerCopier, Differ
    from husk.engine.containers.start import Starter
    from husk.engine.containers.stats import Statistics
    from husk.engine.containers.top import Top
    from husk.engine.containers.update import Updater


class Parts:
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
        """Whoever is told of starts and ends; others may be added before the first container is restored."""
        self.index = index
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


class LateParts:
    """Parts that a start of the daemon does not need: each is loaded and built when it is first asked for."""

    def __init__(
        self,
        *,
        parts: Parts,
        assembly: Assembly,
        runtimes: Runtimes,
        host: EngineHost,
        networks: Networks,
        image_store: ImageStore,
        nursery: Nursery,
        publish: Publish,
    ) -> None:
        self._parts = parts
        self._assembly = assembly
        self._runtimes = runtimes
        self._host = host
        self._networks = networks
        self._image_store = image_store
        self._nursery = nursery
        self._publish = publish

    @cached_property
    def copier(self) -> "ContainerCopier":
        from husk.engine.containers.copy import ContainerCopier

        return ContainerCopier(self._parts.index, self._assembly, self._parts.roots, self._nursery, self._publish)

    @cached_property
    def differ(self) -> "Differ":
        from husk.engine.containers.copy import Differ

        return Differ(self._parts.index, self._assembly, self._parts.roots)

    @cached_property
    def statistics(self) -> "Statistics":
        from husk.engine.containers.stats import Statistics

        return Statistics(self._parts.index, self._assembly.paths)

    @property
    def workers_employed(self) -> int:
        """The number of worker processes that there have been."""
        return self._nursery.employed

    def worker_processes(self) -> int:
        """Count the worker processes that there are now. It reads a file: not for the event loop."""
        return self._nursery.processes()

    @cached_property
    def top(self) -> "Top":
        from husk.engine.containers.top import Top

        return Top(self._parts.index, self._assembly.paths, self._publish)

    @cached_property
    def updater(self) -> "Updater":
        from husk.engine.containers.update import Updater

        return Updater(self._parts.index, self._assembly.paths, self._runtimes, self._host, self._publish)

    @cached_property
    def connections(self) -> "Connections":
        from husk.engine.containers.connect import Connections

        return Connections(self._parts.index, self._networks, self._assembly.paths, self._parts.tasks)

    @cached_property
    def committer(self) -> "Committer":
        from husk.engine.containers.commit import Committer

        return Committer(self._image_store, self._parts.index, self._assembly, self._parts.pauser, self._publish)
