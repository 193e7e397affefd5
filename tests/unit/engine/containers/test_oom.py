"""A container that runs out of memory: told while it lives, once for each process that was killed."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from husk.engine.containers.index import Instance, publish_container
from husk.engine.containers.oom import MemoryWatch
from husk.engine.model.container_config import HostConfig
from husk.engine.model.events import Events
from tests.support.room import Room
from tests.support.waiting import until_async
from tests.unit.engine.records import container


class Watched:
    """A room whose containers run out of memory when `kill` says so."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.kills = 0
        self.events: list[str] = []
        events = Events()
        events.observe(lambda event: self.events.append(event.action))
        publish = partial(publish_container, events)
        self.watch = MemoryWatch(
            room.index,
            room.host.paths,
            room.host.monitor,
            publish,
            room.tasks,
            kills=lambda path: self.kills,
            # More than a busy host needs for all that a test does meanwhile.
            attempts=50_000,
            pause=0.001,
        )
        room.companions.append(self.watch)

    async def started(self, host_config: HostConfig | None = None) -> Instance:
        record = container(host_config=host_config)
        self.room.host.paths.bundle(record.id).mkdir(parents=True)
        return await self.room.started(record)

    def note(self, instance: Instance) -> None:
        """Write the file that conmon writes when the kernel tells it."""
        (self.room.host.paths.bundle(instance.id) / "oom").touch()


@pytest.fixture
async def watched(room: Room) -> AsyncIterator[Watched]:
    watched = Watched(room)
    yield watched
    watched.watch.close()


async def test_a_kill_is_told_and_stored_while_the_container_runs(watched: Watched) -> None:
    instance = await watched.started()
    watched.kills = 1
    watched.note(instance)
    await until_async(lambda: watched.events == ["oom"], "the event")
    stored = watched.room.stored(instance)
    assert stored is not None and stored.state.oom_killed and stored.state.status == "running"


async def test_the_kernel_tells_ahead_of_the_deed(watched: Watched) -> None:
    instance = await watched.started()
    watched.note(instance)
    # A second one, which is told at once, is the clock: nothing has been killed in the first yet.
    other = await watched.started(HostConfig(oom_kill_disable=True))
    watched.note(other)
    await until_async(lambda: other.record.state.oom_killed, "the other's event")
    assert not instance.record.state.oom_killed
    watched.kills = 1
    await until_async(lambda: instance.record.state.oom_killed, "the kill is seen")


async def test_one_that_is_not_to_be_killed_tells_that_it_waits(watched: Watched) -> None:
    instance = await watched.started(HostConfig(oom_kill_disable=True))
    watched.note(instance)
    await until_async(lambda: watched.events == ["oom"], "the event")
    assert instance.record.state.oom_killed


async def test_after_its_end_nobody_is_told(watched: Watched) -> None:
    instance = await watched.started()
    watched.note(instance)
    await watched.room.ended(instance, 137)
    watched.kills = 1
    other = await watched.started()
    watched.note(other)
    await until_async(lambda: watched.events, "the other's event")
    assert watched.events == ["oom"] and other.record.state.oom_killed and not instance.record.state.oom_killed
