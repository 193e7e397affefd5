"""The room `engine/containers` on doubles of its drivers: everything but the host is real."""

from functools import partial
from pathlib import Path

from husk.aio.tasks import Tasks
from husk.engine.containers.index import Companion, ContainerIndex, Instance, publish_container
from husk.engine.containers.parts import LifeParts
from husk.engine.model.container import KIND, Container
from husk.engine.model.events import Event, Events
from tests.support.drivers import HOST, FakeHost
from tests.support.full_store import FullStore


class Told(Companion):
    """A companion that remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def starting(self, instance: Instance) -> None:
        self.heard.append("starting")

    def running(self, instance: Instance) -> None:
        self.heard.append("running")

    def paused(self, instance: Instance) -> None:
        self.heard.append("paused")

    def ended(self, instance: Instance) -> None:
        self.heard.append("ended")


class Room(LifeParts):
    """One daemon's containers, with a store of their own and all that they have told."""

    def __init__(self, directory: Path, host: FakeHost | None = None) -> None:
        """`host` is one on which another daemon has been before."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._next: Room | None = None
        self.host = host = host or FakeHost(directory)
        self.state = FullStore.open(directory / "state.db")
        self.told = Told()
        self.happened: list[Event] = []
        self.released_layers: list[list[str]] = []
        events = Events()
        events.observe(self.happened.append)
        tasks = Tasks()
        super().__init__(
            index=ContainerIndex(self.state, tasks),
            drivers=host.drivers,
            host=HOST,
            publish=partial(publish_container, events),
            tasks=tasks,
            release_layers=self._release_layers,
        )
        self.companions.append(self.told)

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
        """Return the records as the next daemon would read them."""
        return self.state.records(KIND, Container).get(instance.id)

    @property
    def actions(self) -> list[str]:
        return [event.action for event in self.happened]
