"""The parts that move a container through its life, built in the order in which they need each other."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING

from husk.engine.containers.drivers import Drivers
from husk.engine.containers.exec import Execs
from husk.engine.containers.health import Prober
from husk.engine.containers.index import Companion, Index, Publish
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.mounts import Roots, Stager
from husk.engine.containers.pause import Pauser
from husk.engine.containers.release import Releaser
from husk.engine.containers.remove import Remover
from husk.engine.containers.restore import Restorer
from husk.engine.containers.stop import Stopper
from husk.engine.host import Host
from husk.tasks import Tasks
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.containers.start import Starter


class Parts:
    def __init__(
        self,
        *,
        index: Index,
        drivers: Drivers,
        host: Host,
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
        self.pauser = Pauser(index, runtimes, publish, self.companions)
        self.stopper = Stopper(index, self.pauser, publish)
        self.remover = Remover(
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
