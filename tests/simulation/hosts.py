"""Hosts and what is between them: power, ways, clocks, disks, containers."""

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from husk.engine.containers.create import CreatedContainer
from husk.engine.model.clock import rfc3339
from husk.engine.model.container import TASK_LABEL, Container
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.events import Events
from husk.errors import Conflict, InvalidParameter, NotFound, NotModified
from husk.swarm.model.clocks import Clock
from tests.simulation.loop import own_process
from tests.support.but import but
from tests.unit.engine.records import container as made_of

SECOND = 10**9
# When all lives begin, by a right clock.
EPOCH = 1_790_000_000 * SECOND


class Network:
    """Ways between hosts, which can be cut."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._cut: set[str] = set()
        # Pairs that do not reach each other, though others reach both.
        self._parted: set[frozenset[str]] = set()
        self._down: set[str] = set()
        self._changed = asyncio.Event()

    def linked(self, one: str, other: str) -> bool:
        if one in self._down or other in self._down:
            return False
        if one == other:
            return True
        return one not in self._cut and other not in self._cut and frozenset((one, other)) not in self._parted

    def cut(self, host: str, off: bool = True) -> None:
        (self._cut.add if off else self._cut.discard)(host)
        self.turn()

    def part(self, one: str, other: str, off: bool = True) -> None:
        """Members of etcd are not parted: what most of them reach is all that is known of them (`parts`)."""
        (self._parted.add if off else self._parted.discard)(frozenset((one, other)))
        self.turn()

    def power(self, host: str, on: bool) -> None:
        (self._down.discard if on else self._down.add)(host)
        self.turn()

    def turn(self) -> None:
        """Something is another way now."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changes(self) -> None:
        await self._changed.wait()

    async def travel(self, one: str, other: str) -> None:
        """As long as a message takes; one that cannot come through is sent again until it can."""
        await asyncio.sleep(self._chance.uniform(0.0002, 0.002))
        while not self.linked(one, other):
            await self.changes()

    def parts(self, hosts: Iterable[str]) -> list[set[str]]:
        """Those that reach each other."""
        up = [host for host in hosts if host not in self._down]
        together = {host for host in up if host not in self._cut}
        return [together, *({host} for host in up if host in self._cut)]


class HostClock(Clock):
    """As `Clock`, on a host's clocks: made when a daemon starts, it counts from the time that the host had then."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._ahead = host.wall() - _passed()

    def now(self) -> int:
        return self._ahead + _passed()

    def awake(self) -> int:
        return _passed()

    def seconds(self) -> float:
        return self._host.wall() / SECOND

    def stamp(self) -> str:
        return rfc3339(self._host.wall())


def _passed() -> int:
    return round(asyncio.get_running_loop().time() * SECOND)


class Host:
    """One host: what outlives its daemon, and what outlives its power."""

    def __init__(self, name: str, network: Network, chance: random.Random) -> None:
        self.name = name
        self.network = network
        self.up = True
        # How often it was started: a connection to it as it was before is none any more.
        self.boots = 0
        # How wrong its clock is; how much slower its disk.
        self.wrong = 0
        self.slow = 1.0
        self.containers = Containers(self, chance)

    def wall(self) -> int:
        return EPOCH + self.wrong + _passed()

    def fall(self) -> None:
        self.up = False
        self.network.power(self.name, False)
        self.containers.fall()

    def rise(self) -> None:
        self.up, self.boots = True, self.boots + 1
        self.network.power(self.name, True)


class Containers:
    """Containers without processes, as a service's runner uses them (`engine.containers.service.Containers`).

    What becomes of one its image says: `steady` runs, `crash` fails as soon as it runs, `job` ends well after a while,
    `bad` cannot be started, `flaky` fails now and then while `trouble` lasts.
    """

    def __init__(self, host: Host, chance: random.Random) -> None:
        self._host = host
        self._chance = chance
        self.events: Events | None = None
        self.records: dict[str, Container] = {}
        self.trouble = True
        # Whether what fails does so as fast as it can; being tried again all the time then, it costs ten times as much.
        self.hasty = False
        # Hears of one that somebody stops or removes.
        self.ending: Callable[[Host, Container], None] = lambda host, record: None

    def running(self) -> list[Container]:
        return [record for record in self.records.values() if record.state.running]

    async def create(self, name: str, config: ContainerConfig, host_config: HostConfig, *_: Any) -> CreatedContainer:
        await self._work()
        if any(record.name == name for record in self.records.values()):
            raise Conflict(f"the name {name} is in use")
        record = made_of(name, config=config, host_config=host_config, id=f"{self._chance.getrandbits(256):064x}")
        self.records[record.id] = record
        return CreatedContainer(record, [])

    async def start(self, reference: str, *_: Any) -> None:
        record = self.find(reference)
        await self._work()
        if record.id not in self.records:
            raise NotFound(f"No such container: {reference}")
        if record.state.running:
            raise NotModified("it runs")
        if record.config.image == "bad":
            await asyncio.sleep(self._failing())
            raise InvalidParameter("exec format error")
        record = self.records[record.id] = but(record, state=replace(record.state, status="running"))
        self._tell("start", record)
        self._fate(record)

    async def stop(self, reference: str, *_: Any) -> None:
        record = self.find(reference)
        await self._work()
        self.ending(self._host, record)
        await asyncio.sleep(self._chance.choice([0.1, 0.1, 2.0, 10.0]))
        if record.id in self.records:
            self._end(record, 137)

    async def remove(self, reference: str, *_: Any) -> None:
        record = self.find(reference)
        await self._work()
        self.ending(self._host, record)
        self._end(record, 137)
        if self.records.pop(record.id, None) is not None:
            self._tell("destroy", record)

    def find(self, reference: str) -> Container:
        for record in self.records.values():
            if reference in (record.id, record.name):
                return record
        raise NotFound(f"No such container: {reference}")

    def listing(self, *_: Any) -> list[Container]:
        return [record for record in self.records.values() if TASK_LABEL in record.config.labels]

    def fall(self) -> None:
        """The host has lost its power."""
        for record in self.running():
            self.records[record.id] = but(record, state=replace(record.state, status="exited", exit_code=255))

    async def _work(self) -> None:
        process = own_process()
        process.check()
        await asyncio.sleep(self._chance.uniform(0.01, 0.2) * self._host.slow)
        process.check()

    def _fate(self, record: Container) -> None:
        image = record.config.image
        code = 0 if image == "job" else 1
        if image == "crash":
            after = self._failing()
        elif image == "job":
            after = self._chance.uniform(0.5, 5)
        elif image == "flaky" and self.trouble and self._chance.random() < 0.5:
            after = self._chance.uniform(0.1, 20)
        else:
            return
        asyncio.get_running_loop().call_later(after, self._end, record, code)

    def _failing(self) -> float:
        """Return the seconds that something takes to fail."""
        return 0.05 if self.hasty else self._chance.uniform(0.5, 8)

    def _end(self, record: Container, code: int) -> None:
        record = self.records.get(record.id, record)
        if record.state.running:
            record = but(record, state=replace(record.state, status="exited", exit_code=code))
            if record.id in self.records:
                self.records[record.id] = record
            self._tell("die", record)

    def _tell(self, action: str, record: Container) -> None:
        """Tell the daemon that is there now."""
        if self.events is not None:
            self.events.publish("container", action, record.id, {TASK_LABEL: record.config.labels[TASK_LABEL]})
