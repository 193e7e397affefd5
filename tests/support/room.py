"""The room `engine/containers` on doubles of its drivers: everything but the host is real."""

from functools import partial
from pathlib import Path

from husk.engine.containers.exec import Execs
from husk.engine.containers.index import Companion, Index, Instance, publish_container
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.mounts import Roots, Stager
from husk.engine.containers.pause import Pauser
from husk.engine.containers.release import Releaser
from husk.engine.containers.remove import Remover
from husk.engine.containers.restore import Restorer
from husk.engine.containers.start import Starter
from husk.engine.containers.stop import Stopper
from husk.engine.model.container import KIND, Container
from husk.engine.model.events import Event, Events
from husk.storage.state.store import StateStore
from husk.tasks import Tasks
from tests.support.drivers import HOST, FakeHost, Told


class Room:
    """The parts of `engine/containers` that move a container through its life."""

    def __init__(self, directory: Path, host: FakeHost | None = None) -> None:
        """`host` is one on which another daemon has been before."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._next: Room | None = None
        self.host = host = host or FakeHost(directory)
        self.state = StateStore.open(directory / "state.db")
        self.tasks = Tasks()
        self.index = index = Index(self.state, self.tasks)
        self.told = Told()
        companions: list[Companion] = [self.told]
        self.happened: list[Event] = []
        self.released_layers: list[list[str]] = []
        events = Events()
        events.observe(self.happened.append)
        publish = partial(publish_container, events)
        stager = Stager(host.assembly, host.layers, host.volumes)
        self.roots = Roots(index, host.assembly, host.layers, stager)
        self.releaser = Releaser(host.assembly, host.runtimes, host.networks, stager)
        self.pauser = Pauser(index, host.runtimes, publish, companions)
        self.stopper = Stopper(index, self.pauser, publish)
        self.remover = Remover(
            index=index,
            assembly=host.assembly,
            releaser=self.releaser,
            stopper=self.stopper,
            volumes=host.volumes,
            publish=publish,
            release_layers=self._release_layers,
        )
        starter = Starter(
            index=index,
            assembly=host.assembly,
            lower=self.roots.lower,
            networks=host.networks,
            stager=stager,
            monitor=host.monitor,
            runtimes=host.runtimes,
            processes=host.processes,
            host=HOST,
        )
        self.lifecycle = Lifecycle(
            index=index,
            assembly=host.assembly,
            monitor=host.monitor,
            processes=host.processes,
            starter=starter,
            releaser=self.releaser,
            remover=self.remover,
            companions=companions,
            publish=publish,
            tasks=self.tasks,
        )
        self.restorer = Restorer(
            index=index,
            paths=host.paths,
            lifecycle=self.lifecycle,
            pauser=self.pauser,
            releaser=self.releaser,
            remover=self.remover,
            monitor=host.monitor,
            runtimes=host.runtimes,
            processes=host.processes,
            leftovers=host.leftovers,
            tasks=self.tasks,
        )
        self.execs = Execs(
            index=index,
            assembly=host.assembly,
            monitor=host.exec_monitor,
            runtimes=host.runtimes,
            processes=host.processes,
            host=HOST,
            publish=publish,
            tasks=self.tasks,
        )
        companions.append(self.execs)

    async def crashed(self) -> "Room":
        """The next daemon, on the same host and the same store; this one had no time to say goodbye."""
        await self.close()
        self._next = Room(self._directory, self.host)
        return self._next

    async def close(self) -> None:
        await self.tasks.cancel_all()
        if self._next is not None:
            await self._next.close()
        self.state.close()

    async def _release_layers(self, layers: list[str]) -> None:
        self.released_layers.append(layers)

    async def add(self, record: Container) -> Instance:
        self.index.reserve_name(record.name, record.id)
        return await self.index.add(record)

    async def started(self, record: Container) -> Instance:
        """A new container that runs."""
        instance = await self.add(record)
        await self.lifecycle.start(instance)
        return instance

    async def ended(self, instance: Instance, code: int | None) -> None:
        """Its process ends, and the engine has heard of it."""
        exit = instance.next_exit()
        self.host.end(instance, code)
        await exit
        # The one who records the end holds the lock until all of it is done.
        async with instance.lock:
            pass

    def stored(self, instance: Instance) -> Container | None:
        """What the next daemon would read."""
        return self.state.records(KIND, Container).get(instance.id)

    @property
    def actions(self) -> list[str]:
        return [event.action for event in self.happened]
